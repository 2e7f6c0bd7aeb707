// How a message from this host finds its target: the object table, else the route cache, else the store (M-74), with
// everything of one id in order behind the first that has to resolve (D-7).
#pragma once

#include "zlink/execution/gate.hpp"
#include "zlink/messaging/handed_on.hpp"
#include "zlink/messaging/placements.hpp"
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
#include <variant>
#include <vector>

namespace zlink::detail {

class detour;
class host_runtime;
class link_session;
class node_runtime;
class spot_object;
struct message_header;
struct object_home;
enum class target_kind : std::uint8_t;

/// What the local table said to a record.
enum class local_verdict : std::uint8_t {
  admitted,
  absent,    ///< not here: resolve
  no_room,   ///< here, wait
  same_gate, ///< refused: the caller holds the gate it would wait for (X-48)
  refused,   ///< refused, see the error
  stale,     ///< refused: the sender's picture of ownership is outdated, or this node's is (M-63)
  closing,   ///< here until its close is over; the message has Instance intent (C-117)
  elsewhere, ///< it moves, or has moved: what stands in its place takes the message on (L-180)
};

class outbound {
public:
  explicit outbound(host_runtime& host);
  outbound(const outbound&) = delete;
  outbound& operator=(const outbound&) = delete;

  /// One step, any thread. `r` is the object's if `admitted`, else still the caller's. `forbidden`: the caller's gate for a
  /// request that keeps the turn, or null.
  local_verdict try_local(record* r, std::string_view id, const instance_intent* intent, const gate* forbidden,
                          std::optional<error>& why);
  /// Others of that id wait to be resolved: queue behind them.
  bool is_resolving(std::string_view id) const noexcept;
  /// Messages of any id do.
  bool resolving() const noexcept { return resolving_.load(std::memory_order_acquire) != 0; }
  /// Requests of other nodes that this one has handed on, and owes the reply to (C-117).
  std::size_t relayed() const noexcept { return relayed_.load(std::memory_order_acquire); }
  /// The reply to such a request has come. Any thread.
  void following_ended(const std::string& id);
  /// Takes the message of this node on its way, whatever that is. Any thread.
  void submit(submission&& message);
  /// Messages for the next incarnation of a Spot that is gone, in order and before all that come after them (C-117). They
  /// are looked up again in the infrastructure unit.
  void hand_over(const std::string& id, std::vector<submission> messages);
  /// The same, to another node than that of `object`, which ends; then `object` leaves the table. Inside the unit.
  void hand_on(const spot_object& object, std::vector<submission> messages);
  /// All that comes for the id from now on waits until `release_line`, which hands on what comes before it.
  void hold_line(const std::string& id);
  void release_line(const spot_object& object, std::vector<submission> messages);
  /// A record that `object` had accepted, and that nothing has been done with.
  submission taken_back(record* r, const spot_object& object, const refused_nodes& refused);
  /// What to do with a message from a link once it has a permit (M-63). `source`: the sender's RID, which stays as long as
  /// the host. Any thread.
  void deliver(record* r, const message_header& header, node_runtime& node, const std::string& source);
  /// One step, any thread, one-way messages only: true if it is on its way to where the object is known to be, else nothing
  /// has happened.
  bool try_known(record* r, std::string_view id, const instance_intent* intent);
  /// The same to a node.
  bool try_to_node(record* r, const node_runtime& from, const std::string& rid);
  /// Node direct (M-88, M-89).
  void submit_to_node(submission message, std::string mesh_name);
  /// To the member of that channel whose turn it is (M-94, M-99, M-100).
  void submit_to_channel(submission message);
  /// Over the ready link, or the end of the message. Any thread.
  void send_to_ready_node(submission message, node_runtime& from);

  /// By that route and no other: the store is not asked, and nobody else than the incarnation that it names gets the message
  /// (N-88, N-93). Any thread.
  void submit_along(submission message, const object_route& route);
  /// A message for an object that has moved on to that node, sent after it by a former owner: `past` is his ownership. Any
  /// thread.
  void send_after(submission message, node_runtime& from, const std::string& rid, const message_fence& past);
  /// A message that a former owner of the object has sent on by the lane of its move; it is there now, or was. `past`: his
  /// ownership. Any thread.
  void deliver_followed(record* r, const std::string& address, node_runtime& node, const std::string& source, const message_fence& past);

  /// What was sent by that route did not run there (M-82). Any thread.
  void route_failed(const std::string& id, const message_fence& fence);
  /// A request that was to wake the Spot at that node has its end: from now on the store tells. Any thread.
  void placement_ended(const std::string& id, const std::string& node_rid);

