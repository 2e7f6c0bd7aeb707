// From the intent to move to the captured unit: what must be true before anything stops, the boundary, the seal (L-55 to L-69).
#include "relocation/inventory.hpp"
#include "relocation/source_move.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/membership/member_steps.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/messaging/mesh_links.hpp"
#include "zlink/objects/build_step.hpp"
#include "zlink/placement/pause.hpp"

namespace zlink::detail {

namespace {

constexpr std::chrono::milliseconds look_again_after{1}; // for a boundary that has not come
constexpr std::chrono::milliseconds look_for_room_after{5}; // in the budgets for bytes, which many may wait for

unit_end stays(relocate_reason reason, std::string why) { return {false, reason, std::move(why)}; }

relocation_policy policy_of(const hosted_object& object) {
  return object.is_actor() ? static_cast<const actor_object&>(object).factory().policy : static_cast<const spot_object&>(object).factory().policy;
}
std::optional<unit_end> refuse_fixed(const hosted_object& object) {
  if (policy_of(object) != relocation_policy::disable)
    return std::nullopt;
  return stays(relocate_reason::relocation_disabled, described(object.address()) + " never leaves its node");
}

} // namespace

// -- before anything stops --------------------------------------------------------------------------------------------

/// The store says that this move is under way, so that the target finds out whether it still is (S-96). Work goes on.
task<std::optional<unit_end>> source_move::prepare() {
  host_.moving.step(move_step::preparing, address);
  if (auto fixed = refuse_fixed(*unit_.lead))
    co_return fixed;
  if (const auto link = unit_.node->links->ready_link(target_.node_rid); !link || link->peer().lifecycle != target_.lifecycle)
    co_return stays(relocate_reason::target_unavailable, "no link to node \"" + target_.node_rid + '"'); // L-55
  if (is_claimed_at_seal()) {
    auto asking = await_store();
    co_return co_await std::move(asking);
  }
  if (!unit_.lead->begin_move())
    co_return stays(relocate_reason::relocation_failed, described(address) + " is moving already");
  if (unit_.kind == unit_kind::spot_wide)
    co_return std::nullopt; // who moves with it is known at the seal
  for (;;) {
    auto preparing = record_->prepare(deadline_);
    const auto end = co_await std::move(preparing);
    if (end == source_record::prepare_end::done)
      co_return std::nullopt;
    const bool late = host_.time->now() >= deadline_ || ended_;
    if (end != source_record::prepare_end::pending || late) {
      start_forgetting(); // also what comes through later
      auto clearing = until_forgotten();
      co_await std::move(clearing);
      co_return stays(late ? relocate_reason::deadline_exceeded
                      : end == source_record::prepare_end::refused ? relocate_reason::relocation_failed
                                                                   : relocate_reason::store_unavailable,
                      "the row of " + described(address) + " could not be prepared");
    }
    auto pausing = placement::pause_before_retry(*host_.infra, *host_.random); // its first message has not been served yet (L-199)
    co_await std::move(pausing);
  }
}

/// Until the seal a Join may have the Actor, and commits it as if nobody wanted to move it (J-160); so its row says nothing of
/// the move before. But nothing stops for a store that does not answer.
task<std::optional<unit_end>> source_move::await_store() {
  for (;;) {
    auto reading = record_->can_be_read();
    if (co_await std::move(reading))
      co_return std::nullopt;
    if (const bool late = host_.time->now() >= deadline_; late || ended_)
      co_return stays(late ? relocate_reason::deadline_exceeded : relocate_reason::store_unavailable,
                      "the row of " + described(address) + " could not be read");
    auto pausing = placement::pause_before_retry(*host_.infra, *host_.random);
    co_await std::move(pausing);
  }
}

/// Of a SpotWide Spot: all who are members at the seal, in one aggregate if there are any (L-10, S-88).
task<std::optional<unit_end>> source_move::prepare_all() {
  if (unit_.kind != unit_kind::spot_wide && !is_claimed_at_seal())
    co_return std::nullopt;
  std::vector<counted_ptr<hosted_object>> all;
  for (const auto& one : parts_) {
    if (auto fixed = refuse_fixed(*one.object)) // of all or of none (L-59)
      co_return fixed;
    all.push_back(one.object);
  }
  auto preparing = all.size() == 1 ? record_->prepare(deadline_) : record_->prepare_all(std::move(all), deadline_);
  switch (co_await std::move(preparing)) {
    case source_record::prepare_end::done: co_return std::nullopt;
    case source_record::prepare_end::unknown:
      co_return stays(host_.time->now() >= deadline_ ? relocate_reason::deadline_exceeded : relocate_reason::store_unavailable,
                      "the rows of " + described(address) + " and its members could not be prepared");
    default:
      co_return stays(relocate_reason::relocation_failed, "a row of " + described(address) + " and its members is not what it should be");
  }
}

// -- the boundary -----------------------------------------------------------------------------------------------------

/// False: it did not come in time, and nothing has stopped.
task<bool> source_move::seal() {
  host_.moving.step(move_step::sealing, address);
  auto* const spot = unit_.lead->is_actor() ? nullptr : static_cast<spot_object*>(unit_.lead.get());
  for (;;) {
    auto waiting_for_room = until_room();
    co_await std::move(waiting_for_room);
    auto trying = try_in_turn(spot);
    if (co_await std::move(trying)) {
      sealed_ = host_.time->now();
      host_.moving.step(move_step::sealed, address);
      co_return true;
    }
    leave_pace(); // one that waits for its boundary holds nobody up (L-222)
    const auto now = host_.time->now();
    const bool other = is_claimed_at_seal() && unit_kind_of(*unit_.lead) != unit_.kind; // a Join was faster
    if (now >= deadline_ || ended_ || unit_.lead->fenced() || host_.ending() || other)
      co_return false;
    auto waiting = wake_.until(std::min(deadline_, now + look_again_after));
    co_await std::move(waiting);
  }
}

/// Where the budgets are full, it works on until there is room, or no time is left (L-56).
task<void> source_move::until_room() {
  auto& pace = host_.moving.pace;
  while (!unit_.join && pace.is_full(target_.node_rid) && host_.time->now() < deadline_ && !ended_ && !host_.ending()) {
    leave_pace();
    auto waiting = wake_.until(std::min(deadline_, host_.time->now() + look_for_room_after));
    co_await std::move(waiting);
  }
}

/// A handler that holds the gate may outlast the deadline: the unit does not start then, without waiting for a turn (L-48, L-50).
task<bool> source_move::try_in_turn(spot_object* spot) {
  struct attempt_state {
    std::atomic<bool> claimed{false}; ///< by the turn, or by who has given it up
    std::optional<bool> sealed;
  };
  auto state = std::make_shared<attempt_state>();
  unit_.lead->submit_step(std::make_unique<turn_step>([self = shared_from_this(), spot, state](execution_object& object) {
    if (state->claimed.exchange(true, std::memory_order_acq_rel))
      return;
    const bool sealed = self->try_seal(spot, static_cast<hosted_object&>(object));
    self->host_.infra->post([self, state, sealed] {
      state->sealed = sealed;
      self->wake_.wake();
    });
  }));
  while (!state->sealed) {
    const bool late = host_.time->now() >= deadline_ || ended_ || host_.ending();
    if (late && !state->claimed.exchange(true, std::memory_order_acq_rel))
      co_return false;
    auto waiting = wake_.until(late ? steady_time::max() : deadline_);
    co_await std::move(waiting);
  }
  co_return *state->sealed;
}

/// In a turn of the unit's gate. What it says is true as long as the turn lasts, so the seal is part of it.
bool source_move::try_seal(spot_object* spot, hosted_object& lead) {
  if (lead.fenced())
    return false;
  if (spot != nullptr && spot->factory().application_signaled && !owes_completion_) {
    spot->at_signalled_boundary([self = shared_from_this(), spot] {
      self->owes_completion_ = true; // from here on no new handler run begins (L-50)
      auto& members = spot->members();
      for (auto place = members.next(0); place != spot_members::nobody; place = members.next(place + 1))
        if (auto member = members.who(place); &member->home() == &spot->home())
          member->set_open(false);
      self->host_.infra->post([self] { self->wake_.wake(); });
    });
    return false;
  }
  if (!lead.at_boundary(current_run()) || !gather_parts(lead))
    return false;
  std::vector<ingress_hold::addressee> addressees;
  for (const auto& one : parts_)
    addressees.push_back({one.object->address(), one.object->generation(), one.object->authority(), one.object->owned_since()});
  hold_ = new_counted<ingress_hold>(*unit_.node, id, std::move(addressees));
  detours_.clear();
  for (std::uint32_t i = 0; i < parts_.size(); ++i) {
    detours_.push_back(hold_->part(i));
    seal_part(i);
  }
  return true;
}

/// False: somebody of the unit has something under way, or is on his way in or out.
bool source_move::gather_parts(hosted_object& lead) {
  parts_.clear();
  if (lead.is_actor()) {
    if (is_claimed_at_seal() && !claim(static_cast<actor_object&>(lead)))
      return false;
    parts_.push_back({counted_ptr<hosted_object>::share(&lead), {}});
    return true;
  }
  parts_.push_back({counted_ptr<hosted_object>::share(&lead), {}});
  if (unit_.kind == unit_kind::instance_spot)
    return true;
  auto& members = static_cast<spot_object&>(lead).members();
  if (unit_.kind == unit_kind::per_actor_spot)
    return !members.expecting(); // a Join that is under way ends here (L-152)
  bool all_rest = !members.expecting();
  for (auto place = members.next(0); all_rest && place != spot_members::nobody; place = members.next(place + 1)) {
    auto member = members.who(place);
    all_rest = &member->home() == &lead.home() && member->at_boundary(nullptr) && member->begin_change();
    if (all_rest)
      parts_.push_back({counted_ptr<hosted_object>{member}, {}});
  }
  if (!all_rest)
    let_parts_go();
  return all_rest;
}

/// Of a Join and a move one has it, and the other comes behind that or not at all (J-160, J-161, J-163).
bool source_move::claim(actor_object& actor) {
  if (!actor.begin_change())
    return false;
  if (unit_kind_of(actor) == unit_.kind && actor.begin_move())
    return true;
  actor.end_change();
  return false;
}

void source_move::let_parts_go() {
  for (const auto& one : parts_)
    if (one.object->is_actor())
      static_cast<actor_object&>(*one.object).end_change();
  parts_.clear();
}

/// Reception goes on, at the hold; ticks are not admitted any more (L-63).
void source_move::seal_part(std::uint32_t index) {
  auto& object = *parts_[index].object;
  if (index != 0)
    static_cast<void>(object.begin_move()); // the first has said so before
  host_.objects.divert(object.address(), detours_[index]); // first: nobody finds it sealed with nothing in its place
  object.application_word().set(admission_word::sealed_bit);
  object.set_open(false);
  if (object.has_timers())
    object.timers().stop();
  hold_->put_first(index, host_.waiting->take(object));
}

/// The unit rests: so a handler that took its time has used nothing of the time of a seal (L-60).
task<std::optional<unit_end>> source_move::seal_sessions() {
  for (std::uint32_t i = 0; i < parts_.size(); ++i)
    sessions_->add(i, *parts_[i].object);
  const auto due = std::min(deadline_, host_.time->now() + host_.options.session_relocation_seal_timeout);
  auto installing = sessions_->install(due, [self = shared_from_this()] { return self->ended_; });
  if (auto why = co_await std::move(installing))
    co_return stays(host_.time->now() >= deadline_ ? relocate_reason::deadline_exceeded : relocate_reason::relocation_failed, std::move(*why));
  host_.moving.step(move_step::sessions_sealed, address);
  co_return std::nullopt;
}

// -- capture ----------------------------------------------------------------------------------------------------------

task<std::optional<unit_end>> source_move::capture() {
  std::stop_source late;
  host_.infra->post_after(std::max(deadline_ - host_.time->now(), steady_duration{0}), [late]() mutable { late.request_stop(); });
  auto capturing = as_result(run_callback<bytes>(*unit_.lead, *host_.infra, "capture", [self = shared_from_this(), late](execution_object&) {
    return self->capture_in_turn(late.get_token());
  }));
  auto captured = co_await std::move(capturing);
  if (!captured) {
    const bool too_late = host_.time->now() >= deadline_; // L-32
    co_return stays(too_late ? relocate_reason::deadline_exceeded : relocate_reason::state_incompatible,
                    "capture of " + described(address) + ": " + (captured.is_cancelled() ? "cancelled" : captured.error().message()));
  }
  payload_ = std::move(*captured);
  host_.moving.step(move_step::captured, address);
  co_return std::nullopt;
}

/// In turns of the unit's gate.
task<bytes> source_move::capture_in_turn(std::stop_token cancel) {
  std::vector<std::optional<bytes>> states(parts_.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    auto& object = *parts_[i].object;
    if (object.fenced())
      throw operation_failed{error{error_kind::unavailable, described(object.address()) + " was lost while it was to move"}};
    if (policy_of(object) != relocation_policy::preserve_state)
      continue;
    auto capturing = capture_state(object, cancel);
    states[i] = co_await std::move(capturing);
  }
  co_return encode(capture_all(std::move(states)));
}

task<bytes> source_move::capture_state(hosted_object& object, std::stop_token cancel) {
  if (object.is_actor()) {
    auto& actor = static_cast<actor_object&>(object);
    return actor.factory().capture(actor.factory().adapter.get(), *actor.application(), std::move(cancel));
  }
  auto& spot = static_cast<spot_object&>(object);
  return spot.factory().capture(spot.factory().adapter.get(), *spot.application(), std::move(cancel));
}

carried_unit source_move::capture_all(std::vector<std::optional<bytes>> states) {
  carried_unit all;
  all.owes_completion = owes_completion_;
  if (unit_.join) {
    auto& join = all.join.emplace();
    join.spot_id = unit_.join->spot_id;
    join.spot_generation = unit_.join->spot_generation.value;
    join.operation_id = unit_.join->operation_id;
    if (unit_.join->reply) {
      const auto* first = reinterpret_cast<const std::byte*>(unit_.join->reply->data());
      join.reply.emplace(first, first + unit_.join->reply->size());
    }
  }
  for (std::uint32_t i = 0; i < parts_.size(); ++i) {
    auto part = capture_work(i);
    part.type = parts_[i].object->type();
    part.session = sessions_->of(i);
    part.has_state = states[i].has_value();
    if (states[i])
      part.state = std::move(*states[i]);
    all.parts.push_back(std::move(part));
  }
  return all;
}

/// What has not started leaves the lanes: from here on it is this move's, which puts it back if the unit stays (L-65, L-161).
carried_part source_move::capture_work(std::uint32_t index) {
  carried_part to;
  auto& from = parts_[index];
  const auto first = captured_.size();
  for (auto* r : from.object->take_unstarted())
    captured_.push_back({r, index, 0});
  if (from.object->has_timers())
    from.timers = from.object->timers().snapshot(from.object->home().now());
  for (const auto& timer : from.timers)
    to.timers.push_back(carried(timer));
  auto& replies = unit_.node->links->replies();
  for (auto i = first; i < captured_.size(); ++i) {
    auto& kept = captured_[i];
    carried_work work;
    if (kept.r->kind == record_kind::tick) {
      const auto* registration = static_cast<const object_timer*>(kept.r->about.get());
      const auto timer = std::ranges::find(from.timers, registration, &timer_snapshot::registration);
      if (timer == from.timers.end())
        continue; // cancelled: it would not fire here either (L-81)
      work.is_tick = true;
      work.timer = static_cast<std::uint32_t>(timer - from.timers.begin());
    } else {
      work.frame = frame_of(kept, from.object->address(), path_of(kept, *unit_.node, replies, number_), host_);
    }
    to.work.push_back(std::move(work));
  }
  return to;
}

} // namespace zlink::detail
