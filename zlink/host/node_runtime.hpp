// One mesh node of a host: what was configured and registered, and what it is while it runs.
#pragma once

#include "zlink/execution/fair_limit.hpp"
#include "zlink/identity.hpp"
#include "zlink/link.hpp"
#include "zlink/membership/actor_factory.hpp"
#include "zlink/mesh_transport.hpp"
#include "zlink/messaging/node_channels.hpp"
#include "zlink/messaging/node_handlers.hpp"
#include "zlink/objects/spot_factory.hpp"
#include "zlink/objects/spot_object.hpp"
#include "zlink/objects/subscriptions.hpp"
#include "zlink/placement/directory.hpp"
#include "zlink/placement/records.hpp"
#include "zlink/placement/registration.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace zlink::detail {

class host_runtime;
class mesh_links;

/// What the builder collected; frozen at start, but for the weight (C-2).
struct node_settings {
  std::string mesh_name;
  placement::object_role role = placement::object_role::none;
  std::optional<std::string> rid_prefix;
  std::optional<std::string> fixed_rid;
  std::optional<std::string> bind_host;
  std::optional<std::string> advertise_host;
  std::uint16_t listen_port = 0;
  mesh_transport transport = mesh_transport::caf;
  std::optional<mesh_tls> tls;
  std::optional<std::string> secret;
  std::vector<endpoint> peers; ///< by hand
  std::uint32_t placement_weight = defaults::placement_weight;
  std::uint32_t actor_limit = defaults::actor_limit;
  std::uint32_t spot_limit = defaults::spot_limit;
  std::uint32_t activation_concurrency = defaults::activation_concurrency;
  std::chrono::milliseconds instance_idle_timeout = defaults::instance_spot_idle_timeout;
  std::chrono::milliseconds request_timeout = defaults::request_timeout;
  std::chrono::milliseconds send_timeout = defaults::send_timeout;
  std::unique_ptr<spot_factory> entry;
  std::vector<std::unique_ptr<spot_factory>> factories;
  std::vector<std::unique_ptr<actor_factory>> actor_factories;
};

class node_runtime {
public:
  node_runtime(host_runtime& host, std::string mesh_name);
  ~node_runtime();
  node_runtime(const node_runtime&) = delete;
  node_runtime& operator=(const node_runtime&) = delete;

  host_runtime& host() const noexcept { return host_; }
  const std::string& mesh_name() const noexcept { return settings.mesh_name; }
  bool has_object_role() const noexcept { return settings.role != placement::object_role::none; }
  bool is_server() const noexcept { return settings.role == placement::object_role::server; }
  const spot_factory* find_factory(spot_kind kind, std::string_view type) const noexcept;
  const actor_factory* find_actor_factory(std::string_view type) const noexcept;
  /// Its Entry Spot is declared with the class of that type (C-136).
  bool hosts_actors(const actor_factory& factory) const noexcept;
  /// Throws `configuration_error` unless the host is still being configured.
  void require_configuring(const char* what) const;
  /// Everything wrong with this node's settings (C-34).
  void collect_mistakes(std::vector<std::string>& mistakes) const;
  /// The factories that cannot be without a Relocation Store (C-32).
  void collect_payload_users(std::vector<std::string>& mistakes) const;
  /// Fixes RID, lifecycle and Entry Spot id, and what its objects share.
  void fix_identity(random_source& random);
  /// The descriptor as it is to be published in this state.
  placement::descriptor_record describe(placement::node_state state) const;
  /// The channels that it serves, with their weights now. Any thread.
  std::vector<placement::channel_weight> published_channels() const;
  /// The id of the Entry Spot once it is published, else empty (C-48). Any thread.
  std::string published_entry_id() const;
  std::string rid() const;
  void publish_entry();
  void note_listening(std::string where);
  std::string listening_at() const;
  /// For reservations; empty before the first publication, which no reservation survives. Inside the unit.
  placement::descriptor_stamp stamp() const;
  placement::capacity_limits limits_for(const spot_factory& factory) const noexcept;

  node_settings settings;
  placement::node_identity identity;
  std::string entry_id;
  object_home home;
  const std::shared_ptr<filter_makers> filters;
  node_handlers handlers;
  node_channels channels;
  subscriptions subscribed; ///< Spots of this node to what is published
  std::unique_ptr<fair_limit> activations;                       ///< C-42
  std::unique_ptr<placement::node_registration> registration;
  std::unique_ptr<placement::directory> peers_known;
  std::unique_ptr<mesh_links> links;
  counted_ptr<spot_object> entry;
  std::string listening; ///< endpoint as text, while the unit runs

private:
  host_runtime& host_;
  mutable std::mutex mutex_;
  bool identity_fixed_ = false;
  bool entry_published_ = false;
};

} // namespace zlink::detail
