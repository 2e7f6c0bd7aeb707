#include "zlink/host/node_runtime.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/mesh_links.hpp"

#include <algorithm>
#include <set>
#include <typeindex>

namespace zlink::detail {

namespace {

constexpr std::chrono::milliseconds longest_idle_timeout = std::chrono::years{100};

constexpr std::string_view default_rid_prefix = "node"; // C-5

bool is_rid_prefix(std::string_view text) noexcept {
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  });
}

placement::object_kind kind_of(spot_kind kind) noexcept {
  return kind == spot_kind::user ? placement::object_kind::user_spot : placement::object_kind::instance_spot;
}

placement::relocation_policy published(relocation_policy policy) noexcept {
  switch (policy) {
    case relocation_policy::recreate: return placement::relocation_policy::recreate;
    case relocation_policy::preserve_state: return placement::relocation_policy::preserve_state;
    default: return placement::relocation_policy::disabled;
  }
}

/// What is wrong with one factory's settings, each as a sentence that names it.
void collect_factory_mistakes(const std::string& mesh, const spot_factory& factory, std::vector<std::string>& mistakes) {
  const std::string name = "mesh \"" + mesh + "\": spot type \"" + factory.type + "\": ";
  if (factory.policy == relocation_policy::none)
    mistakes.push_back(name + "exactly one relocation policy is required, got none; call disable_relocation(), "
                              "recreate_on_relocation() or preserve_state_with(adapter)");
  if (!factory.make)
    mistakes.push_back(name + "the class cannot be constructed from its context alone; call construct_with(function)");
  if (factory.mode == execution_mode::per_actor && factory.policy != relocation_policy::recreate)
    mistakes.push_back(name + "per_actor() goes with recreate_on_relocation() only, since its state is not moved");
  if (factory.application_signaled && factory.mode != execution_mode::spot_wide)
    mistakes.push_back(name + "application_signaled() needs a SpotWide spot; leave out per_actor()");
  if (factory.limit > placement::slot_limit)
    mistakes.push_back(name + "limit(" + std::to_string(factory.limit) + ") is beyond 2147483647");
}

void collect_actor_mistakes(const std::string& mesh, const actor_factory& factory, std::vector<std::string>& mistakes) {
  const std::string name = "mesh \"" + mesh + "\": actor type \"" + factory.type + "\": ";
  if (factory.policy == relocation_policy::none)
    mistakes.push_back(name + "exactly one relocation policy is required, got none; call disable_relocation(), "
                              "recreate_on_relocation() or preserve_state_with(adapter)");
  if (!factory.make)
    mistakes.push_back(name + "the class cannot be constructed from its context alone; call construct_with(function)");
}

/// What start finds out of the link without opening a socket (O-23, O-141); CAF's own settings are looked at by its link.
void collect_link_mistakes(const node_settings& settings, const std::string& bind, std::vector<std::string>& mistakes) {
  const std::string name = "mesh \"" + settings.mesh_name + "\": ";
  const auto& [cert, key, ca] = settings.tls.value_or(mesh_tls{});
  const auto scheme = to_string(settings.transport);
  for (const auto& peer : settings.peers)
    if (peer.scheme != scheme)
      mistakes.push_back(name + "peer " + to_string(peer) + " cannot be reached by transport " + scheme);
  if (settings.transport == mesh_transport::caf) {
    if (settings.tls || settings.secret)
      mistakes.push_back(name + "tls and secret need transport tcp; CAF's remoting takes its certificates from the actor system's config");
    return;
  }
  if (settings.tls && (cert.empty() || key.empty() || ca.empty()))
    mistakes.push_back(name + "tls needs cert, key and ca");
  if (settings.secret && (settings.secret->size() < 16 || settings.secret->size() > 1024))
    mistakes.push_back(name + "secret takes 16 to 1024 bytes, got " + std::to_string(settings.secret->size()));
  if (!settings.tls && !is_loopback(bind))
    mistakes.push_back(name + "bind_host " + bind + " is not loopback: tls is required there; give mesh_node::tls the files cert, key and ca");
  for (const auto& peer : settings.peers)
    if (!settings.tls && !is_loopback(peer.host))
      mistakes.push_back(name + "peer " + to_string(peer) + " is not loopback: tls is required there; give mesh_node::tls the files cert, key and ca");
}

} // namespace

node_runtime::node_runtime(host_runtime& host, std::string mesh_name)
  : filters(std::make_shared<filter_makers>()), handlers(host.domain, mesh_name, handler_surface::node, filters),
    channels(host.domain, mesh_name, filters), host_(host) {
  settings.mesh_name = std::move(mesh_name);
}

node_runtime::~node_runtime() = default;

const spot_factory* node_runtime::find_factory(spot_kind kind, std::string_view type) const noexcept {
  for (const auto& factory : settings.factories)
    if (factory->kind == kind && factory->type == type)
      return factory.get();
  return nullptr;
}

