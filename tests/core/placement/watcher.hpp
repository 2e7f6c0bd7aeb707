// A host that watches a mesh, and hosts to be seen by it.
#pragma once

#include "tests/core/placement/keeper_host.hpp"
#include "zlink/placement/directory.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace zlink::placement::test {

/// A host that watches mesh "m".
struct watcher {
  explicit watcher(shared_world& w, directory_settings settings = {})
    : host(w), nodes(host.infra, host.records, "m", settings) {
    nodes.add_listener([this](const directory::snapshot_ptr& now) {
      ++changes;
      last = now;
      if (on_change)
        on_change(*now);
    });
    host.infra.post([this] { nodes.start(); });
    w.executor.run();
  }
  ~watcher() {
    host.run([this] { return nodes.stop(); });
  }
  std::vector<std::string> rids() const {
    std::vector<std::string> all;
    const auto now = nodes.snapshot();
    for (const auto& node : now->nodes())
      all.push_back(node.descriptor->node.node_rid + (node.lingering ? " (lingering)" : ""));
    return all;
  }
  std::size_t usable() const {
    const auto now = nodes.snapshot();
    const auto all = now->candidates(host.world.now());
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const auto& one) { return !one.outdated; }));
  }
  refresh_outcome refresh() {
    return host.run([this] { return nodes.refresh(); });
  }
  std::size_t lease_reads(const keeper_host& of) const {
    std::size_t n = 0;
    for (const auto& call : host.faults->log())
      n += call.what == store_operation::read && call.key == of.lease();
    return n;
  }

  keeper_host host;
  directory nodes;
  int changes = 0;
  directory::snapshot_ptr last;
  std::function<void(const directory_snapshot&)> on_change;
};

/// A host with one published node.
struct serving_host {
  serving_host(shared_world& w, const std::string& rid) : host(w), node(host.started(), rid) { node.published(); }
  /// The process is gone; its records stay.
  void crash() { host.lose_store(); }

  keeper_host host;
  test_registration node;
};

} // namespace zlink::placement::test
