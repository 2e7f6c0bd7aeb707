// Node-direct messages to nodes that are known and have no ready link: they wait in order, up to the send timeout (M-89,
// M-148).
#pragma once

#include "zlink/messaging/submission.hpp"
#include "zlink/unique_function.hpp"

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace zlink::detail {

class infrastructure;

/// Thread-safe.
class node_holds {
public:
  /// `send` takes a message to that node over a link that is ready, or ends it.
  node_holds(infrastructure& infra, unique_function<void(submission message)> send)
    : infra_(infra), send_(std::move(send)) {}
  node_holds(const node_holds&) = delete;
  node_holds& operator=(const node_holds&) = delete;

  /// True: others wait for that node, and `message` now waits behind them.
  bool queue_behind(submission& message);
  /// `message` waits for `release()` of its target, or for the end of its patience.
  void hold(submission message);
  /// The node has a ready link: what waits for it goes, before anything that comes meanwhile.
  void release(const std::string& rid);
  /// Nobody waits for any node.
  bool empty() const noexcept { return lines_in_use_.load(std::memory_order_acquire) == 0; }

private:
  struct line {
    std::deque<submission> waiting;
    bool releasing = false;
  };
  void add(line& to, submission message);
  void expire(const std::string& rid);

  infrastructure& infra_;
  unique_function<void(submission)> send_;
  std::mutex mutex_;
  std::map<std::string, line, std::less<>> lines_;
  std::atomic<std::size_t> lines_in_use_{0};
};

} // namespace zlink::detail
