#include "node_processes.hpp"

#include "samples/shared/child_process.hpp"
#include "samples/shared/local_redis.hpp"

#include <csignal>
#include <iostream>
#include <optional>
#include <vector>

#include <sys/wait.h>

namespace {

/// The first that has ended.
child_process* ended_among(const std::vector<child_process*>& all) {
  for (auto* one : all)
    if (one->status())
      return one;
  return nullptr;
}

/// Waits until the replay is through, or until it makes no sense any more.
int await_end(child_process& replay, const std::vector<child_process*>& needed, const kept_signals& signals) {
  for (;;) {
    const int received = signals.next();
    if (received != SIGCHLD) {
      std::cerr << "event_replay: told to stop\n";
      return 128 + received;
    }
    if (const auto status = replay.status()) {
      if (WIFEXITED(*status))
        return WEXITSTATUS(*status);
      std::cerr << "event_replay: the replay " << describe_end(*status) << '\n';
      return 1;
    }
    if (auto* gone = ended_among(needed)) {
      std::cerr << "event_replay: " << gone->name() << ' ' << describe_end(*gone->status())
                << " before the replay was through\n";
      return 1;
    }
  }
}

} // namespace

int run_with_node_processes(const options& chosen, const std::function<int(const shared_mesh&)>& replay) {
  const kept_signals signals; // before anything is started
  std::optional<local_redis> own;
  if (chosen.redis.empty())
    own.emplace();
  const auto shared = shared_mesh::fresh(own ? own->url() : chosen.redis);

  std::vector<child_process> nodes;
  nodes.reserve(chosen.nodes);
  for (std::size_t i = 0; i < chosen.nodes; ++i)
    nodes.emplace_back(node_prefix(i), [i, &shared] { return run_node(i, shared); });
  int code = 0;
  {
    child_process replaying{"replay", [&] {
                              signals.let_through();
                              return replay(shared);
                            }};
    std::vector<child_process*> needed;
    for (auto& node : nodes)
      needed.push_back(&node);
    if (own)
      needed.push_back(&own->process());
    code = await_end(replaying, needed, signals);
  }
  for (auto& node : nodes) // all at the same time; the destructors wait for them
    node.ask_to_end();
  return code;
}
