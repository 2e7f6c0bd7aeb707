#include "relocation/target_record.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/objects/row_change.hpp"
#include "zlink/placement/pause.hpp"

namespace zlink::detail {

namespace {

constexpr std::chrono::seconds release_patience{10}; // slots that are not given back go with the row's next change

using refused = std::optional<move_refusal>;

move_refusal store_silent() {
  return {relocate_reason::store_unavailable, {error_kind::unavailable, "the Location Store did not carry it out in time"}};
}
move_refusal no_room(const std::string& what) {
  return {relocate_reason::target_unavailable, {error_kind::unavailable, "this node has no room for " + what}};
}

placement::participant participant_in(std::string id, const placement::row_record& row) {
  return placement::participant_of(std::move(id), row);
}

} // namespace

target_record::target_record(host_runtime& host, node_runtime& node, const std::string& source, unique_id move,
                             const restore_request& request)
  : host_(host), node_(node), source_(source), move_(move), request_(request), aggregate_{request.aggregate_high, request.aggregate_low} {
  target_.kind = request.parts.front().actor ? placement::object_kind::actor
                 : static_cast<unit_kind>(request.kind) == unit_kind::instance_spot ? placement::object_kind::instance_spot
                                                                                    : placement::object_kind::user_spot;
  target_.id = request.parts.front().id;
  target_.relocation = move;
  target_.attempt = {request.attempt};
  target_.reservation = host.random->next_id();
  target_.owner = host.token();
}

std::string target_record::address(std::uint32_t index) const {
  const auto& part = request_.parts[index];
  return part.actor ? actor_address(part.id) : part.id;
}

move_refusal target_record::unlike(std::uint32_t index, const char* what) const {
  return {relocate_reason::relocation_failed, {error_kind::unavailable, described(address(index)) + ": " + what}};
}

// -- what moves -------------------------------------------------------------------------------------------------------

task<refused> target_record::read() { return aggregate_ ? read_aggregate() : read_row(); }

bool target_record::matches(std::uint32_t index, const placement::participant& row) const {
  const auto& part = request_.parts[index];
  return (row.kind == placement::object_kind::actor) == part.actor && row.id == part.id && row.generation.value == part.generation
         && row.authority.value == part.authority;
}

task<refused> target_record::read_row() {
  auto reading = host_.repository->read_object(address(0));
  const auto outcome = co_await std::move(reading);
  const auto* seen = placement::seen_in(outcome);
  if (seen == nullptr)
    co_return store_silent();
  const auto* row = placement::row_in(*seen);
  if (row == nullptr || row->state != placement::allocation_state::active || row->kind != target_.kind)
    co_return unlike(0, "there is no such object");
  parts_ = {participant_in(request_.parts.front().id, *row)};
  if (request_.parts.size() != 1 || !matches(0, parts_.front()))
    co_return unlike(0, "it is another incarnation, or has another owner");
  if (row->node.node_rid != source_ || row->node.lifecycle.value != request_.source_lifecycle)
    co_return unlike(0, "its owner is not who sent it");
  if (!row->move || row->move->relocation != move_)
    co_return unlike(0, "its row names another move");
  row_ = *seen;
  co_return std::nullopt;
}

/// Record and list as they stand in the store, the list verified before anything is built from it (L-151).
task<refused> target_record::read_aggregate() {
  auto reading = host_.repository->read<placement::aggregate_record>(placement::aggregate_key(aggregate_));
  const auto outcome = co_await std::move(reading);
  const auto* seen = placement::seen_in(outcome);
  if (seen == nullptr)
    co_return store_silent();
  if (!seen->record || !seen->record->move || seen->record->move->relocation != move_ || seen->record->node.node_rid != source_
      || seen->record->node.lifecycle.value != request_.source_lifecycle)
    co_return unlike(0, "its aggregate names another move");
  aggregate_seen_ = *seen;
  auto listing = placement::read_participants(*host_.repository, aggregate_, seen->record->participants);
  auto listed = co_await std::move(listing);
  auto* list = std::get_if<std::vector<placement::participant>>(&listed);
  if (list == nullptr)
    co_return std::get<placement::payload_fault>(listed) == placement::payload_fault::lost
      ? move_refusal{relocate_reason::relocation_failed, {error_kind::data_lost, "the list of those who move is not what was stored"}}
      : store_silent();
  if (list->size() != request_.parts.size())
    co_return unlike(0, "the list in the store names others");
  for (std::uint32_t i = 0; i < list->size(); ++i)
    if (!matches(i, (*list)[i]))
      co_return unlike(i, "the list in the store names another");
  parts_ = std::move(*list);
  co_return std::nullopt;
}

// -- room for it ------------------------------------------------------------------------------------------------------

task<refused> target_record::reserve(unique_function<bool()> given_up) {
  const auto& slots = aggregate_ ? aggregate_seen_.record->slots : placement::row_in(row_)->slots;
  target_.limits = placement::limits_of(node_.registration->descriptor(), slots);
  return aggregate_ ? reserve_aggregate(std::move(given_up)) : reserve_row(std::move(given_up));
}

task<refused> target_record::reserve_row(unique_function<bool()> given_up) {
  row_change change;
  change.id = address(0);
  change.seen = row_;
  change.judge = [this](const placement::observed_object& seen) -> row_judgement {
    const auto* row = placement::row_in(seen);
    if (row != nullptr && row->move && row->move->relocation == move_ && row->move->attempt == target_.attempt
        && row->move->reservation == target_.reservation)
      return row_end::settled; // an earlier try got through late
    target_.node = node_.stamp(); // the node may have published another revision meanwhile (C-39)
    return judged(placement::reserve_move(seen, target_));
  };
  change.give_up = [&given_up](bool) { return given_up(); };
  auto changing = change_row(host_, std::move(change));
  auto outcome = co_await std::move(changing);
  reserved_ = outcome.how == row_end::applied || outcome.how == row_end::settled || outcome.how == row_end::unknown;
  switch (outcome.how) {
    case row_end::applied:
      row_ = std::move(outcome.seen);
      row_.record = placement::prepared_row(*placement::row_in(row_), target_);
      row_.version = outcome.step.row_version;
      co_return std::nullopt;
    case row_end::settled: row_ = std::move(outcome.seen); co_return std::nullopt;
    case row_end::failed:
      if (outcome.step.what == placement::fragment_outcome::no_capacity)
        co_return no_room(described(address(0)));
      co_return move_refusal{relocate_reason::relocation_failed, {error_kind::internal_failure, "the store cannot carry out the move"}};
    case row_end::refused: co_return unlike(0, "its row has changed");
    case row_end::unknown: break;
  }
  co_return store_silent();
}

placement::aggregate_target target_record::aggregate_target() const {
  placement::aggregate_target to;
  to.id = aggregate_;
  to.generation = aggregate_seen_.record->generation;
  to.relocation = move_;
  to.attempt = target_.attempt;
  to.reservation = target_.reservation;
  to.owner = target_.owner;
  to.node = node_.stamp();
  to.limits = target_.limits;
  to.participants = aggregate_seen_.record->participants;
  return to;
}

task<refused> target_record::reserve_aggregate(unique_function<bool()> given_up) {
  for (;;) {
    auto decided = placement::reserve_aggregate_move(aggregate_seen_, aggregate_target());
    if (std::holds_alternative<placement::already_prepared>(decided)) {
      reserved_ = true;
      co_return std::nullopt;
    }
    auto* step = std::get_if<placement::fragment>(&decided);
    if (step == nullptr)
      co_return unlike(0, "its aggregate has changed");
    auto applying = host_.repository->apply(std::move(*step));
    const auto applied = co_await std::move(applying);
    reserved_ = reserved_ || applied.what == placement::fragment_outcome::not_applied;
    if (applied.what == placement::fragment_outcome::no_capacity)
      co_return no_room(described(address(0)));
    if (given_up() && applied.what != placement::fragment_outcome::applied)
      co_return store_silent();
    auto reading = host_.repository->read<placement::aggregate_record>(placement::aggregate_key(aggregate_)); // with the new version
    const auto outcome = co_await std::move(reading);
    if (const auto* seen = placement::seen_in(outcome)) {
      if (!seen->record)
        co_return unlike(0, "its aggregate is gone");
      aggregate_seen_ = *seen;
    }
    if (applied.what != placement::fragment_outcome::applied) {
      auto pausing = placement::pause_before_retry(*host_.infra, *host_.random);
      co_await std::move(pausing);
    }
  }
}

// -- the change of owner ----------------------------------------------------------------------------------------------

task<std::optional<authority_generation>> target_record::commit(std::optional<placement::spot_membership> membership,
                                                                unique_function<bool()> given_up) {
  return aggregate_ ? commit_aggregate(std::move(given_up)) : commit_row(std::move(membership), std::move(given_up));
}

task<std::optional<authority_generation>> target_record::commit_row(std::optional<placement::spot_membership> membership,
                                                                    unique_function<bool()> given_up) {
  row_change change;
  change.id = address(0);
  change.seen = row_;
  change.judge = [this, version = row_.version, membership](const placement::observed_object& seen) -> row_judgement {
    const auto* row = placement::row_in(seen);
    if (row != nullptr && row->move && row->move->relocation == move_ && row->owner == target_.owner
        && row->move->stage >= placement::move_stage::committed)
      return row_end::settled; // its answer was lost (L-149)
    if (seen.version != version)
      return row_end::refused;
    return judged(placement::change_owner(seen, target_, membership));
  };
  change.give_up = [this, &given_up](bool) { return host_.token() != target_.owner || given_up(); };
  auto changing = change_row(host_, std::move(change));
  const auto outcome = co_await std::move(changing);
  if (outcome.how != row_end::applied && outcome.how != row_end::settled)
    co_return std::nullopt;
  reserved_ = false;
  co_return outcome.how == row_end::applied ? outcome.step.numbers.authority : placement::row_in(outcome.seen)->authority;
}

task<std::optional<authority_generation>> target_record::commit_aggregate(unique_function<bool()> given_up) {
  const auto version = aggregate_seen_.version;
  auto seen = aggregate_seen_;
  for (;;) {
    if (seen.record && seen.record->owner == target_.owner && seen.record->move && seen.record->move->relocation == move_
        && seen.record->move->stage >= placement::move_stage::committed) { // its answer was lost (L-149)
      reserved_ = false;
      co_return seen.record->authority;
    }
    if (seen.version != version)
      co_return std::nullopt;
    if (host_.ownership->held()) {
      auto decided = placement::change_aggregate_owner(seen, aggregate_target());
      auto* step = std::get_if<placement::fragment>(&decided);
      if (step == nullptr)
        co_return std::nullopt;
      auto applying = host_.repository->apply(std::move(*step));
      const auto applied = co_await std::move(applying);
      if (applied.what == placement::fragment_outcome::applied) {
        reserved_ = false;
        co_return applied.numbers.authority;
      }
    }
    if (host_.token() != target_.owner || given_up())
      co_return std::nullopt;
    auto pausing = placement::pause_before_retry(*host_.infra, *host_.random);
    co_await std::move(pausing);
    auto reading = host_.repository->read<placement::aggregate_record>(placement::aggregate_key(aggregate_));
    const auto outcome = co_await std::move(reading);
    if (const auto* again = placement::seen_in(outcome))
      seen = *again;
  }
}

// -- behind it --------------------------------------------------------------------------------------------------------

void target_record::release() {
  if (reserved_)
    start_coroutine(release_all(), [self = shared_from_this()](result<void>) {});
}

task<void> target_record::release_all() {
  const auto until = host_.time->now() + release_patience;
  if (!aggregate_) {
    row_change change;
    change.id = address(0);
    change.judge = [this](const placement::observed_object& seen) -> row_judgement {
      const auto* row = placement::row_in(seen);
      if (row == nullptr || !row->move || row->move->relocation != move_ || row->move->attempt != target_.attempt
          || row->move->stage != placement::move_stage::prepared)
        return row_end::settled;
      return judged(placement::release_move(seen, target_.kind, target_.id, move_, target_.attempt));
    };
    change.give_up = [this, until](bool) { return host_.time->now() >= until; };
    auto changing = change_row(host_, std::move(change));
    co_await std::move(changing);
    co_return;
  }
  for (;;) {
    auto reading = host_.repository->read<placement::aggregate_record>(placement::aggregate_key(aggregate_));
    const auto outcome = co_await std::move(reading);
    if (const auto* seen = placement::seen_in(outcome)) {
      auto decided = placement::release_aggregate_move(*seen, move_, target_.attempt);
      auto* step = std::get_if<placement::fragment>(&decided);
      if (step == nullptr)
        co_return;
      auto applying = host_.repository->apply(std::move(*step));
      if ((co_await std::move(applying)).what == placement::fragment_outcome::applied)
        co_return;
    }
    if (host_.time->now() >= until)
      co_return;
    auto pausing = placement::pause_before_retry(*host_.infra, *host_.random);
    co_await std::move(pausing);
  }
}

void target_record::settle() {
  if (aggregate_)
    start_coroutine(dissolve(), [self = shared_from_this()](result<void>) {});
}

/// Until then nobody joins or leaves, and each look at a member costs a second one.
task<void> target_record::dissolve() {
  for (;;) {
    if (host_.ownership->held()) {
      auto dissolving = placement::dissolve(*host_.repository, aggregate_, target_.owner);
      if (co_await std::move(dissolving) != placement::step_end::failed)
        co_return;
    }
    if (host_.token() != target_.owner || host_.ending())
      co_return;
    auto pausing = placement::pause_before_retry(*host_.infra, *host_.random);
    co_await std::move(pausing);
  }
}

} // namespace zlink::detail