const actor_factory* node_runtime::find_actor_factory(std::string_view type) const noexcept {
  for (const auto& factory : settings.actor_factories)
    if (factory->type == type)
      return factory.get();
  return nullptr;
}

bool node_runtime::hosts_actors(const actor_factory& factory) const noexcept {
  return settings.entry != nullptr && settings.entry->actor_class == factory.instance_type;
}

void node_runtime::require_configuring(const char* what) const {
  if (!host_.configuring())
    throw configuration_error{"mesh \"" + mesh_name() + "\": " + what + " cannot change once the host has started"};
}

void node_runtime::collect_mistakes(std::vector<std::string>& mistakes) const {
  const std::string name = "mesh \"" + mesh_name() + "\": ";
  if (settings.rid_prefix && !is_rid_prefix(*settings.rid_prefix))
    mistakes.push_back(name + "rid_prefix \"" + *settings.rid_prefix + "\" must be 1 to 64 of A-Z a-z 0-9 . _ -");
  if (settings.fixed_rid) {
    if (!is_valid_id(*settings.fixed_rid))
      mistakes.push_back(name + "fixed_rid takes 1 to 255 bytes of UTF-8, got " + std::to_string(settings.fixed_rid->size()));
    if (has_object_role() || !host_.stores_off)
      mistakes.push_back(name + "fixed_rid needs a node without object role in a host without_stores(); with stores each "
                                "start issues a routing id of its own, see rid_prefix()");
    if (settings.rid_prefix)
      mistakes.push_back(name + "fixed_rid and rid_prefix exclude each other; leave out one");
  }
  if (!is_server() && (!settings.factories.empty() || !settings.actor_factories.empty() || settings.entry))
    mistakes.push_back(name + "factories and Entry Spots need object_server()");
  if (settings.role == placement::object_role::client && !handlers.empty())
    mistakes.push_back(name + "a node with object_client() takes no node-direct handler");
  if (!settings.peers.empty() && (has_object_role() || !host_.stores_off))
    mistakes.push_back(name + "peers by hand need a node without object role in a host without_stores(); with stores, discovery finds them");
  if (settings.placement_weight > defaults::max_placement_weight)
    mistakes.push_back(name + "placement_weight " + std::to_string(settings.placement_weight) + " is not in 0..10000");
  for (const auto& channel : channels.memberships())
    if (channel->weight > defaults::max_channel_weight)
      mistakes.push_back(name + "channel \"" + channel->name + "\": weight " + std::to_string(channel->weight) + " is not in 0..10000");
  if (settings.spot_limit > placement::slot_limit)
    mistakes.push_back(name + "spot_limit " + std::to_string(settings.spot_limit) + " is beyond 2147483647");
  if (settings.activation_concurrency == 0)
    mistakes.push_back(name + "activation_concurrency must be at least 1");
  if (settings.instance_idle_timeout.count() < 0)
    mistakes.push_back(name + "instance_spot_idle_timeout must not be negative");
  const auto bind = settings.bind_host.value_or(host_.options.bind_host);
  const auto advertise = settings.advertise_host.value_or(settings.bind_host ? std::string{} : host_.options.advertise_host);
  const auto wildcard = [](const std::string& host) { return host == "0.0.0.0" || host == "::"; };
  if (wildcard(bind) && advertise.empty())
    mistakes.push_back(name + "bind_host " + bind + " needs an advertise_host that peers can reach");
  if (std::ranges::count(advertise, ':') == 1) // two or more: an address of IPv6
    mistakes.push_back(name + "advertise_host " + advertise + " holds a port; that is listen_port");
  if (wildcard(advertise))
    mistakes.push_back(name + "advertise_host " + advertise + " is no address that peers can reach");
  if (!host_.options.transport)
    collect_link_mistakes(settings, bind, mistakes);
  for (const auto& factory : settings.actor_factories)
    collect_actor_mistakes(mesh_name(), *factory, mistakes);
  if (settings.actor_limit > placement::slot_limit)
    mistakes.push_back(name + "actor_limit " + std::to_string(settings.actor_limit) + " is beyond 2147483647");
  std::set<std::type_index> user_classes;
  std::set<std::string> user_types;
  for (const auto& factory : settings.factories) {
    collect_factory_mistakes(mesh_name(), *factory, mistakes);
    if (factory->kind == spot_kind::user) {
      user_classes.insert(factory->instance_type);
      user_types.insert(factory->type);
    }
  }
  for (const auto& factory : settings.factories)
    if (factory->kind == spot_kind::instance
        && (user_types.contains(factory->type) || user_classes.contains(factory->instance_type)))
      mistakes.push_back(name + "spot type \"" + factory->type + "\": one type or class cannot be User and Instance Spot");
  if (const auto types = settings.factories.size() + settings.actor_factories.size(); types > placement::descriptor_record::capability_limit)
    mistakes.push_back(name + std::to_string(types) + " types are registered, 1024 at most are possible");
}

