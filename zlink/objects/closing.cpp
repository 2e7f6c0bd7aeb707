#include "zlink/objects/closing.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/objects/build_step.hpp"
#include "zlink/objects/spot_timers.hpp"
#include "zlink/placement/pause.hpp"

namespace zlink::detail {

/// One close, from the request to the release of the id.
struct closing::state {
  counted_ptr<spot_object> object;
  spot_close_reason reason = spot_close_reason::explicit_close;
  steady_time deadline{};
  bool asked_by_own_turn = false; ///< that turn holds the gate, so nothing can be checked in another one (C-115)
  bool abandoned = false; ///< without OnClosing and without touching the row (S-44)
  std::atomic<bool> over{false};
  std::stop_source cleanup;
  counted_ptr<operation<void>> quiet;
  // Under the mutex of `closing`:
  bool sealed = false;
  bool replaced = false; ///< the next incarnation is in the table: nothing is held any more
  std::vector<counted_ptr<operation<bool>>> at_seal;
  std::vector<counted_ptr<operation<bool>>> at_end;
  std::vector<submission> held;
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

task<bool> closing::close(counted_ptr<spot_object> object, spot_close_reason reason, steady_time deadline,
                          execution_object* asking) {
  auto ended = new_counted<operation<bool>>();
  ended->dispatcher = host_.dispatcher;
  ended->owner = asking;
  std::shared_ptr<state> started;
  {
    std::lock_guard guard{mutex_};
    auto& place = closing_[object.get()];
    if (place == nullptr) {
      started = place = std::make_shared<state>();
      place->asked_by_own_turn = asking == object.get();
      place->object = std::move(object);
      place->reason = reason;
      place->deadline = deadline;
      place->quiet = new_counted<operation<void>>();
      place->quiet->dispatcher = host_.infra->unit();
    }
    if (asking != nullptr && place->sealed)
      ended->set(result<bool>{true});
    else
      (asking != nullptr ? place->at_seal : place->at_end).push_back(ended);
  }
  if (started)
    host_.infra->post([this, started] { start_coroutine(run(started), [](result<void>) {}); });
  return task<bool>{std::move(ended)};
}

void closing::abandon(counted_ptr<spot_object> object) {
  auto abandoning = std::make_shared<state>();
  abandoning->abandoned = true;
  abandoning->quiet = new_counted<operation<void>>();
  abandoning->quiet->dispatcher = host_.infra->unit();
  abandoning->object = object;
  {
    std::lock_guard guard{mutex_};
    if (!closing_.emplace(object.get(), abandoning).second)
      return; // it is ending already
  }
  start_coroutine(run(abandoning), [](result<void>) {});
}

void closing::quiet(spot_object& object) noexcept {
  if (auto closing = find(object); closing && !closing->quiet->done())
    closing->quiet->set(result<void>{});
}

bool closing::hold(spot_object& object, submission& message) {
  std::vector<submission> unmarked;
  {
    std::lock_guard guard{mutex_};
    const auto i = closing_.find(&object);
    if (i == closing_.end() || i->second->replaced)
      return false;
    unmarked = gather(*i->second); // those that waited for room came before this one
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
  const bool draining = host_.state.load() == host_state::draining;
  for (auto& message : messages)
    message.fail(draining ? error{error_kind::shutting_down, "the host is shutting down"}
                          : error{error_kind::not_found, "spot \"" + message.id() + "\" has closed"});
}

task<void> closing::run(std::shared_ptr<state> closing) {
  if (closing->abandoned)
    enforce_deadline(closing);
  else
    host_.infra->post_after(std::max(closing->deadline - host_.time->now(), steady_duration{0}),
                            [this, waiting = std::weak_ptr<state>{closing}] {
                              if (auto late = waiting.lock())
                                enforce_deadline(std::move(late));
                            });
  auto deciding = decide(closing);
  const bool decided = co_await std::move(deciding);
  std::vector<counted_ptr<operation<bool>>> told;
  {
    std::lock_guard guard{mutex_};
    closing->sealed = decided;
    told = std::move(closing->at_seal);
    if (!decided) {
      told.insert(told.end(), closing->at_end.begin(), closing->at_end.end());
      closing_.erase(closing->object.get());
    }
  }
  for (auto& waiter : told)
    waiter->set(result<bool>{decided});
  if (!decided)
    co_return;
  auto finishing = finish(closing);
  co_await std::move(finishing);
}

task<bool> closing::decide(std::shared_ptr<state> closing) {
  auto& object = *closing->object;
  const bool eviction = closing->reason == spot_close_reason::idle_evicted;
  if (!closing->asked_by_own_turn && !closing->abandoned) {
    auto checking = run_turn<bool>(object, *host_.infra, [this, eviction](execution_object& target) {
      auto& spot = static_cast<spot_object&>(target);
      return !spot.fenced() && (!eviction || is_idle(spot));
    });
    if (!co_await std::move(checking))
      co_return false;
  }
  const bool has_row = object.factory().kind != spot_kind::entry && !closing->abandoned;
  if (has_row && closing->reason != spot_close_reason::host_shutdown) {
    auto marking = mark(object);
    if (!co_await std::move(marking))
      co_return false;
  }
  object.application_word().set(admission_word::sealed_bit); // nothing is admitted any more, ticks included
  std::vector<submission> unmarked;
  {
    std::lock_guard guard{mutex_};
    unmarked = gather(*closing);
  }
  refuse_unmarked(std::move(unmarked));
  co_return true;
}

bool closing::is_idle(spot_object& spot) const {
  const auto timeout = spot.home_node().instance_idle_timeout;
  return timeout.count() != 0 && spot.quiet_besides_this_step() && spot.timers_idle()
         && host_.time->now() - spot.last_work() >= timeout;
}

namespace {

/// Conflicts in a row before a close leaves the row to the sweep: some 10 s, in which a lost lease is noticed.
constexpr int most_attempts = 1'000;

} // namespace

task<bool> closing::mark(spot_object& object) {
  for (int i = 0; i < most_attempts; ++i) {
    auto reading = host_.repository->read_spot(object.id());
    auto outcome = co_await std::move(reading);
    const auto* seen = placement::seen_in(outcome);
    if (seen == nullptr)
      co_return false;
    placement::owned_object owned{kind_of(object), object.id(), host_.token()};
    const auto* row = placement::row_in(*seen);
    if (row == nullptr || row->generation != object.generation())
      co_return true; // the row is gone already: the instance follows it
    if (!host_.ownership->held())
      co_return false; // no change past the deadline (S-40)
    auto decided = placement::mark_closing(*seen, owned);
    auto* step = std::get_if<placement::fragment>(&decided);
    if (step == nullptr)
      co_return false;
    auto applying = host_.repository->apply(std::move(*step));
    const auto applied = co_await std::move(applying);
    if (applied.what != placement::fragment_outcome::conflict)
      co_return applied.what == placement::fragment_outcome::applied;
    auto pausing = placement::pause_before_retry(*host_.infra, *host_.random);
    co_await std::move(pausing);
  }
  co_return false;
}

placement::object_kind closing::kind_of(const spot_object& object) noexcept {
  return object.factory().kind == spot_kind::user ? placement::object_kind::user_spot
                                                  : placement::object_kind::instance_spot;
}

// At the deadline what has not started is ended, what waits is failed; a handler that holds the gate is waited for.
void closing::enforce_deadline(std::shared_ptr<state> closing) {
  if (closing->over.load())
    return;
  closing->cleanup.request_stop();
  const auto kind = closing->reason == spot_close_reason::host_shutdown ? error_kind::shutting_down
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
  auto releasing = release(closing);
  co_await std::move(releasing);
}

task<void> closing::release(std::shared_ptr<state> closing) {
  auto& object = *closing->object;
  host_.activations.forget(object.generation());
  const bool has_row = object.factory().kind != spot_kind::entry && !closing->abandoned;
  bool reborn = false;
  if (has_row && object.factory().kind == spot_kind::instance && holds_messages(*closing)
      && host_.state.load() == host_state::serving) {
    auto renewing = reincarnate(closing);
    reborn = co_await std::move(renewing);
  }
  if (has_row && !reborn) {
    auto removing = remove_row(object.id(), kind_of(object), object.generation());
    co_await std::move(removing);
  }
  std::vector<counted_ptr<operation<bool>>> told;
  {
    std::lock_guard guard{mutex_};
    if (!closing->held.empty()) // in line before the id is free, so that nothing overtakes them
      host_.messages.hand_over(object.id(), std::move(closing->held));
    told = std::move(closing->at_end);
    host_.objects.erase(object);
    closing_.erase(&object);
  }
  for (auto& waiter : told)
    waiter->set(result<bool>{true});
}

bool closing::holds_messages(const state& closing) const {
  std::lock_guard guard{mutex_};
  return !closing.held.empty();
}

task<bool> closing::reincarnate(std::shared_ptr<state> closing) {
  auto& old = *closing->object;
  auto reading = host_.repository->read_spot(old.id());
  auto outcome = co_await std::move(reading);
  const auto* seen = placement::seen_in(outcome);
  if (seen == nullptr)
    co_return false;
  placement::owned_object owned{placement::object_kind::instance_spot, old.id(), host_.token()};
  auto decided = placement::reincarnate(*seen, owned);
  auto* step = std::get_if<placement::fragment>(&decided);
  if (step == nullptr)
    co_return false;
  auto applying = host_.repository->apply(std::move(*step));
  const auto applied = co_await std::move(applying);
  if (applied.what != placement::fragment_outcome::applied)
    co_return false;
  auto& node = *host_.find_node(old.mesh_name());
  auto fresh = host_.activations.make_object(node, old.factory(), old.id());
  fresh->set_generations(applied.numbers.object, applied.numbers.authority);
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
  auto removing = remove_row(fresh->id(), placement::object_kind::instance_spot, fresh->generation());
  co_await std::move(removing);
  host_.activations.discard(*fresh, built.error());
  co_return true;
}

task<void> closing::remove_row(std::string id, placement::object_kind kind, object_generation generation) {
  for (int i = 0; i < most_attempts; ++i) {
    auto reading = host_.repository->read_spot(id);
    auto outcome = co_await std::move(reading);
    const auto* seen = placement::seen_in(outcome);
    const auto* row = seen == nullptr ? nullptr : placement::row_in(*seen);
    if (row == nullptr || row->generation != generation)
      co_return;
    const auto root = row->root;
    placement::owned_object owned{kind, id, host_.token()};
    if (!host_.ownership->held())
      co_return; // no change past the deadline (S-40): a later pass finds the row (S-116), or its lease ends
    auto decided = placement::remove(*seen, owned);
    auto* step = std::get_if<placement::fragment>(&decided);
    if (step == nullptr)
      co_return;
    auto applying = host_.repository->apply(std::move(*step));
    const auto applied = co_await std::move(applying);
    if (applied.what == placement::fragment_outcome::applied && root)
      host_.repository->forget_payload(*root);
    if (applied.what != placement::fragment_outcome::conflict)
      co_return;
    auto pausing = placement::pause_before_retry(*host_.infra, *host_.random);
    co_await std::move(pausing);
  }
}

void closing::sweep_idle() {
  constexpr std::size_t most = 64; // C-108
  if (sweep_position_ >= sweep_.size()) {
    sweep_ = host_.objects.snapshot();
    sweep_position_ = 0;
  }
  const auto now = host_.time->now();
  for (std::size_t looked_at = 0; looked_at < most && sweep_position_ < sweep_.size(); ++looked_at) {
    auto object = std::move(sweep_[sweep_position_++]);
    const auto timeout = object->home_node().instance_idle_timeout;
    if (object->factory().kind == spot_kind::instance && timeout.count() != 0
        && !object->application_word().has(admission_word::staging_bit | admission_word::sealed_bit)
        && now - object->last_work() >= timeout)
      close(object, spot_close_reason::idle_evicted, now + object->home_node().request_timeout, nullptr);
  }
}

} // namespace zlink::detail
