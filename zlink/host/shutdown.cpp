// The end of a host: drain, tell every Spot, release rows, lease, links (L-240 to L-249, S-117 to S-119).
#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/mesh_links.hpp"
#include "zlink/placement/pause.hpp"

namespace zlink::detail {

namespace {

constexpr std::chrono::milliseconds handler_patience{1'000}; // for handlers that the deadline has just failed
constexpr std::chrono::milliseconds release_patience{2'000}; // for the store, beyond the deadline of the work

} // namespace

task<shutdown_result> host_runtime::shutdown() {
  auto ended = new_counted<operation<shutdown_result>>();
  ended->dispatcher = dispatcher;
  if (const auto* t = current_turn())
    ended->owner = t->object;
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

task<void> host_runtime::shutdown_sequence() {
  const bool served = state.load() != host_state::preparing;
  const auto deadline = time->now() + options.shutdown_deadline;
  state.store(host_state::draining, std::memory_order_release);
  shutdown_result outcome;
  if (served && repository) {
    for (auto& node : nodes) {
      auto& n = node->runtime();
      n.links->drain();
      if (!n.registration->stamp())
        continue;
      auto publishing = n.registration->change(
        [](placement::descriptor_record& d) { d.state = placement::node_state::draining; },
        std::min(deadline, time->now() + release_patience));
      co_await std::move(publishing);
    }
    const auto failed_before = closings.failed_callbacks.load();
    auto closing = close_all(deadline);
    const bool all_closed = co_await std::move(closing);
    while (outside.size() != 0 && time->now() < deadline) { // requests that were started go on until then
      auto pausing = placement::pause(*infra, std::chrono::milliseconds{1});
      co_await std::move(pausing);
    }
    if (closings.failed_callbacks.load() != failed_before)
      outcome = {shutdown_outcome::force_stopped, shutdown_reason::teardown_failed};
    if (!all_closed || time->now() >= deadline)
      outcome = {shutdown_outcome::force_stopped, shutdown_reason::deadline_exceeded};
  }
  if (!repository)
    for (auto& node : nodes)
      if (node->runtime().links)
        node->runtime().links->stop();
  outside.fail_all({error_kind::shutting_down, "the host is shutting down"});
  if (repository) {
    auto releasing = release_all(time->now() + release_patience);
    co_await std::move(releasing);
  }
  state.store(host_state::stopped, std::memory_order_release);
  std::vector<counted_ptr<operation<shutdown_result>>> told;
  {
    std::lock_guard guard{shutdown_mutex_};
    shutdown_result_ = outcome;
    told = std::move(shutdown_waiters_);
  }
  for (auto& waiter : told)
    waiter->set(result<shutdown_result>{outcome});
}

/// False: a handler does not end; what it uses stays behind.
task<bool> host_runtime::close_all(steady_time deadline) {
  std::vector<task<bool>> closes;
  for (auto& object : objects.snapshot())
    closes.push_back(closings.close(std::move(object), spot_close_reason::host_shutdown, deadline, nullptr));
  while (objects.size() != 0 || closings.under_way() != 0) {
    if (time->now() >= deadline + handler_patience) {
      left_behind_ = true;
      co_return false;
    }
    auto pausing = placement::pause(*infra, std::chrono::milliseconds{1});
    co_await std::move(pausing);
    // An activation that was under way when the drain began shows up as another object (L-251).
    if (closings.under_way() == 0)
      for (auto& object : objects.snapshot())
        closes.push_back(closings.close(std::move(object), spot_close_reason::host_shutdown, deadline, nullptr));
  }
  co_return true;
}

task<void> host_runtime::release_all(steady_time until) {
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
