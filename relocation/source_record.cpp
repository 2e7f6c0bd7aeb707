#include "relocation/source_record.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/objects/row_change.hpp"
#include "zlink/placement/aggregates.hpp"
#include "zlink/placement/pause.hpp"

namespace zlink::detail {

namespace {

constexpr std::chrono::seconds forget_patience{10}; // of a host that ends, whose rows go anyway

placement::object_kind object_kind_of(unit_kind kind, const hosted_object& object) noexcept {
  if (object.is_actor())
    return placement::object_kind::actor;
  return kind == unit_kind::instance_spot ? placement::object_kind::instance_spot : placement::object_kind::user_spot;
}

placement::participant participant_of(unit_kind kind, const hosted_object& object) {
  placement::participant one;
  one.kind = object_kind_of(kind, object);
  one.id = std::string{id_in(object.address())};
  one.generation = object.generation();
  one.authority = object.authority();
  one.stable_type = object.type();
  if (object.is_actor())
    one.member_of = static_cast<const actor_object&>(object).membership();
  return one;
}

} // namespace

source_record::source_record(host_runtime& host, unique_id move, unit_kind kind, counted_ptr<hosted_object> lead)
  : host_(host), move_(move), kind_(kind), lead_(std::move(lead)), owner_(host.token()) {}

placement::owned_object source_record::owned() const {
  return {object_kind_of(kind_, *lead_), std::string{id_in(lead_->address())}, owner_};
}

bool source_record::holds_lease() const { return host_.token() == owner_; }

bool source_record::owned_by_another(const placement::row_record* row) const {
  return row == nullptr || row->generation != lead_->generation() || row->authority > lead_->authority();
}

// -- prepare ----------------------------------------------------------------------------------------------------------

task<bool> source_record::can_be_read() {
  auto reading = host_.repository->read_object(lead_->address());
  const auto outcome = co_await std::move(reading);
  co_return placement::seen_in(outcome) != nullptr;
}

task<source_record::prepare_end> source_record::prepare(steady_time until) {
  row_change change;
  change.id = lead_->address();
  change.judge = [this, mine = owned()](const placement::observed_object& seen) -> row_judgement {
    const auto* row = placement::row_in(seen);
    if (row == nullptr || row->generation != lead_->generation() || row->root)
      return row_end::refused;
    if (row->move && row->move->relocation == move_)
      return row_end::settled; // an earlier attempt got through late
    placement::move_progress progress;
    progress.relocation = move_;
    return judged(placement::set_move_progress(seen, mine, std::move(progress)));
  };
  change.give_up = [this, until](bool) { return host_.time->now() >= until; };
  auto changing = change_row(host_, std::move(change));
  const auto outcome = co_await std::move(changing);
  if (outcome.how == row_end::applied || outcome.how == row_end::settled)
    co_return prepare_end::done;
  if (outcome.how == row_end::unknown)
    doubtful_ = outcome.seen.version;
  const auto* row = placement::row_in(outcome.seen);
  if (outcome.how == row_end::refused && row != nullptr && row->generation == lead_->generation() && row->root)
    co_return prepare_end::pending;
  co_return outcome.how == row_end::refused ? prepare_end::refused : prepare_end::unknown;
}

task<source_record::prepare_end> source_record::prepare_all(std::vector<counted_ptr<hosted_object>> parts, steady_time until) {
  std::vector<placement::participant> list;
  for (const auto& part : parts)
    list.push_back(participant_of(kind_, *part));
  const auto encoded = placement::encode_participants(list);
  if (!encoded)
    co_return prepare_end::refused;
  placement::aggregate_request request;
  request.id = host_.random->next_id();
  request.generation = {1};
  request.relocation = move_;
  request.owner = owner_;
  request.node = host_.find_node(lead_->mesh_name())->identity;
  request.slots = encoded->slots;
  request.participants = encoded->root;
  request.authority_before = encoded->authority_before;
  aggregate_ = request.id;
  auto storing = placement::store_participants(*host_.repository, aggregate_, encoded->pages);
  if (co_await std::move(storing) != placement::step_end::done)
    co_return prepare_end::unknown;
  for (;;) {
    auto reading = host_.repository->read<placement::aggregate_record>(placement::aggregate_key(aggregate_));
    const auto outcome = co_await std::move(reading);
    if (const auto* seen = placement::seen_in(outcome)) {
      auto decided = placement::create_aggregate(*seen, request);
      if (std::holds_alternative<placement::already_prepared>(decided))
        break;
      auto* step = std::get_if<placement::fragment>(&decided);
      if (step == nullptr)
        co_return prepare_end::refused;
      auto applying = host_.repository->apply(std::move(*step));
      const auto applied = co_await std::move(applying);
      if (applied.what == placement::fragment_outcome::applied)
        break;
    }
    if (host_.time->now() >= until || !holds_lease())
      co_return prepare_end::unknown;
    auto pausing = placement::pause_before_retry(*host_.infra, *host_.random);
    co_await std::move(pausing);
  }
  for (;;) {
    auto entering = placement::enter_all(*host_.repository, aggregate_, list);
    const auto end = co_await std::move(entering);
    if (end == placement::step_end::done)
      co_return prepare_end::done;
    if (end == placement::step_end::refused || host_.time->now() >= until || !holds_lease())
      co_return end == placement::step_end::refused ? prepare_end::refused : prepare_end::unknown;
    auto pausing = placement::pause_before_retry(*host_.infra, *host_.random);
    co_await std::move(pausing);
  }
}

// -- settle -----------------------------------------------------------------------------------------------------------

task<source_record::fence_end> source_record::fence(unique_function<bool()> given_up) {
  return aggregate_ ? fence_aggregate(std::move(given_up)) : fence_row(std::move(given_up));
}

task<source_record::fence_end> source_record::fence_row(unique_function<bool()> given_up) {
  row_change change;
  change.id = lead_->address();
  bool another = false;
  const auto mine = owned();
  change.judge = [this, &another, &mine](const placement::observed_object& seen) -> row_judgement {
    const auto* row = placement::row_in(seen);
    another = owned_by_another(row);
    if (!another && seen.version == doubtful_)
      return judged(placement::preserve(seen, mine)); // what was sent before and may arrive still comes to nothing (S-156, S-159)
    if (another || !row->move || row->move->relocation != move_ || row->move->stage >= placement::move_stage::committed)
      return row_end::settled;
    if (row->move->stage == placement::move_stage::prepared)
      return judged(placement::release_move(seen, mine.kind, mine.id, move_, row->move->attempt));
    return judged(placement::set_move_progress(seen, mine, std::nullopt));
  };
  change.give_up = [this, &given_up](bool) { return !holds_lease() || given_up(); };
  auto changing = change_row(host_, std::move(change));
  const auto outcome = co_await std::move(changing);
  if (outcome.how == row_end::applied)
    co_return fence_end::won;
  if (outcome.how == row_end::settled)
    co_return another ? fence_end::target_owns : fence_end::won;
  co_return fence_end::unclear;
}

task<source_record::fence_end> source_record::fence_aggregate(unique_function<bool()> given_up) {
  for (;;) {
    if (host_.ownership->held()) {
      auto ending = placement::end_aggregate_move(*host_.repository, aggregate_, owner_);
      const auto end = co_await std::move(ending);
      if (end == placement::step_end::done)
        co_return fence_end::won;
      if (end == placement::step_end::refused) {
        auto looking = is_over();
        if (co_await std::move(looking))
          co_return fence_end::target_owns;
      }
    }
    if (!holds_lease() || given_up())
      co_return fence_end::unclear;
    auto pausing = placement::pause_before_retry(*host_.infra, *host_.random);
    co_await std::move(pausing);
  }
}

task<bool> source_record::is_over() {
  auto reading = host_.repository->read_object(lead_->address());
  const auto outcome = co_await std::move(reading);
  const auto* seen = placement::seen_in(outcome);
  co_return seen != nullptr && owned_by_another(placement::row_in(*seen));
}

void source_record::forget(unique_function<void()> then) {
  start_coroutine(clear(), [self = shared_from_this(), then = std::move(then)](result<void>) mutable { then(); });
}

/// However long the store is away: nobody else takes the mark out, and while it stands the object can neither move nor close
/// nor be joined.
task<void> source_record::clear() {
  const auto given_up = [this, until = host_.time->now() + forget_patience] { return host_.ending() && host_.time->now() >= until; };
  auto fencing = fence(given_up);
  const auto end = co_await std::move(fencing);
  while (aggregate_ && end == fence_end::won && holds_lease()) {
    auto dissolving = placement::dissolve(*host_.repository, aggregate_, owner_);
    if (co_await std::move(dissolving) != placement::step_end::failed || given_up())
      co_return;
    auto pausing = placement::pause_before_retry(*host_.infra, *host_.random);
    co_await std::move(pausing);
  }
}

} // namespace zlink::detail
