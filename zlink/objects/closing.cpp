#include "zlink/objects/closing.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/objects/build_step.hpp"
#include "zlink/objects/row_change.hpp"
#include "zlink/objects/object_timers.hpp"

#include <algorithm>
#include <iterator>

namespace zlink::detail {

/// One close, from the request to the release of the id.
struct closing::state {
  enum class verdict : std::uint8_t { pending, passed, failed };

  counted_ptr<spot_object> object;
  std::atomic<bool> over{false};
  std::stop_source cleanup;
  counted_ptr<operation<void>> quiet;
  bool marking = false; ///< the row is being marked: until it is, nothing is refused. Inside the unit
  // Under the mutex of `closing`:
  spot_close_reason reason = spot_close_reason::explicit_close;
  steady_time deadline{};
  verdict check = verdict::pending; ///< may it close? Answered in turns of the object only
  counted_ptr<operation<bool>> checked;
  bool again = false; ///< an eviction was refused, but somebody else wants the close
  bool lost = false;  ///< the token that the object is bound to is dead
  bool sealed = false;
  bool abandoned = false; ///< sealed when it was lost: without OnClosing and without touching the row (S-44)
  bool replaced = false; ///< the next incarnation is in the table: nothing is held any more
  std::vector<counted_ptr<operation<bool>>> at_seal;
  std::vector<counted_ptr<operation<bool>>> at_end;
  std::vector<submission> held;

