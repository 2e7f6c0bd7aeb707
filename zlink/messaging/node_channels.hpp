// The channels of one mesh node: what it takes part in, which peers serve, and whose turn it is (M-92 to M-102).
#pragma once

#include "zlink/messaging/control_frames.hpp"
#include "zlink/messaging/node_handlers.hpp"
#include "zlink/messaging/wire.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zlink::detail {

/// A client only calls; a server is a target too, with handlers and weight (M-92).
struct channel_membership {
  std::string name;
  std::uint32_t weight = 0;                ///< 0..10000, of a server
  std::unique_ptr<node_handlers> handlers; ///< of a server, else null
  bool server() const noexcept { return handlers != nullptr; }
};

/// Why no member is chosen (M-100).
enum class no_member : std::uint8_t {
  none,     ///< no ready node serves the channel
  excluded, ///< those that do have weight 0, or are about to end
};

class node_channels {
public:
  node_channels(execution_domain& domain, std::string mesh_name, std::shared_ptr<filter_makers> filters);
  node_channels(const node_channels&) = delete;
  node_channels& operator=(const node_channels&) = delete;

  // -- what this node takes part in; only before start, but for the weight --------------------------------------------------

  /// Throws `configuration_error` for a name that is there already.
  void add_client(std::string name);
  channel_membership& add_server(std::string name);
  /// Null if this node does not take part.
  const channel_membership* find(std::string_view name) const noexcept;
  const std::vector<std::unique_ptr<channel_membership>>& memberships() const noexcept { return memberships_; }
  /// Any thread. Its own servers with their weights now.
  std::vector<link_channel> announced() const;
  channel_state state() const;
  std::uint64_t revision() const;
  /// Any thread, of a server. Peers are to be told.
  void set_weight(std::string_view name, std::uint32_t weight);
  /// False takes this node out of all new selections (M-102, L-260). Peers are to be told.
  void be_selected(bool selectable);

  /// Messages wait, or handlers have not ended with all that they began. Any thread.
  bool busy() const;
  void cut_short(const error& why);

  // -- peers; any thread ----------------------------------------------------------------------------------------------------

  void peer_ready(const link_identity& peer);
  /// What a peer says of itself; older than what is known: nothing happens (M-101). Whether it is to be selected stands in
  /// no handshake, so what is as old as that counts.
  void peer_changed(std::string_view rid, const channel_state& told);
  void peer_gone(std::string_view rid);
  /// A peer that has gone served it, and has not come back.
  bool was_served(std::string_view name) const;

  /// The RID of the member whose turn it is.
  std::optional<std::string> select(std::string_view name, no_member& why);
  /// The RIDs of all that take new work, once each whatever their weight (M-116).
  std::vector<std::string> targets(std::string_view name) const;
  bool has_target(std::string_view name) const { return !targets(name).empty(); }

private:
  struct peer_state {
    std::uint64_t revision = 0;
    bool ready = false;
    bool draining = false;
    std::map<std::string, std::uint32_t, std::less<>> weights; ///< of the channels it serves
  };
  /// One that may be chosen, with what it has saved up (M-97).
  struct candidate {
    std::string rid;
    std::uint32_t weight;
    std::int64_t saved;
  };
  using rotation = std::vector<candidate>; ///< in byte order of RIDs

  channel_membership* find_own(std::string_view name) noexcept;
  void update_rotations(const peer_state& changed);
  void update_rotation(const std::string& name);

  execution_domain& domain_;
  const std::string mesh_name_;
  const std::shared_ptr<filter_makers> filters_;
  std::vector<std::unique_ptr<channel_membership>> memberships_;
  mutable std::mutex mutex_;
  std::uint64_t revision_ = 1;
  bool selectable_ = true;
  std::map<std::string, peer_state, std::less<>> peers_;
  std::map<std::string, rotation, std::less<>> rotations_;
};

} // namespace zlink::detail