void node_runtime::collect_payload_users(std::vector<std::string>& mistakes) const {
  for (const auto& factory : settings.factories)
    if (factory->kind == spot_kind::instance || factory->policy == relocation_policy::recreate
        || factory->policy == relocation_policy::preserve_state)
      mistakes.push_back("mesh \"" + mesh_name() + "\": spot type \"" + factory->type
                         + "\" needs a Relocation Store; leave out without_relocation_store()");
  for (const auto& factory : settings.actor_factories)
    if (factory->policy == relocation_policy::recreate || factory->policy == relocation_policy::preserve_state)
      mistakes.push_back("mesh \"" + mesh_name() + "\": actor type \"" + factory->type
                         + "\" needs a Relocation Store; leave out without_relocation_store()");
}

void node_runtime::fix_identity(random_source& random) {
  const std::string prefix = settings.rid_prefix.value_or(std::string{default_rid_prefix});
  const auto rid_bits = random.next_id();
  const auto entry_bits = random.next_id();
  std::lock_guard guard{mutex_};
  identity.mesh_name = mesh_name();
  identity.node_rid = settings.fixed_rid.value_or(prefix + '-' + format_uuid_v4(rid_bits));
  do
    identity.lifecycle.value = random.next();
  while (!identity.lifecycle);
  if (is_server() && settings.entry)
    entry_id = prefix + "-entry-" + format_uuid_v4(entry_bits);
  home.host = &host_;
  home.mesh_name = mesh_name();
  home.node_rid = identity.node_rid;
  home.request_timeout = settings.request_timeout;
  home.send_timeout = settings.send_timeout;
  home.spot_limit = settings.spot_limit;
  home.actor_limit = settings.actor_limit;
  // Compared in nanoseconds, which count 292 years.
  home.instance_idle_timeout = std::min(settings.instance_idle_timeout, longest_idle_timeout);
  activations = std::make_unique<fair_limit>(settings.activation_concurrency);
  identity_fixed_ = true;
}

placement::descriptor_record node_runtime::describe(placement::node_state state) const {
  placement::descriptor_record d;
  d.node = identity;
  d.state = state;
  d.role = settings.role;
  d.endpoint = listening;
  d.entry_spot_id = entry_id;
  d.placement_weight = settings.placement_weight;
  d.actor_limit = settings.actor_limit;
  d.spot_limit = settings.spot_limit;
  d.channels = published_channels();
  d.activation_limit = settings.activation_concurrency;
  d.application_version = std::to_string(host_.options.application_version);
  d.maintenance_wave = host_.options.maintenance_wave;
  for (const auto& factory : settings.factories) {
    placement::type_capability c;
    c.kind = kind_of(factory->kind);
    c.stable_type = factory->type;
    c.policy = published(factory->policy);
    c.has_adapter = factory->adapter != nullptr;
    c.limit = factory->limit;
    d.capabilities.push_back(std::move(c));
  }
  for (const auto& factory : settings.actor_factories)
    if (hosts_actors(*factory)) {
      placement::type_capability c;
      c.kind = placement::object_kind::actor;
      c.stable_type = factory->type;
      c.policy = published(factory->policy);
      c.has_adapter = factory->adapter != nullptr;
      d.capabilities.push_back(std::move(c));
    }
  return d;
}

std::vector<placement::channel_weight> node_runtime::published_channels() const {
  std::vector<placement::channel_weight> all;
  for (auto& channel : channels.announced())
    if (channel.server)
      all.push_back({std::move(channel.name), channel.weight});
  std::ranges::sort(all, {}, &placement::channel_weight::channel);
  return all;
}

std::string node_runtime::rid() const {
  std::lock_guard guard{mutex_};
  return identity_fixed_ ? identity.node_rid : std::string{};
}

std::string node_runtime::published_entry_id() const {
  std::lock_guard guard{mutex_};
  return entry_published_ ? entry_id : std::string{};
}

void node_runtime::publish_entry() {
  std::lock_guard guard{mutex_};
  entry_published_ = true;
}

void node_runtime::note_listening(std::string where) {
  std::lock_guard guard{mutex_};
  listening = std::move(where);
}

std::string node_runtime::listening_at() const {
  std::lock_guard guard{mutex_};
  return listening;
}

placement::descriptor_stamp node_runtime::stamp() const {
  return registration->stamp().value_or(placement::descriptor_stamp{identity, {}});
}

placement::capacity_limits node_runtime::limits_for(const spot_factory& factory) const noexcept {
  placement::capacity_limits limits;
  limits.spots = settings.spot_limit;
  limits.type_slots = factory.limit;
  return limits;
}

} // namespace zlink::detail