  void answer_check(bool may) {
    if (check != verdict::pending)
      return;
    check = may ? verdict::passed : verdict::failed;
    if (auto asked = std::exchange(checked, {}))
      asked->set(result<bool>{may});
  }
  result<bool> sealed_answer() const {
    if (abandoned)
      return error{error_kind::unavailable, "this host has lost its ownership lease, and the spot with it"};
    return true;
  }
  /// Joined by somebody who does not mind whether it is idle.
  void outgrow_eviction(spot_close_reason why, steady_time until) {
    if (why == spot_close_reason::host_shutdown && !sealed) { // whatever else it was to be, this comes first (C-119)
      reason = why;
      deadline = until;
      again = std::exchange(check, verdict::pending) == verdict::failed;
      return;
    }
    if (reason != spot_close_reason::idle_evicted || why == spot_close_reason::idle_evicted || check == verdict::passed)
      return;
    reason = why;
    deadline = until;
    again = std::exchange(check, verdict::pending) == verdict::failed;
  }
};

std::shared_ptr<closing::state> closing::find(spot_object& object) const {
  std::lock_guard guard{mutex_};
  const auto i = closing_.find(&object);
  return i == closing_.end() ? nullptr : i->second;
}

std::size_t closing::under_way() const {
  std::lock_guard guard{mutex_};
  return closing_.size();
}

std::shared_ptr<closing::state> closing::begin(counted_ptr<spot_object> object) const {
  auto begun = std::make_shared<state>();
  begun->object = std::move(object);
  begun->quiet = new_counted<operation<void>>();
  begun->quiet->dispatcher = host_.infra->unit();
  return begun;
}

task<bool> closing::close(counted_ptr<spot_object> object, spot_close_reason reason, steady_time deadline,
                          execution_object* asking) {
  auto ended = new_counted<operation<bool>>();
  ended->dispatcher = host_.dispatcher;
  if (asking != nullptr)
    ended->hold_owner(*asking);
  std::shared_ptr<state> started;
  {
    std::lock_guard guard{mutex_};
    const bool own_turn = asking != nullptr && &asking->home() == &object->home();
    auto& place = closing_[object.get()];
    if (place == nullptr) {
      started = place = begin(std::move(object));
      place->reason = reason;
      place->deadline = deadline;
    } else {
      place->outgrow_eviction(reason, deadline);
    }
    if (own_turn)
      place->answer_check(may_close(*place, *place->object)); // it holds the gate, so nothing could be checked in another turn (C-115)
    if (asking != nullptr && place->sealed)
      ended->set(place->sealed_answer());
    else
      (asking != nullptr ? place->at_seal : place->at_end).push_back(ended);
  }
  if (started)
    host_.infra->post([this, started] { start_coroutine(run(started), [](result<void>) {}); });
  return task<bool>{std::move(ended)};
}

void closing::abandon(counted_ptr<spot_object> object) {
  std::shared_ptr<state> found;
  bool started = false;
  {
    std::lock_guard guard{mutex_};
    auto& place = closing_[object.get()];
    started = place == nullptr;
    if (started)
      place = begin(std::move(object));
    place->lost = true;
    found = place;
  }
  if (started)
    start_coroutine(run(std::move(found)), [](result<void>) {});
  else if (!found->sealed)
    enforce_deadline(std::move(found)); // what holds the gate ends, so that the rest can follow
}

void closing::quiet(spot_object& object) noexcept {
  if (auto closing = find(object); closing && !closing->quiet->done())
    closing->quiet->set(result<void>{});
}

bool closing::hold(spot_object& object, submission& message) {
  std::vector<submission> unmarked;
  std::optional<admission_notice> accepted; // a one-way message is: to be held is no wait for room (M-2, M-4)
  {
    std::lock_guard guard{mutex_};
    const auto i = closing_.find(&object);
    if (i == closing_.end() || i->second->replaced)
      return false;
    unmarked = gather(*i->second); // those that waited for room came before this one
    if (message.arrived() == nullptr && message.peek()->kind != record_kind::request) {
      auto* r = message.take();
      accepted.emplace(*r);
      message = submission{r, message.id(), std::make_unique<instance_intent>(*message.intent()), {},
                           host_.time->now() + object.home_node().request_timeout};
    }
    i->second->held.push_back(std::move(message));
  }
  refuse_unmarked(std::move(unmarked));
  return true;
}

/// What waited for room when the lane was sealed: messages with intent are held, the others are returned. Under the mutex.
std::vector<submission> closing::gather(state& closing) {
  std::vector<submission> unmarked;
  for (auto& message : host_.waiting->take(*closing.object))
    (message.intent() != nullptr ? closing.held : unmarked).push_back(std::move(message));
  return unmarked;
}

void closing::refuse_unmarked(std::vector<submission> messages) {
  const auto refused = host_.refuse(host_work::object_message);
  for (auto& message : messages)
    message.fail(refused.value_or(error{error_kind::not_found, "spot \"" + message.id() + "\" has closed"}));
}

task<void> closing::run(std::shared_ptr<state> closing) {
  watch_deadline(closing);
  auto decided = result<bool>{false};
  bool sealed = false;
  std::vector<counted_ptr<operation<bool>>> told;
  for (bool again = true; again;) {
    auto deciding = decide(closing);
    decided = co_await std::move(deciding);
    sealed = decided && *decided;
    std::lock_guard guard{mutex_};
    again = !sealed && std::exchange(closing->again, false);
    if (again)
      continue;
    closing->sealed = sealed;
    told = std::move(closing->at_seal);
    if (!sealed) {
      told.insert(told.end(), closing->at_end.begin(), closing->at_end.end());
      closing_.erase(closing->object.get());
    }
  }
  for (auto& waiter : told)
    waiter->set(sealed ? closing->sealed_answer() : decided);
  if (!sealed) {
    closing->over.store(true);
    closing->object->home().post([spot = closing->object] { spot->members().shut(false); });
    co_return;
  }
  if (!closing->abandoned)
    host_.trace(*closing->object, "closing", to_string(closing->reason));
  if (closing->abandoned || time_left(*closing).count() == 0)
    enforce_deadline(closing);
  auto finishing = finish(closing);
  co_await std::move(finishing);
}

/// May it close, is it so known to the store? Then it is sealed.
task<result<bool>> closing::decide(std::shared_ptr<state> closing) {
  auto& object = *closing->object;
  if (object.is_moving() && !is_lost(*closing) && reason_of(*closing) != spot_close_reason::host_shutdown) { // L-198, L-203
    if (reason_of(*closing) == spot_close_reason::idle_evicted)
      co_return result<bool>{false};
    co_return result<bool>{error{error_kind::unavailable, '"' + object.id() + "\" is moving to another node"}};
  }
  auto checking = check(closing);
  if (!co_await std::move(checking) && !is_lost(*closing))
    co_return result<bool>{false};
  const bool has_row = object.factory().kind != spot_kind::entry;
  if (has_row && !is_lost(*closing) && reason_of(*closing) != spot_close_reason::host_shutdown) {
    closing->marking = true;
    auto marking = mark(closing);
    const auto failed = co_await std::move(marking);
    closing->marking = false;
    if (failed && !is_lost(*closing) && reason_of(*closing) != spot_close_reason::host_shutdown)
      co_return *failed;
  }
  object.application_word().set(admission_word::sealed_bit); // nothing is admitted any more, ticks included
  host_.find_node(object.mesh_name())->subscribed.remove(object);
  std::vector<submission> unmarked;
  {
    std::lock_guard guard{mutex_};
    closing->abandoned = closing->lost;
    unmarked = gather(*closing);
  }
  refuse_unmarked(std::move(unmarked));
  co_return result<bool>{true};
}

/// In a turn of its own, unless a turn that asks for the close answers before.
task<bool> closing::check(std::shared_ptr<state> closing) {
  auto checked = new_counted<operation<bool>>();
  checked->dispatcher = host_.infra->unit();
  {
    std::lock_guard guard{mutex_};
    if (closing->lost || closing->check == state::verdict::passed)
      co_return true;
    if (closing->check == state::verdict::failed) // in the turn that asks
      co_return false;
    closing->checked = checked;
  }
  closing->object->submit_step(std::make_unique<turn_step>([this, closing](execution_object& target) {
    auto& spot = static_cast<spot_object&>(target);
    std::lock_guard guard{mutex_};
    closing->answer_check(may_close(*closing, spot));
  }));
  co_return co_await task<bool>{std::move(checked)};
}

/// Inside a turn of the Spot: so every join and leave before it counts, and none behind it (C-114, J-150).
bool closing::may_close(const state& closing, spot_object& spot) const {
  if (spot.fenced())
    return false;
  switch (closing.reason) {
    case spot_close_reason::idle_evicted: return is_idle(spot);
    case spot_close_reason::host_shutdown: return true;
    default:
      if (!spot.members().none())
        return false;
      spot.members().shut(true);
      return true;
  }
}

bool closing::is_lost(const state& closing) const {
  std::lock_guard guard{mutex_};
  return closing.lost;
}

/// The Closing mark; the error if there is none.
task<std::optional<error>> closing::mark(std::shared_ptr<state> closing) {
  auto& object = *closing->object;
  row_change change;
  change.id = object.id();
  change.judge = [this, &object](const placement::observed_object& seen) {
    const auto* row = placement::row_in(seen);
    if (row == nullptr || row->generation != object.generation())
      return row_judgement{row_end::settled}; // it is gone already: the instance follows it
    if (row->closing && row->owner == host_.token())
      return row_judgement{row_end::settled}; // an earlier attempt got through late
    return judged(placement::mark_closing(seen, owned(object)));
  };
  change.give_up = [this, closing](bool) {
    return time_left(*closing).count() == 0 || is_lost(*closing) || reason_of(*closing) == spot_close_reason::host_shutdown;
  };
  auto changing = change_row(host_, std::move(change));
  const auto outcome = co_await std::move(changing);
  switch (outcome.how) {
    case row_end::refused:
      co_return error{error_kind::unavailable, '"' + object.id() + "\" moves, or this host does not own it any more"};
    case row_end::failed:
    case row_end::unknown:
      co_return error{error_kind::unavailable, "the Location Store did not carry out the close of \"" + object.id() + '"'};
    default: co_return std::nullopt;
  }
}

void closing::watch_deadline(std::shared_ptr<state> closing) {
  host_.infra->post_after(time_left(*closing), [this, waiting = std::weak_ptr<state>{closing}] {
    auto late = waiting.lock();
    if (late == nullptr || late->over.load())
      return;
    if (time_left(*late).count() > 0)
      watch_deadline(std::move(late)); // somebody who joined has given it more time
    else
      enforce_deadline(std::move(late));
  });
}

spot_close_reason closing::reason_of(const state& closing) const {
  std::lock_guard guard{mutex_};
  return closing.reason;
}

steady_duration closing::time_left(const state& closing) const {
  std::lock_guard guard{mutex_};
  return std::max(closing.deadline - host_.time->now(), steady_duration{0});
}

// At the deadline what has not started is ended, what waits is failed; a handler that holds the gate is waited for.
void closing::enforce_deadline(std::shared_ptr<state> closing) {
  if (closing->over.load() || closing->marking)
    return;
  closing->cleanup.request_stop();
  const auto kind = reason_of(*closing) == spot_close_reason::host_shutdown ? error_kind::shutting_down
                                                                            : error_kind::unavailable;
  closing->object->home().post([object = closing->object, kind] {
    const error why{kind, "the spot was closed before this could end"};
    object->refuse_waiting(why);
    object->home().fail_operations(*object, why);
    if (object->has_timers())
      object->timers().end_parts(why);
  });
}

task<void> closing::finish(std::shared_ptr<state> closing) {
  auto& object = *closing->object;
  auto watching = run_turn<bool>(object, *host_.infra, [](execution_object& target) {
    auto& spot = static_cast<spot_object&>(target);
    if (spot.has_timers())
      spot.timers().stop();
    target.watch_quiet(true);
    return true;
  });
  co_await std::move(watching);
  co_await task<void>{closing->quiet};
  bool ended_well = true;
  if (!closing->abandoned) {
    spot_closing_context context{closing->reason, host_.time->wall_now()
                                                    + std::chrono::duration_cast<std::chrono::system_clock::duration>(
                                                      closing->deadline - host_.time->now())};
    auto callback = run_closing_step(object, *host_.infra, context, closing->cleanup.get_token());
    ended_well = co_await std::move(callback);
    if (!ended_well)
      failed_callbacks.fetch_add(1, std::memory_order_relaxed);
  }
  closing->over.store(true);
  auto disposing = run_turn<bool>(object, *host_.infra, [](execution_object& target) {
    auto& spot = static_cast<spot_object&>(target);
    const error why{error_kind::unavailable, "the spot has closed"};
    spot.home().fail_operations(spot, why);
    spot.refuse_waiting(why, true); // by now late events of its CAF face, and callbacks of what on_closing did not await
    spot.watch_quiet(false);
    spot.dispose();
    return true;
  });
  co_await std::move(disposing);
  host_.trace(object, closing->abandoned ? "abandoned" : "closed", closing->abandoned ? "" : to_string(closing->reason));
  auto releasing = release(closing);
  co_await std::move(releasing);
}

task<void> closing::release(std::shared_ptr<state> closing) {
  auto& object = *closing->object;
  host_.activations.forget(object.generation());
  const bool has_row = object.factory().kind != spot_kind::entry && !closing->abandoned;
  bool reborn = false;
  if (has_row && object.factory().kind == spot_kind::instance && holds_messages(*closing)
      && !host_.refuse(host_work::placement_here)) {
    auto renewing = reincarnate(closing);
    reborn = co_await std::move(renewing);
  }
  if (has_row && !reborn) {
    auto removing = remove_row(object);
    co_await std::move(removing);
  }
  std::vector<counted_ptr<operation<bool>>> told;
  {
    std::lock_guard guard{mutex_};
    if (auto held = std::exchange(closing->held, {}); !held.empty()) // in line before the id is free: nothing overtakes them
      host_.refuse(host_work::placement_here) ? host_.messages.hand_on(object, std::move(held))
                                              : host_.messages.hand_over(object.id(), std::move(held));
    told = std::move(closing->at_end);
    host_.objects.erase(object);
    closing_.erase(&object);
  }
  for (auto& waiter : told)
    waiter->set(closing->sealed_answer());
}

/// Those that nobody waits for any more end: no incarnation is made for them (C-102).
bool closing::holds_messages(state& closing) {
  const auto now = host_.time->now();
  std::vector<submission> expired;
  bool holds = false;
  {
    std::lock_guard guard{mutex_};
    auto& held = closing.held;
    const auto from = std::stable_partition(held.begin(), held.end(), [now](const auto& m) { return !m.expired(now); });
    std::move(from, held.end(), std::back_inserter(expired));
    held.erase(from, held.end());
    holds = !held.empty();
  }
  for (auto& message : expired)
    message.fail({error_kind::deadline_exceeded, "spot \"" + message.id() + "\" did not come back to life in time"});
  return holds;
}

/// The row names the next incarnation, with these numbers; nothing: there is none.
task<std::optional<placement::new_generations>> closing::renew_row(std::shared_ptr<state> closing) {
  auto& old = *closing->object;
  row_change change;
  change.id = old.id();
  change.judge = [this, &old](const placement::observed_object& seen) {
    const auto* row = placement::row_in(seen);
    if (row != nullptr && row->kind == placement::object_kind::instance_spot && row->owner == host_.token()
        && row->state == placement::allocation_state::active && row->generation > old.generation())
      return row_judgement{row_end::settled}; // an earlier attempt got through late
    return judged(placement::reincarnate(seen, owned(old)));
  };
  change.give_up = [this, closing](bool) { return host_.ending() || time_left(*closing).count() == 0; };
  auto changing = change_row(host_, std::move(change));
  const auto outcome = co_await std::move(changing);
  if (outcome.how == row_end::applied)
    co_return outcome.step.numbers;
  if (outcome.how != row_end::settled)
    co_return std::nullopt;
  const auto& row = *placement::row_in(outcome.seen);
  co_return placement::new_generations{row.generation, row.authority};
}

task<bool> closing::reincarnate(std::shared_ptr<state> closing) {
  auto& old = *closing->object;
  auto renewing = renew_row(closing);
  const auto numbers = co_await std::move(renewing);
  if (!numbers)
    co_return false;
  auto& node = *host_.find_node(old.mesh_name());
  auto fresh = host_.activations.make_object(node, old.factory(), old.id());
  fresh->set_generations(numbers->object, numbers->authority);
  if (!holds_messages(*closing)) {
    auto removing = remove_row(*fresh);
    co_await std::move(removing);
    co_return false;
  }
  {
    std::lock_guard guard{mutex_};
    for (auto& message : closing->held) {
      if (message.over())
        continue;
      auto* r = message.take();
      admission_notice notice{*r};
      fresh->submit_unchecked(r, true);
    }
    closing->held.clear();
    closing->replaced = true;
    host_.objects.replace(old, fresh);
  }
  auto building = host_.activations.build(*fresh, node, std::nullopt);
  auto built = co_await std::move(building);
  if (built) {
    host_.activations.open(*fresh);
    co_return true;
  }
  auto removing = remove_row(*fresh);
  co_await std::move(removing);
  host_.activations.discard(*fresh, built.error());
  co_return true;
}

} // namespace zlink::detail
