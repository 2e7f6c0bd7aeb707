// The end of a host: drain, tell every Spot, release rows, lease, links (L-240 to L-249, S-117 to S-119).
#include "relocation/host_relocate.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/mesh_links.hpp"
#include "zlink/placement/pause.hpp"

#include <algorithm>

namespace zlink::detail {

namespace {

constexpr std::chrono::milliseconds handler_patience{1'000}; // for handlers that the deadline has just failed
constexpr std::chrono::milliseconds release_patience{2'000}; // for the store, beyond the deadline of the work

} // namespace

task<shutdown_result> host_runtime::shutdown() {
  auto ended = new_counted<operation<shutdown_result>>();
  ended->dispatcher = dispatcher; // also for a callback that a Spot asked for: the Spot ends before
  bool begin = false;
  {
    std::lock_guard guard{shutdown_mutex_};
    if (shutdown_result_) {
      ended->set(result<shutdown_result>{*shutdown_result_});
      return task<shutdown_result>{std::move(ended)};
    }
    shutdown_waiters_.push_back(ended);
    begin = !std::exchange(shutdown_begun_, true);
  }
  if (begin)
    infra->post([this] { start_coroutine(shutdown_sequence(), [](result<void>) {}); });
  return task<shutdown_result>{std::move(ended)};
}

void host_runtime::shut_down_forced() {
  teardown_forced_ = true;
  static_cast<void>(shutdown());
}

namespace {

/// L-272.
void tell_termination(host_runtime& host, const char* state, const char* reason) noexcept {
  trace_record told;
  told.category = trace_category::actor_relocation;
  told.event = "zlink.runtime.host.termination_changed";
  told.state = state;
  told.reason = reason;
  host.trace(told);
}

} // namespace

task<void> host_runtime::shutdown_sequence() {
  const auto deadline = time->now() + options.shutdown_deadline;
  const bool begun = start_begun_.load();
  state.store(host_state::draining, std::memory_order_release);
  tell_termination(*this, "draining", "");
  shutdown_result outcome;
  events.refuse_waiting();
  while (start_running_ && time->now() < deadline) { // it ends with its step under way (L-247)
    auto pausing = placement::pause(*infra, std::chrono::milliseconds{1});
    co_await std::move(pausing);
  }
  if (start_running_)
    left_behind_ = true;
  if (begun && !left_behind_) {
    auto publishing = publish_draining(std::min(deadline, time->now() + release_patience));
    co_await std::move(publishing);
    auto moving = end_moves(deadline);
    co_await std::move(moving);
    const auto failed_before = closings.failed_callbacks.load();
    auto ending = end_work(deadline);
    co_await std::move(ending);
    if (teardown_forced_ || closings.failed_callbacks.load() != failed_before)
      outcome = {shutdown_outcome::force_stopped, shutdown_reason::teardown_failed};
    if (time->now() >= deadline)
      outcome = {shutdown_outcome::force_stopped, shutdown_reason::deadline_exceeded};
  }
  moving.end(); // routes for late messages go with the host (L-249)
  outside.fail_all({error_kind::shutting_down, "the host is shutting down"});
  auto releasing = release_all(time->now() + release_patience);
  co_await std::move(releasing);
  state.store(host_state::stopped, std::memory_order_release);
  relocating_->end_waits();
  tell_termination(*this, to_string(outcome.outcome), to_string(outcome.reason));
  std::vector<counted_ptr<operation<shutdown_result>>> told;
  {
    std::lock_guard guard{shutdown_mutex_};
    shutdown_result_ = outcome;
    told = std::move(shutdown_waiters_);
  }
  for (auto& waiter : told)
    waiter->set(result<shutdown_result>{outcome});
}

task<void> host_runtime::publish_draining(steady_time until) {
  for (auto& node : nodes)
    if (auto& links = node->runtime().links) // else the start did not come so far
      links->drain();
  tell_selection();
  for (auto& node : nodes) {
    auto& n = node->runtime();
    if (!n.registration || !n.registration->stamp())
      continue;
    auto publishing = n.registration->change(
      [](placement::descriptor_record& d) { d.state = placement::node_state::draining; }, until);
    co_await std::move(publishing);
  }
}

/// Units that have been begun come to their end; no other begins (L-248).
task<void> host_runtime::end_moves(steady_time deadline) {
  while ((relocating_->running() || !moving.at_rest()) && time->now() < deadline) {
    auto pausing = placement::pause(*infra, std::chrono::milliseconds{1});
    co_await std::move(pausing);
  }
}

/// Handlers, callbacks and requests go on up to the deadline (X-168, L-241). What a handler uses that does not end then
/// stays behind.
task<void> host_runtime::end_work(steady_time deadline) {
  auto draining = actors.drain(deadline);
  co_await std::move(draining);
  const bool stuck = actors.some_are_stuck();
  std::vector<task<bool>> closes;
  const auto close_all = [&] {
    for (auto& object : objects.snapshot())
      if (!object->is_moving() && !(stuck && object->factory().about_actors != nullptr)) // a handler of a member still runs in it
        closes.push_back(closings.close(std::move(object), spot_close_reason::host_shutdown, deadline, nullptr));
  };
  close_all();
  bool cut_short = false;
  for (;;) {
    if (closings.under_way() == 0) // an activation that was under way when the drain began is an object by now (L-251)
      close_all();
    const bool handlers_left = objects.spots() != 0 || !moving.at_rest() || moving.serves_members() || closings.under_way() != 0
                               || actors.under_way() != 0
                               || std::ranges::any_of(nodes, [](auto& n) {
                                 return n->runtime().handlers.busy() || n->runtime().channels.busy();
                               });
    const auto now = time->now();
    const bool all_done = outside.size() == 0 && !messages.resolving() && messages.relayed() == 0 && events.under_way() == 0;
    if (!handlers_left && (now >= deadline || all_done)) {
      auto disposing = actors.dispose_drained();
      co_await std::move(disposing);
      left_behind_ = left_behind_ || objects.actors() != 0; // with a handler that does not end
      co_return;
    }
    if (now >= deadline && !std::exchange(cut_short, true)) {
      moving.end();
      for (auto& node : nodes) {
        const error why{error_kind::shutting_down, "the host is shutting down"};
        node->runtime().handlers.cut_short(why);
        node->runtime().channels.cut_short(why);
      }
    }
    if (now >= deadline + handler_patience) {
      left_behind_ = true;
      co_return;
    }
    auto pausing = placement::pause(*infra, std::chrono::milliseconds{1});
    co_await std::move(pausing);
  }
}

task<void> host_runtime::release_all(steady_time until) {
  if (!repository) {
    for (auto& node : nodes)
      if (node->runtime().links)
        node->runtime().links->stop();
    co_return;
  }
  auto sweeping = sweep->stop();
  co_await std::move(sweeping);
  auto removing = sweep->remove_own(until);
  co_await std::move(removing);
  for (auto& node : nodes) {
    auto& n = node->runtime();
    auto watching = n.peers_known->stop();
    co_await std::move(watching);
    auto withdrawing = n.registration->withdraw(until);
    co_await std::move(withdrawing);
    n.registration->stop();
    n.links->stop();
    n.entry = nullptr;
  }
  auto letting_go = ownership->release(until);
  co_await std::move(letting_go);
}

void host_runtime::end() noexcept {
  outside_users->shut();
  workers->stop();
  infra->stop();
  dispatcher->stop();
}

} // namespace zlink::detail
