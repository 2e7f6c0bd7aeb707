// The nodes of a mesh as the replay sees them: hosts of this process through which it speaks, and where Spots can live.
#pragma once

#include "shared_mesh.hpp"

#include <zlink/zlink.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

class cluster {
public:
  /// All nodes in this process. Each host has an actor system and threads of its own and reaches the others over CAF's
  /// remoting; only the store is shared in memory. Lines leave from every node. Returns when each of them can reach every
  /// other. Throws `zlink::configuration_error`.
  explicit cluster(std::size_t nodes);
  /// `nodes` processes run already or will soon. This one becomes a client of their mesh, and all lines leave from it.
  /// Returns when it can reach all of them; throws `std::runtime_error` if that takes too long.
  cluster(std::size_t nodes, const shared_mesh& shared);
  /// Shuts down all hosts of this process at the same time.
  ~cluster();
  cluster(const cluster&) = delete;
  cluster& operator=(const cluster&) = delete;

  /// Nodes where Spots can live.
  std::size_t size() const { return size_; }
  /// A host to speak through, one after the other. Any thread.
  zlink::host& next() { return *hosts_[turn_.fetch_add(1, std::memory_order_relaxed) % hosts_.size()]; }
  /// Returns when all nodes that take packages can be reached, those that have replaced others included; throws
  /// `std::runtime_error` if that takes too long.
  void await_all();
  /// Which node has this routing id, or had it before it was replaced.
  std::size_t index_of(const std::string& rid) const;

private:
  zlink::host& add_host(zlink::host_options options = {}) {
    return *hosts_.emplace_back(std::make_unique<zlink::host>(std::move(options)));
  }

  zlink::embedded_store store_; // before the hosts, which use it to their end
  std::vector<std::unique_ptr<zlink::host>> hosts_;
  const std::size_t size_;
  std::atomic<std::size_t> turn_{0};
};
