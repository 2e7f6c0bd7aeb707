#include "commands.hpp"
#include "match.hpp"
#include "samples/shared/stop_signal.hpp"

#include <chrono>
#include <iostream>
#include <utility>

using namespace std::chrono_literals;

namespace {

/// A coroutine is a function, and no lambda with captures, which would be gone before it ends.
zlink::task<node_left> leave(zlink::host& host, zlink::relocate_options how) {
  const auto end = co_await host.relocate(how);
  co_return node_left{end.outcome == zlink::relocate_outcome::relocated, zlink::to_string(end.reason)};
}

/// What has left is followed by late messages for a while; they find it only as long as this host is there. A second signal
/// is for those who cannot wait.
void await_last_messages(zlink::host& host, const stop_signal& stop) {
  while (host.status().state == zlink::host_state::relocated && !host.status().safe_to_shutdown)
    if (stop.await_for(100ms))
      return;
}

} // namespace

int serve(const arena& where, const options& chosen) {
  const stop_signal stop; // before any thread
  auto settings = arena::settings();
  settings.application_version = chosen.version;
  zlink::host host{std::move(settings)};
  auto& node = where.declare(host, chosen.name);
  serve_matches(node);
  node.add_node_handler([&host, version = chosen.version](const ask_node&, const zlink::message_context&) {
    const auto now = host.status();
    return node_report{version, zlink::to_string(now.state), now.safe_to_shutdown, now.spots - 1, now.actors}; // less the lobby
  });
  node.add_node_handler([&host](const leave_node& m, const zlink::message_context&) {
    zlink::relocate_options how{.deadline = std::chrono::seconds{m.seconds}};
    if (m.to_version != 0) {
      how.mode = zlink::relocate_mode::rolling_update;
      how.target_version = m.to_version;
    }
    return leave(host, how);
  });

  host.start();
  std::cout << chosen.name + ": version " + std::to_string(chosen.version) + " serves\n" << std::flush;
  stop.await();
  await_last_messages(host, stop);
  const auto end = zlink::sync_wait(host.shutdown());
  std::cout << chosen.name + ": " + zlink::to_string(end.outcome) + '\n' << std::flush;
  return end.outcome == zlink::shutdown_outcome::stopped ? 0 : 1;
}
