// Logical multicast: one event to the subscribed Spots of this node and, once for each, to the nodes that serve the channel
// (M-113 to M-128).
#pragma once

#include "zlink/error.hpp"
#include "zlink/execution/fair_limit.hpp"
#include "zlink/execution/record.hpp"
#include "zlink/message.hpp"
#include "zlink/task.hpp"

#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>

namespace zlink::detail {

class host_runtime;
class node_runtime;
class spot_object;

class publications {
public:
  explicit publications(host_runtime& host);
  publications(const publications&) = delete;
  publications& operator=(const publications&) = delete;
  ~publications();

  /// `r` is the event with its metadata, the owner's from here on. Ends when the publish has started (M-120). Any thread.
  task<void> publish(std::optional<error> mistake, record* r, std::string channel, std::string topic, std::stop_token cancel);
  /// What another node published: to the Spots of this node that match. Any thread.
  void arrived(record* r, std::string_view channel, std::string_view topic, node_runtime& node);
  /// Publishes that have started and not yet reached all their targets. Any thread.
  std::size_t under_way() const noexcept { return slots_.inside(); }
  /// Those that have not started end. Inside the infrastructure unit.
  void refuse_waiting();

private:
  class fan_out;
  class waiting_publish;
  struct event;

  std::optional<error> start(std::unique_ptr<event> what);
  void to_nodes(fan_out& under_way, event& what, const std::vector<std::string>& rids, const bytes& encoded,
                std::string_view content_type, std::string_view packet_name);
  void to_spots(fan_out& under_way, node_runtime& node, const message& content, const record& like, std::string_view channel,
                std::string_view topic, const codec* decoded_by);
  void to_spot(fan_out& under_way, spot_object& object, record* r, steady_time due);

  host_runtime& host_;
  fair_limit slots_;
  std::set<std::shared_ptr<waiting_publish>> waiting_; ///< infrastructure unit only
};

} // namespace zlink::detail
