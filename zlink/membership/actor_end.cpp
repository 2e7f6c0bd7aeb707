// An Actor goes home, or ends (chapter 05, section 9).
#include "zlink/host/host_runtime.hpp"
#include "zlink/membership/work_count.hpp"
#include "zlink/objects/build_step.hpp"
#include "zlink/objects/entered_call.hpp"
#include "zlink/placement/pause.hpp"

namespace zlink::detail {

namespace {

constexpr std::chrono::milliseconds drain_patience{1'000}; // for handlers that the deadline has just failed

[[noreturn]] void refuse(error_kind kind, std::string why) { throw operation_failed{error{kind, std::move(why)}}; }

error changing_error(const actor_object& actor) {
  return {error_kind::unavailable, described(actor.address()) + " changes its Spot already"};
}

/// Closes admission; what waits for room gets the reason.
void close_admission(host_runtime& host, actor_object& actor, const error& why) {
  actor.application_word().set(admission_word::sealed_bit);
  for (auto& message : host.waiting->take(actor))
    message.fail(why);
}

/// A task of which only the end counts.
task<void> without_value(task<bool> asked) { co_await std::move(asked); }

/// Nothing of it waits, runs or is owed any more. In the unit.
task<void> until_quiet(host_runtime& host, counted_ptr<actor_object> actor) {
  auto quiet = new_counted<operation<void>>();
  quiet->dispatcher = host.infra->unit();
  actor->submit_step(std::make_unique<turn_step>([quiet](execution_object& object) {
    static_cast<actor_object&>(object).when_quiet([quiet] { quiet->set(result<void>{}); });
    object.watch_quiet(true);
  }));
  return task<void>{std::move(quiet)};
}

} // namespace

// -- leave ----------------------------------------------------------------------------------------------------------------------

task<void> memberships::leave(spot_object& spot, actor_object& actor, std::stop_token cancel) {
  const auto timeout = host_.default_request_timeout();
  auto held_spot = counted_ptr<spot_object>::share(&spot);
  auto held = counted_ptr<actor_object>::share(&actor);
  const auto begin = [this, held_spot, held, due = host_.time->now() + timeout] { return leave_here(held_spot, held, due); };
  return without_value(enter_call<bool>(host_, "leave of actor", actor.id(), timeout, std::move(cancel), begin, true));
}

task<bool> memberships::leave_here(counted_ptr<spot_object> spot, counted_ptr<actor_object> actor, steady_time due) {
  const work_count counted{*this};
  if (spot->fenced()) // L-204
    refuse(error_kind::unavailable, described(spot->id()) + " has ended here");
  if (actor->fenced() || actor->spot().get() != spot.get())
    refuse(error_kind::invalid_operation, described(actor->address()) + " is no member of " + described(spot->id()));
  const auto entry = host_.find_node(actor->mesh_name())->entry;
  if (!entry)
    refuse(error_kind::unavailable, "this node's Entry Spot has ended");
  if (!actor->begin_change())
    throw operation_failed{changing_error(*actor)};
  actor->shut();
  auto committing = commit(actor, entry, due);
  if (auto failed = co_await std::move(committing)) {
    reopen(actor);
    throw operation_failed{std::move(*failed)};
  }
  host_.trace(*actor, "left");
  actor->committed({entry->id(), {}}, entry);
  spot->part_busy(); // a handler that runs for the Actor now is one of this Spot
  remove_member(spot, actor);
  start_coroutine(settle_after_leave(actor, spot, entry), [](result<void>) {});
  co_return true;
}

/// Behind whatever of the Actor still runs: the caller's turn may be part of it (J-131).
task<void> memberships::settle_after_leave(counted_ptr<actor_object> actor, counted_ptr<spot_object> from, counted_ptr<spot_object> entry) {
  const work_count counted{*this};
  settling_.insert(actor.get());
  auto resting = until_at_rest(actor, steady_time::max());
  co_await std::move(resting);
  auto moving = move_in(actor, {}, entry, false);
  co_await std::move(moving);
  tell_left(actor, from);
  auto opening = run_turn<bool>(*actor, *host_.infra, [](execution_object& object) {
    end_change(object);
    return true;
  });
  co_await std::move(opening);
  settling_.erase(actor.get()); // not before: whoever ends it meanwhile would be told that it changes its Spot (J-130)
}

// -- destroy --------------------------------------------------------------------------------------------------------------------

task<void> memberships::destroy_in(spot_object& entry, actor_object& actor, std::stop_token cancel) {
  const auto timeout = host_.default_request_timeout();
  auto held = counted_ptr<actor_object>::share(&actor);
  return without_value(enter_call<bool>(
    host_, "end of actor", actor.id(), timeout, std::move(cancel),
    [this, held, by = asker::here(), at = counted_ptr<spot_object>::share(&entry), due = host_.time->now() + timeout]() -> task<bool> {
      if (!held->fenced() && held->spot().get() != at.get() && !held->application_word().has(admission_word::sealed_bit))
        return make_ready_task(result<bool>{error{error_kind::invalid_operation, described(held->address()) + " does not belong to this Entry Spot"}});
      return destroy_here(held, due, by);
    }));
}

memberships::asker memberships::asker::here() noexcept {
  const auto* t = current_turn();
  if (t == nullptr)
    return {};
  return {t->object, t->home, dynamic_cast<const spot_object*>(&t->object->whole()) != nullptr};
}

task<bool> memberships::destroy_here(counted_ptr<actor_object> actor, steady_time due, asker by) {
  if (actor->is_moving())
    refuse(error_kind::unavailable, described(actor->address()) + " is moving to another node");
  if (actor->fenced() || actor->application_word().has(admission_word::sealed_bit))
    co_return true; // somebody has ended it (J-137)
  auto at = actor->spot();
  if (!at || at->factory().kind != spot_kind::entry)
    refuse(error_kind::invalid_operation, described(actor->address()) + " belongs to a User Spot; it has to leave before it ends");
  const bool on_its_way = settling_.contains(actor.get()); // whoever was told that it has left may end it (J-130)
  // Its own handler, whoever holds the gate that it needs, and callbacks of Spots about it: the end waits for them.
  const bool waits_for_asker = by.object == actor.get() || by.home == &actor->home()
                               || (by.is_spot && (on_its_way || actor->in_a_notice()));
  if (on_its_way && waits_for_asker) {
    take_nothing_more(*actor);
    start_coroutine(end_when_settled(std::move(actor), due), [](result<void>) {});
    co_return true;
  }
  while (!actor->begin_change()) {
    if (!on_its_way || host_.time->now() >= due)
      throw operation_failed{changing_error(*actor)};
    auto pausing = placement::pause(*host_.infra, std::chrono::milliseconds{1});
    co_await std::move(pausing);
  }
  take_nothing_more(*actor);
  auto ending = end(actor, std::move(at), due, true);
  if (waits_for_asker) {
    start_coroutine(std::move(ending), [](result<void>) {});
    co_return true;
  }
  co_await std::move(ending);
  co_return true;
}

void memberships::take_nothing_more(actor_object& actor) {
  close_admission(host_, actor, {error_kind::not_found, "there is no " + described(actor.address())});
}

/// The change under way comes to its end first: who has left arrives at home.
task<void> memberships::end_when_settled(counted_ptr<actor_object> actor, steady_time due) {
  const work_count counted{*this};
  while (!actor->begin_change()) {
    auto pausing = placement::pause(*host_.infra, std::chrono::milliseconds{1});
    co_await std::move(pausing);
  }
  auto at = actor->spot();
  auto ending = end(std::move(actor), std::move(at), due, true);
  co_await std::move(ending);
}

/// Sealed at once; it ends when the change under way has, which nothing commits any more.
task<void> memberships::abandon(counted_ptr<actor_object> actor) {
  const work_count counted{*this};
  if (!seal(*actor))
    co_return; // it ends already
  while (!actor->begin_change()) {
    if (actor->fenced())
      co_return; // its creation came to nothing
    auto pausing = placement::pause(*host_.infra, std::chrono::milliseconds{1});
    co_await std::move(pausing);
  }
  auto at = actor->spot();
  auto ending = end(std::move(actor), std::move(at), host_.time->now(), false);
  co_await std::move(ending);
}

/// Spots that host Actors follow when those have ended: their handlers are functions of the Spot.
task<void> memberships::abandon_all() {
  for (auto& actor : host_.objects.actor_snapshot())
    start_coroutine(abandon(std::move(actor)), [](result<void>) {});
  std::vector<counted_ptr<spot_object>> hosting;
  for (auto& spot : host_.objects.snapshot()) {
    if (spot->factory().kind == spot_kind::entry)
      continue;
    if (spot->factory().about_actors != nullptr)
      hosting.push_back(std::move(spot));
    else
      host_.closings.abandon(std::move(spot));
  }
  for (auto& spot : hosting) {
    while (hosts_somebody(*spot)) {
      auto pausing = placement::pause(*host_.infra, std::chrono::milliseconds{1});
      co_await std::move(pausing);
    }
    host_.closings.abandon(std::move(spot));
  }
}

bool memberships::hosts_somebody(const spot_object& spot) const {
  if (host_.objects.actors() == 0)
    return false;
  const auto actors = host_.objects.actor_snapshot();
  return std::ranges::any_of(actors, [&spot](const auto& actor) { return actor->spot().get() == &spot; });
}

/// False: it was sealed before.
bool memberships::seal(actor_object& actor) {
  if (actor.application_word().has(admission_word::sealed_bit))
    return false;
  close_admission(host_, actor, {host_.ending() ? error_kind::shutting_down : error_kind::unavailable,
                                 described(actor.address()) + " ends with its host, or with its ownership"});
  return true;
}

// -- the end ----------------------------------------------------------------------------------------------------------------------

task<void> memberships::end(counted_ptr<actor_object> actor, counted_ptr<spot_object> spot, steady_time due, bool remove_row) {
  const work_count counted{*this};
  auto finishing = finish_work(actor, due);
  co_await std::move(finishing);
  auto disposing = dispose(actor, spot);
  co_await std::move(disposing);
  if (remove_row) {
    auto removing = host_.closings.remove_row(*actor);
    co_await std::move(removing);
  }
  host_.trace(*actor, "destroyed");
  host_.objects.erase(*actor);
}

/// What it has accepted runs; at the deadline what has not started is ended, and a handler that runs is waited for (J-134).
task<void> memberships::finish_work(counted_ptr<actor_object> actor, steady_time due) {
  host_.infra->post_after(std::max(due - host_.time->now(), steady_duration{0}), [actor, ending = host_.ending()] {
    const error why{ending ? error_kind::shutting_down : error_kind::unavailable, described(actor->address()) + " ended before this could"};
    if (!actor->fenced())
      actor->submit_step(std::make_unique<turn_step>([why](execution_object& object) {
        object.refuse_waiting(why);
        object.home().fail_operations(object, why);
      }));
  });
  auto waiting = until_quiet(host_, actor);
  co_await std::move(waiting);
  while (actor->in_a_notice()) {
    auto pausing = placement::pause(*host_.infra, std::chrono::milliseconds{1});
    co_await std::move(pausing);
  }
}

task<void> memberships::dispose(counted_ptr<actor_object> actor, counted_ptr<spot_object> spot) {
  auto disposing = run_turn<bool>(*actor, *host_.infra, [](execution_object& object) {
    auto& ended = static_cast<actor_object&>(object);
    const error why{error_kind::unavailable, described(ended.address()) + " has ended"};
    ended.home().fail_operations(ended, why);
    ended.refuse_waiting(why, true);
    ended.dispose();
    return true;
  });
  co_await std::move(disposing);
  if (spot)
    remove_member(spot, std::move(actor));
}

// -- with the host ------------------------------------------------------------------------------------------------------------------

/// Those that change their Spot are let finish that first; at the deadline nobody is waited for any more. A handler that still
/// runs may leave its room (J-164).
task<void> memberships::drain(steady_time due) {
  while (host_.objects.actors() != 0 || under_way_ != 0) {
    bool changing = under_way_ != 0;
    for (auto& actor : host_.objects.actor_snapshot()) {
      if (actor->application_word().has(admission_word::sealed_bit))
        continue;
      if (actor->is_changing() && host_.time->now() < due)
        changing = true;
      else if (seal(*actor))
        start_coroutine(finish_work(actor, due), [this, actor](result<void>) { drained_.push_back(actor); });
    }
    const auto now = host_.time->now();
    const bool all_drained = drained_.size() >= host_.objects.actors();
    if ((all_drained && (!changing || now >= due)) || now >= due + drain_patience)
      co_return;
    auto pausing = placement::pause(*host_.infra, std::chrono::milliseconds{1});
    co_await std::move(pausing);
  }
}

bool memberships::some_are_stuck() const noexcept { return drained_.size() < host_.objects.actors(); }

/// When their Spots have ended, which could read their members until then (C-119).
task<void> memberships::dispose_drained() {
  for (auto& actor : std::exchange(drained_, {})) {
    auto disposing = dispose(actor, {});
    co_await std::move(disposing);
    host_.trace(*actor, "destroyed");
    host_.objects.erase(*actor);
  }
}

} // namespace zlink::detail
