// Several nodes of one mesh inside this process. Each host has an actor system and threads of its own and reaches the
// others over CAF's remoting, as it would from another process; only the store is shared in memory.
#pragma once

#include <zlink/zlink.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

class cluster {
public:
  /// Starts the nodes; returns when each of them can reach every other. Throws `zlink::configuration_error`.
  explicit cluster(std::size_t nodes);
  /// Shuts all nodes down at the same time.
  ~cluster();
  cluster(const cluster&) = delete;
  cluster& operator=(const cluster&) = delete;

  std::size_t size() const { return hosts_.size(); }
  /// One after the other. Any thread.
  zlink::host& next() { return *hosts_[turn_.fetch_add(1, std::memory_order_relaxed) % hosts_.size()]; }
  /// Which node has this routing id.
  std::size_t index_of(const std::string& rid) const;

private:
  zlink::embedded_store store_; // before the hosts, which use it to their end
  std::vector<std::unique_ptr<zlink::host>> hosts_;
  std::atomic<std::size_t> turn_{0};
};
