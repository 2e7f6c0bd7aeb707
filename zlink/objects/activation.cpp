#include "zlink/objects/activation.hpp"

#include "zlink/messaging/body_codec.hpp"
#include "zlink/objects/activation_attempt.hpp"
#include "zlink/objects/build_step.hpp"
#include "zlink/objects/first_message.hpp"
#include "zlink/objects/row_change.hpp"
#include "zlink/placement/digest.hpp"
#include "zlink/placement/pause.hpp"

namespace zlink::detail {

namespace {

constexpr std::chrono::hours root_retention{24}; // S-125
constexpr std::chrono::seconds abort_patience{5}; // whose end somebody waits for

error store_failed(const std::string& what) {
  return {error_kind::internal_failure, what + ": the store did not carry it out"};
}

error no_room_for(const spot_object& object) {
  return {error_kind::unavailable, "this node has no capacity for another spot of type \"" + object.factory().type + '"'};
}

std::string reference_of(unique_id id) { return "root/" + format_uuid_v4(id); }

/// What the row says a moment later; `seen` stays if the store does not tell.
task<void> look_again(host_runtime& host, std::string id, placement::observed_object& seen) {
  auto pausing = placement::pause_before_retry(*host.infra, *host.random);
  co_await std::move(pausing);
  auto reading = host.repository->read_object(id);
  auto outcome = co_await std::move(reading);
  if (const auto* found = placement::seen_in(outcome))
    seen = *found;
}

/// Waits in the line of a bound inside the infrastructure unit.
class permit_waiter final : public limit_waiter {
public:
  explicit permit_waiter(infrastructure& unit) : entered_(new_counted<operation<void>>()) {
    entered_->dispatcher = unit.unit();
  }
  void on_entered() noexcept override { entered_->set(result<void>{}); }
  task<void> entered() { return task<void>{entered_}; }

private:
  counted_ptr<operation<void>> entered_;
};

} // namespace

counted_ptr<spot_object> activation::make_object(node_runtime& node, const spot_factory& factory, std::string id) {
  return new_counted<spot_object>(node.home, *this, host_.domain, new_counted<gate>(host_.domain), factory,
                                  std::move(id));
}

activation::begun activation::begin(node_runtime& node, const spot_factory& factory, const std::string& id, record* first,
                                    circumstances known, std::optional<error>& why) {
  // All that is needed of the record is taken from it here: in the lane it may end before its activation does.
  beginning taken;
  taken.known = std::move(known);
  if (first->kind == record_kind::request)
    taken.first_until = first->deadline;
  try {
    taken.envelope = stored_form(*first, id, factory);
  } catch (...) {
    why.emplace(error_kind::invalid_operation, text_of_current_exception()); // as where it has to travel (M-4)
    return begun::unencodable;
  }
  auto object = make_object(node, factory, id);
  if (!host_.objects.insert(object, first))
    return begun::no;
  host_.infra->post([this, object, &node, taken = std::move(taken)]() mutable {
    start_coroutine(run(std::move(object), &node, std::move(taken)), [](result<void>) {});
  });
  return begun::yes;
}

std::string activation::stored_form(record& first, const std::string& id, const spot_factory& factory) const {
  body_encoder encoder{first.body, host_.codecs, &host_.system};
  first_message root;
  encoder.encode(root.data);
  root.spot_id = id;
  root.stable_type = factory.type;
  const auto operation = host_.random->next_id();
  root.operation_high = operation.high;
  root.operation_low = operation.low;
  root.request = first.kind == record_kind::request;
  root.packet_name = encoder.packet_name();
  root.content_type = encoder.content_type();
  if (first.extra) {
    const auto metadata = first.extra->metadata.encoded();
    root.metadata.assign(metadata.begin(), metadata.end());
  }
  const auto envelope = encode(root);
  return {reinterpret_cast<const char*>(envelope.data()), envelope.size()};
}

task<void> activation::run(counted_ptr<spot_object> object, node_runtime* node, beginning begun) {
  attempt a{std::move(object), *node};
  a.due = host_.time->now() + node->settings.request_timeout;
  a.first_until = begun.first_until;
  a.refused = std::move(begun.known.refused);
  if (a.first_until != steady_time::max()) // as long as its caller waits, if that is longer (S-73, S-127)
    a.due = std::max(a.due, a.first_until);
  a.reservation = host_.random->next_id();
  if (host_.ending()) { // its Spots have been told to close, and maybe all of them have
    discard(*a.object, {error_kind::shutting_down, "the host is shutting down"});
    co_return;
  }
  host_.trace(*a.object, "activating");
  if (begun.known.seen) {
    a.seen = std::move(*begun.known.seen);
  } else {
    auto reading = host_.repository->read_object(a.object->id());
    auto outcome = co_await std::move(reading);
    const auto* found = placement::seen_in(outcome);
    if (found == nullptr) {
      discard(*a.object, {error_kind::internal_failure, "the store does not tell who owns the id"});
      co_return;
    }
    a.seen = *found;
  }
  auto preparing = prepare(a, std::move(begun.envelope));
  auto failed = co_await std::move(preparing);
  auto finishing = finish(a, std::move(failed));
  co_await std::move(finishing);
}

task<void> activation::finish(attempt& a, std::optional<error> failed) {
  if (!failed) {
    activated.fetch_add(1, std::memory_order_relaxed);
    unretired_.insert_or_assign(a.object->generation().value, std::move(a.seen));
    a.object->watch_first_record();
    open(*a.object);
    co_return;
  }
  bool gone = true;
  a.object->return_place(); // before the store shows that it is free
  if (a.reserved) {
    auto aborting = abort(a);
    gone = co_await std::move(aborting);
  }
  if (a.root_stored && gone) // else it is gone on with later (C-98)
    host_.repository->forget_payload(a.root);
  if (a.no_room && !ended_meanwhile(a)) {
    auto passing = pass_on(a);
    co_await std::move(passing);
  } else {
    discard(*a.object, std::move(*failed));
  }
}

task<std::optional<error>> activation::prepare(attempt& a, std::string envelope) {
  if (a.seen.record) // somebody else's: the loser creates nothing and forwards nothing (C-100)
    co_return error{error_kind::unavailable, "another activation of \"" + a.object->id() + "\" came first"};
  a.no_room = !a.object->take_place();
  if (a.no_room)
    co_return no_room_for(*a.object);
  auto preserving = preserve_first(a, std::move(envelope));
  if (auto failed = co_await std::move(preserving))
    co_return failed;
  if (auto ended = ended_meanwhile(a))
    co_return ended;
  auto reserving = reserve(a);
  if (auto failed = co_await std::move(reserving))
    co_return failed;
  if (auto ended = ended_meanwhile(a))
    co_return ended;
  if (a.forsaken(host_.time->now()))
    co_return error{error_kind::deadline_exceeded, "the call that was to wake \"" + a.object->id() + "\" has ended"};
  auto becoming = become_ready(a);
  co_return co_await std::move(becoming);
}

/// The Spot was told to close before it was there: a drain that has reached its deadline (L-251).
std::optional<error> activation::ended_meanwhile(const attempt& a) const {
  if (!a.object->application_word().has(admission_word::sealed_bit))
    return std::nullopt;
  return host_.ending() ? error{error_kind::shutting_down, "the host is shutting down"}
                        : error{error_kind::unavailable, '"' + a.object->id() + "\" was closed before it came to life"};
}

/// From the reserved row to the active one.
task<std::optional<error>> activation::become_ready(attempt& a) {
  auto building = build(*a.object, a.node, std::nullopt);
  auto built = co_await std::move(building);
  if (!built)
    co_return built.error();
  if (!a.reserved)
    co_return std::nullopt; // resumed behind its commit
  if (auto ended = ended_meanwhile(a))
    co_return ended;
  auto committing = commit(a);
  co_return co_await std::move(committing);
}

task<std::optional<error>> activation::preserve_first(attempt& a, std::string envelope) {
  a.root.reference = reference_of(host_.random->next_id());
  a.root.digest = placement::sha256(envelope);
  a.root.size = envelope.size();
  // A store that does not answer is asked again for half of the time: the rest is left to say so (S-127, S-130).
  const auto now = host_.time->now();
  const auto until = now + (std::min(a.due, a.first_until) - now) / 2;
  auto storing = host_.repository->store_payload(a.root, std::move(envelope), root_retention, until);
  a.root_stored = co_await std::move(storing);
  if (!a.root_stored)
    co_return store_failed("preserving the first message");
  co_return std::nullopt;
}

task<std::optional<error>> activation::reserve(attempt& a) {
  for (;;) {
    if (!host_.ownership->held())
      co_return error{error_kind::unavailable, "this host does not hold its ownership lease at the moment"};
    placement::reserve_request wish;
    wish.kind = placement::object_kind::instance_spot;
    wish.id = a.object->id();
    wish.stable_type = a.object->factory().type;
    wish.reservation = a.reservation;
    wish.target_owner = host_.token();
    wish.target = a.node.stamp();
    wish.limits = a.node.limits_for(a.object->factory());
    wish.content = a.root;
    auto decided = placement::reserve(a.seen, wish);
    auto* step = std::get_if<placement::fragment>(&decided);
    if (step == nullptr)
      co_return error{error_kind::unavailable, "the id \"" + a.object->id() + "\" was taken meanwhile"};
    auto applying = host_.repository->apply(std::move(*step));
    const auto applied = co_await std::move(applying);
    switch (applied.what) {
      case placement::fragment_outcome::applied: {
        a.reserved = true;
        a.object->set_generations(applied.numbers.object, applied.numbers.authority);
        a.seen.record = placement::reserved_row(wish, applied.numbers);
        a.seen.version = applied.row_version;
        co_return std::nullopt;
      }
      case placement::fragment_outcome::exhausted:
        co_return error{error_kind::internal_failure, "no generation is left for the id \"" + wish.id + '"'};
      case placement::fragment_outcome::no_capacity:
        a.no_room = true;
        co_return no_room_for(*a.object);
      case placement::fragment_outcome::conflict: {
        auto renewing = a.node.registration->look_at_own(a.due); // it may be what has changed (S-73)
        co_await std::move(renewing);
        auto reading = host_.repository->read_object(a.object->id());
        auto outcome = co_await std::move(reading);
        const auto* found = placement::seen_in(outcome);
        if (found == nullptr)
          co_return store_failed("reserving the id");
        a.seen = *found;
        if (a.seen.record)
          co_return error{error_kind::unavailable, "another activation of \"" + wish.id + "\" came first"};
        if (!may_retry(a.due))
          co_return error{error_kind::deadline_exceeded, "the id could not be reserved in time"};
        auto pausing = placement::pause_before_retry(*host_.infra, *host_.random);
        co_await std::move(pausing);
        break;
      }
      default: co_return store_failed("reserving the id");
    }
  }
}

task<std::optional<error>> activation::commit(attempt& a) {
  row_change change;
  change.id = a.object->id();
  change.seen = std::move(a.seen);
  change.judge = [this, &a](const placement::observed_object& seen) {
    const auto* row = placement::row_in(seen);
    if (row != nullptr && row->generation == a.object->generation() && row->state == placement::allocation_state::active)
      return row_judgement{row_end::settled}; // an earlier attempt got through late
    return judged(placement::commit(seen, end_of(a), std::nullopt)); // with the node's revision of now (C-39)
  };
  change.give_up = [this, &a](bool) { return !host_.ownership->held() || !may_retry(a.due); };
  auto changing = change_row(host_, std::move(change));
  auto outcome = co_await std::move(changing);
  a.seen = std::move(outcome.seen);
  switch (outcome.how) {
    case row_end::applied: {
      auto& row = std::get<placement::row_record>(*a.seen.record);
      row.state = placement::allocation_state::active;
      row.pending.reset();
      a.seen.version = std::move(outcome.step.row_version);
      co_return std::nullopt;
    }
    case row_end::settled: co_return std::nullopt;
    case row_end::refused: co_return error{error_kind::unavailable, "the reservation was lost"};
    case row_end::failed: co_return store_failed("publishing the spot");
    case row_end::unknown: break;
  }
  if (!host_.ownership->held()) // the local deadline ends before the lease does at the store (S-40)
    co_return error{error_kind::unavailable, "this host does not hold its ownership lease at the moment"};
  co_return error{error_kind::deadline_exceeded, "the spot could not be published in time"};
}

placement::reservation_end activation::end_of(const attempt& a) const {
  return {a.object->id(), a.reservation, host_.token(), a.node.stamp(), std::nullopt};
}

// A row that nobody ends would occupy its id as long as this host lives (C-104, S-156). True: it is known to be gone. Else
// a later pass over the store meets it again (S-116).
task<bool> activation::abort(attempt& a) {
  row_change change;
  change.id = a.object->id();
  change.seen = std::move(a.seen);
  change.judge = [this, &a](const placement::observed_object& seen) {
    const auto* row = placement::row_in(seen);
    if (row == nullptr || row->generation != a.object->generation())
      return row_judgement{row_end::settled};
    return judged(placement::abort(seen, end_of(a)));
  };
  change.give_up = [this, until = host_.time->now() + abort_patience](bool) {
    return host_.time->now() >= until || (host_.ending() && !host_.ownership->held());
  };
  auto changing = change_row(host_, std::move(change));
  const auto outcome = co_await std::move(changing);
  co_return outcome.how == row_end::applied || outcome.how == row_end::settled;
}

task<void> activation::enter(node_runtime& node) {
  permit_waiter waiter{*host_.infra};
  if (node.activations->enter(waiter))
    co_return;
  auto entering = waiter.entered();
  co_await std::move(entering);
}

task<result<spot_create_response>> activation::build(spot_object& object, node_runtime& node,
                                                     std::optional<message> request) {
  if (!object.take_place()) // whatever the store says (C-37)
    co_return no_room_for(object);
  auto entering = enter(node);
  co_await std::move(entering);
  auto building = run_build_step(object, *host_.infra, std::move(request));
  auto outcome = co_await std::move(building);
  node.activations->leave();
  if (!outcome || !outcome->accepted)
    object.return_place(); // before the store shows that it is free
  co_return outcome;
}

bool activation::may_retry(steady_time due) const { return host_.time->now() < due; }

void activation::open(spot_object& object) {
  host_.trace(object, "created");
  host_.find_node(object.mesh_name())->subscribed.add(object);
  // Admitted from now on, in the continuation of the commit: no message sent after it ends in not_found (C-88).
  object.application_word().clear(admission_word::staging_bit);
  object.submit_step(std::make_unique<turn_step>([](execution_object& target) {
    static_cast<spot_object&>(target).note_work(target.domain().time->now());
    target.set_open(true);
  }));
}

void activation::spot_quiet(spot_object& object) noexcept { host_.closings.quiet(object); }

void activation::first_record_ended(spot_object& object) noexcept {
  host_.infra->post([this, held = counted_ptr<spot_object>::share(&object)]() mutable {
    start_coroutine(retire_root(std::move(held)), [](result<void>) {});
  });
}

task<void> activation::retire_root(counted_ptr<spot_object> object) {
  const auto known = unretired_.find(object->generation().value);
  if (known == unretired_.end())
    co_return; // it ended, and its row with it
  auto seen = std::move(known->second);
  unretired_.erase(known);
  for (;;) {
    auto* row = seen.record ? std::get_if<placement::row_record>(&*seen.record) : nullptr;
    if (row == nullptr || !row->root || row->generation != object->generation())
      co_return;
    if (!host_.ownership->held())
      co_return; // no change past the deadline; the pointer does no harm and goes with the row
    const bool recorded = row->root->cursor != 0;
    const placement::owned_object owned{placement::object_kind::instance_spot, object->id(), host_.token()};
    // First the record that the handler has ended, then the end of the pointer (C-97).
    auto decided = recorded ? placement::retire_root(seen, owned) : placement::advance_cursor(seen, owned, 1);
    auto* step = std::get_if<placement::fragment>(&decided);
    if (step == nullptr)
      co_return;
    auto applying = host_.repository->apply(std::move(*step));
    auto applied = co_await std::move(applying);
    if (applied.what == placement::fragment_outcome::applied) {
      if (recorded) {
        host_.repository->forget_payload(*row->root);
        co_return;
      }
      row->root->cursor = 1;
      seen.version = std::move(applied.row_version);
      continue;
    }
    const bool unclear = applied.what == placement::fragment_outcome::conflict || applied.what == placement::fragment_outcome::not_applied;
    if (!unclear || host_.ending())
      co_return;
    auto looking = look_again(host_, object->id(), seen); // somebody else wrote: the closing mark, a fence
    co_await std::move(looking);
  }
}

} // namespace zlink::detail
