#include "node_processes.hpp"

#include "samples/shared/child_process.hpp"
#include "samples/shared/local_redis.hpp"

#include <csignal>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <sys/wait.h>

namespace {

/// All nodes, those that have been replaced among them until they have ended.
class node_processes {
public:
  node_processes(std::size_t count, const shared_mesh& shared, rolling_pace* pace) : shared_(shared), pace_(pace) {
    for (std::size_t i = 0; i < count; ++i)
      nodes_.push_back(start(i));
  }

  /// The next one is to hand over what it has.
  void empty_next() {
    if (replaced_ < nodes_.size())
      nodes_[replaced_]->send(node_leaves);
  }
  /// It has done so: another one takes its place, and it goes on passing on what comes late.
  void replace() {
    std::cout << nodes_[replaced_]->name() << " is empty, and replaced" << std::endl;
    left_.push_back(std::exchange(nodes_[replaced_], start(replaced_)));
    ++replaced_;
    pace_->node_replaced();
  }
  /// The first that has ended and should not have, or not in that way.
  child_process* lost() {
    for (const auto& one : nodes_)
      if (one->status())
        return one.get();
    for (const auto& one : left_)
      if (one->status().value_or(0) != 0)
        return one.get();
    return nullptr;
  }
  /// All at the same time; the destructors wait for them.
  void ask_to_end() {
    for (const auto* all : {&nodes_, &left_})
      for (const auto& one : *all)
        one->ask_to_end();
  }

private:
  using process = std::unique_ptr<child_process>;

  process start(std::size_t index) const {
    return std::make_unique<child_process>(node_prefix(index), [this, index] {
      return pace_ ? run_replaceable_node(index, shared_) : run_node(index, shared_);
    });
  }

  const shared_mesh& shared_;
  rolling_pace* const pace_;
  std::vector<process> nodes_;
  std::vector<process> left_;
  std::size_t replaced_ = 0;
};

/// Waits until the replay is through, or until it makes no sense any more.
int await_end(child_process& replay, node_processes& nodes, child_process* redis, const kept_signals& signals) {
  for (;;) {
    const int received = signals.next();
    if (received == share_has_begun) {
      nodes.empty_next();
      continue;
    }
    if (received == node_leaves) {
      nodes.replace();
      continue;
    }
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
    auto* gone = nodes.lost();
    if (!gone && redis && redis->status())
      gone = redis;
    if (gone) {
      std::cerr << "event_replay: " << gone->name() << ' ' << describe_end(*gone->status())
                << " before the replay was through\n";
      return 1;
    }
  }
}

} // namespace

int run_with_node_processes(const options& chosen, rolling_pace* pace,
                            const std::function<int(const shared_mesh&)>& replay) {
  const kept_signals signals; // before anything is started
  std::optional<local_redis> own;
  if (chosen.redis.empty())
    own.emplace();
  const auto shared = shared_mesh::fresh(own ? own->url() : chosen.redis);

  node_processes nodes{chosen.nodes, shared, pace};
  int code = 0;
  {
    child_process replaying{"replay", [&] {
                              signals.let_through();
                              return replay(shared);
                            }};
    code = await_end(replaying, nodes, own ? &own->process() : nullptr, signals);
  }
  nodes.ask_to_end();
  return code;
}
