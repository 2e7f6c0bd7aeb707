// How a replay and the replacement of all nodes go hand in hand: the log has a share for each node, which is sent while that
// node is emptied and replaced, and one for before and after.
#pragma once

#include <zlink/clock.hpp>

#include <csignal>
#include <cstddef>

class cluster;

/// From the replay to the process that started it: the share of the next node has begun.
inline constexpr int share_has_begun = SIGUSR2;
/// To a node: leave. From it to who started it: it is empty.
inline constexpr int node_leaves = SIGUSR1;

/// Made before the replay and the process that replaces nodes part; each uses its side.
class rolling_pace {
public:
  /// So many lines and nodes.
  rolling_pace(std::size_t lines, std::size_t nodes);
  ~rolling_pace();
  rolling_pace(const rolling_pace&) = delete;
  rolling_pace& operator=(const rolling_pace&) = delete;

  /// The replay: returns when line `index`, from 0 on, may be sent. Lines of a share go out over a while, and the share
  /// after it waits until the node is replaced, and the new one reached.
  void await_line(std::size_t index, cluster& nodes);
  /// Whoever replaces nodes: one more has been.
  void node_replaced() const;

private:
  std::size_t first_of(std::size_t share) const { return share * lines_ / shares_; }
  void await_node() const;

  const std::size_t lines_;
  const std::size_t shares_;
  const int replaced_; // an eventfd that counts them
  std::size_t share_ = 0;
  const zlink::system_clock clock_;
  zlink::steady_time begun_;
};