  resolver routes;

private:
  struct line {
    std::deque<submission> messages;
    bool looked_up = false;  ///< somebody does, and will place what is in line
    std::uint32_t holds = 0; ///< nobody may until they are gone, or what is placed meanwhile has to wait
  };
  struct shard {
    std::mutex mutex;
    std::unordered_map<std::string, line> waiting;
  };
  static constexpr std::size_t shards = 16;
  shard& shard_of(std::string_view id) const noexcept { return shards_[std::hash<std::string_view>{}(id) % shards]; }

  // Here (outbound.cpp).
  local_verdict judge_local(record* r, std::string_view id, const instance_intent* intent, const gate* forbidden,
                            const message_fence* fence, bool arrival, std::optional<error>& why,
                            counted_ptr<detour>* follow = nullptr);
  /// Appends it or tells why not; not admitted: the message is whole again.
  local_verdict deliver_here(submission& message, std::optional<error>& why);
  bool wait_for_room(submission& message);
  bool hold_for_next(submission& message);
  void send_known(submission&& message);
  message_header header_for(std::string_view id, const object_route* route, const instance_intent* intent,
                            const placement::descriptor_record* target) const;
  void send_by_link(submission&& message, link_session& link, const object_route* route, const instance_intent* intent,
                    const placement::descriptor_record* target);
  counted_ptr<link_session> link_to(std::string_view mesh_name, std::string_view rid);
  void send_to_node(submission&& message, node_runtime& from, const std::string& rid, target_kind target);
  bool lists_server(const node_runtime& from, std::string_view channel) const;

  // The line of an id that is being resolved (resolving.cpp).
  /// False: nobody resolves this id, and the message is still the caller's.
  bool queue_behind(submission& message);
  template <class Put>
  void put_in_line(const std::string& id, Put put);
  void begin_resolving(submission message);
  void look_up(const std::string& id);
  void drop_line(const std::string& id, const error& why);
  task<void> resolve_all(std::string id);
  std::deque<submission> take_waiting(const std::string& id);
  /// True if nobody came meanwhile.
  bool end_resolving(const std::string& id);
  task<void> place_resolved(const std::string& id, const resolution& found, std::deque<submission> waiting,
                            std::deque<submission>& kept);
  void place_here(submission message, std::deque<submission>& kept);
  void place_owned(const resolution& found, submission message, std::deque<submission>& kept);
  void place_creating(const resolution& found, submission message, std::deque<submission>& kept);
  void keep(submission message, std::deque<submission>& kept);
  bool is_here(const object_route& route) const;

  // Another node has to take it (handing_on.cpp).
  bool is_held(const std::string& id) const;
  bool follows_others(submission& message);
  reply_route relay(const std::string& id, reply_route asked);
  void choose_again(submission& message, const std::string& type, const object_home& here);
  void note_handed_on(const spot_object& object);

  // A missing Spot (placing.cpp).
  struct chosen_target {
    std::string mesh;
    std::string type;
    std::shared_ptr<const placement::descriptor_record> descriptor;
  };
  task<void> place_missing(const std::string& id, const resolution& found, submission message,
                           std::deque<submission>& kept);
  void note_placement(const std::string& id, placements::target where);
  std::variant<node_runtime*, error> node_of(const submission& message);
  task<result<chosen_target>> choose_target(const std::string& id, node_runtime& node, const instance_intent& wanted);
  std::optional<chosen_target> chosen_before(const std::string& id, const refused_nodes& refused);
  result<chosen_target> choose_among(const placement::directory_snapshot& snapshot, node_runtime& node,
                                     const instance_intent& wanted);
  void begin_here(const std::string& id, const resolution& found, node_runtime& node, const std::string& type,
                  submission message, std::deque<submission>& kept);

  // From other nodes (inbound.cpp).
  submission arrived(record* r, const message_header& header, node_runtime& node, const std::string& source);
  void accept_for_node(record* r, std::string_view rid, node_runtime& node);
  void accept_for_channel(record* r, std::string_view channel, node_runtime& node);
  void accept_event(record* r, const message_header& header, node_runtime& node);
  void accept_remote(submission message);
  void refuse_record(record* r, error why);
  void refuse_arrived(submission message, local_verdict verdict, std::optional<error> why);

  host_runtime& host_;
  placements placed_; ///< infrastructure unit only
  handed_on handed_on_;
  mutable std::array<shard, shards> shards_;
  std::atomic<std::size_t> resolving_{0};
  std::atomic<std::size_t> relayed_{0};
};

/// Of an id that nobody owns, to a message without intent.
error missing_error(std::string_view id);
/// What an existing Spot of this kind and type has against a message with intent (C-63, C-90, M-156).
std::optional<error> conflict(spot_kind kind, const std::string& type, const instance_intent* intent,
                              std::string_view id);

} // namespace zlink::detail
