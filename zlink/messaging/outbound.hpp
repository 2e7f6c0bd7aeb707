// How a message from this host finds its target: the object table, else the route cache, else the store (M-74), with
// everything of one id in order behind the first that has to resolve (D-7).
#pragma once

#include "zlink/execution/gate.hpp"
#include "zlink/messaging/resolver.hpp"
#include "zlink/messaging/submission.hpp"
#include "zlink/placement/directory.hpp"

#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace zlink::detail {

class host_runtime;
class link_session;
class node_runtime;
struct message_header;

/// What the local table said to a record.
enum class local_verdict : std::uint8_t {
  admitted,
  absent,    ///< not here: resolve
  no_room,   ///< here, wait
  same_gate, ///< refused: the caller holds the gate it would wait for (X-48)
  refused,   ///< refused, see the error
  closing,   ///< here until its close is over; the message has Instance intent (C-117)
};

class outbound {
public:
  explicit outbound(host_runtime& host);
  outbound(const outbound&) = delete;
  outbound& operator=(const outbound&) = delete;

  /// One step, any thread. `r` is the object's if `admitted`, else still the caller's. `forbidden`: the caller's gate for a
  /// request that keeps the turn, or null.
  local_verdict try_local(record* r, std::string_view id, const instance_intent* intent, const gate* forbidden,
                          std::optional<error>& why, bool arrival = false);
  /// Others of that id wait to be resolved: queue behind them.
  bool is_resolving(std::string_view id) const noexcept;
  /// Takes the message on its way, whatever that is. Any thread.
  void submit(submission message, const gate* forbidden = nullptr);
  /// What to do with a message from a link once it has a permit (M-63). Any thread.
  void deliver(record* r, const message_header& header, node_runtime& node);
  /// The same for later, when `header` is gone.
  unique_function<void()> make_delivery(record* r, const message_header& header, node_runtime& node);
  /// One step, any thread, one-way messages only: true if it is on its way, else nothing has happened.
  bool try_to_node(record* r, const std::string& rid, std::string_view mesh_name);
  /// Node direct (M-88, M-89).
  void submit_to_node(submission message, std::string mesh_name);
  /// Over the ready link, or the end of the message. Any thread.
  void send_to_ready_node(submission message, node_runtime& from);

  resolver routes;

private:
  struct shard {
    std::mutex mutex;
    std::unordered_map<std::string, std::deque<submission>> waiting;
  };
  static constexpr std::size_t shards = 16;
  shard& shard_of(std::string_view id) const noexcept { return shards_[std::hash<std::string_view>{}(id) % shards]; }

  /// False: nobody resolves this id, and the message is still the caller's.
  bool queue_behind(submission& message);
  void begin_resolving(submission message);
  task<void> resolve_all(std::string id);
  std::deque<submission> take_waiting(const std::string& id);
  /// True if more arrived meanwhile.
  bool end_resolving(const std::string& id);
  task<void> place_resolved(std::string id, resolution found, std::deque<submission> waiting);
  void place_owned(const resolution& found, submission message);
  void place_here(submission message);
  void hold_for_creation(const std::string& id, const resolution& found, submission message);
  struct chosen_target {
    std::string type;
    std::shared_ptr<const placement::descriptor_record> descriptor;
  };
  task<void> place_missing(const std::string& id, const resolution& found, submission message);
  task<result<chosen_target>> choose_target(node_runtime& node, std::optional<std::string> type);
  result<chosen_target> choose_among(const placement::directory_snapshot& snapshot, node_runtime& node,
                                     const std::optional<std::string>& type);
  void retry_later(submission message);
  void send_by_link(submission message, link_session& link, const object_route* route, const instance_intent* intent,
                    const placement::descriptor_record* target);
  void accept_for_node(record* r, std::string_view rid, node_runtime& node);
  void accept_remote(record* r, const std::string& id, std::optional<instance_intent> intent, bool fenced,
                     node_runtime& node);
  counted_ptr<link_session> link_to(std::string_view mesh_name, std::string_view rid);

  host_runtime& host_;
  mutable std::array<shard, shards> shards_;
  std::atomic<std::size_t> resolving_{0};
};

} // namespace zlink::detail
