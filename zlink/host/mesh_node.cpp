#include "zlink/mesh_node.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/mesh_links.hpp"

namespace zlink {

namespace detail {

spot_factory& factory_settings::use() const {
  if (target_ == nullptr)
    throw configuration_error{"a factory builder is used after its registration callback has returned"};
  return *target_;
}

void set_policy(factory_settings& settings, relocation_policy policy) {
  auto& factory = settings.use();
  if (factory.policy != relocation_policy::none)
    throw configuration_error{"spot type \"" + factory.type + "\": exactly one relocation policy is required, got more than one"};
  factory.policy = policy;
}

actor_factory& in_use(actor_factory* target) {
  if (target == nullptr)
    throw configuration_error{"a factory builder is used after its registration callback has returned"};
  return *target;
}

void set_policy(actor_factory& factory, relocation_policy policy) {
  if (factory.policy != relocation_policy::none)
    throw configuration_error{"actor type \"" + factory.type + "\": exactly one relocation policy is required, got more than one"};
  factory.policy = policy;
}

} // namespace detail

void object_server_builder::add(std::unique_ptr<detail::actor_factory> factory) {
  node_->require_configuring("factories");
  const std::string name = "mesh \"" + node_->mesh_name() + "\": ";
  if (!detail::is_valid_id(factory->type))
    throw configuration_error{name + "a stable type takes 1 to 255 bytes of UTF-8, got \"" + factory->type + '"'};
  if (node_->find_actor_factory(factory->type) != nullptr)
    throw configuration_error{name + "actor type \"" + factory->type + "\" is registered already"};
  node_->settings.actor_factories.push_back(std::move(factory));
}

void object_server_builder::add(std::unique_ptr<detail::spot_factory> factory) {
  node_->require_configuring("factories");
  auto& settings = node_->settings;
  const std::string name = "mesh \"" + settings.mesh_name + "\": ";
  if (factory->kind == spot_kind::entry) {
    if (settings.entry)
      throw configuration_error{name + "there is an Entry Spot already; a node has one at most"};
    settings.entry = std::move(factory);
    return;
  }
  if (!detail::is_valid_id(factory->type))
    throw configuration_error{name + "a stable type takes 1 to 255 bytes of UTF-8, got \"" + factory->type + '"'};
  if (node_->find_factory(factory->kind, factory->type) != nullptr)
    throw configuration_error{name + to_string(factory->kind) + " spot type \"" + factory->type + "\" is registered already"};
  settings.factories.push_back(std::move(factory));
}

mesh_node::mesh_node(std::unique_ptr<detail::node_runtime> runtime) noexcept : runtime_(std::move(runtime)) {}
mesh_node::~mesh_node() = default;

const std::string& mesh_node::name() const noexcept { return runtime_->mesh_name(); }
std::string mesh_node::rid() const { return runtime_->rid(); }
std::string mesh_node::entry_spot_id() const { return runtime_->published_entry_id(); }

object_server_builder mesh_node::object_server() {
  runtime_->require_configuring("the object role");
  if (runtime_->settings.role == placement::object_role::client)
    throw configuration_error{"mesh \"" + name() + "\": object_client() was chosen before; a node has one object role"};
  runtime_->settings.role = placement::object_role::server;
  return object_server_builder{*runtime_};
}

mesh_node& mesh_node::object_client() {
  runtime_->require_configuring("the object role");
  if (runtime_->settings.role == placement::object_role::server)
    throw configuration_error{"mesh \"" + name() + "\": object_server() was chosen before; a node has one object role"};
  runtime_->settings.role = placement::object_role::client;
  return *this;
}

mesh_node& mesh_node::rid_prefix(std::string prefix) {
  runtime_->require_configuring("rid_prefix");
  runtime_->settings.rid_prefix = std::move(prefix);
  return *this;
}

mesh_node& mesh_node::fixed_rid(std::string rid) {
  runtime_->require_configuring("fixed_rid");
  runtime_->settings.fixed_rid = std::move(rid);
  return *this;
}

mesh_node& mesh_node::bind_host(std::string host) {
  runtime_->require_configuring("bind_host");
  runtime_->settings.bind_host = std::move(host);
  return *this;
}

mesh_node& mesh_node::advertise_host(std::string host) {
  runtime_->require_configuring("advertise_host");
  runtime_->settings.advertise_host = std::move(host);
  return *this;
}

mesh_node& mesh_node::listen_port(std::uint16_t port) {
  runtime_->require_configuring("listen_port");
  runtime_->settings.listen_port = port;
  return *this;
}

mesh_node& mesh_node::transport(mesh_transport kind) {
  runtime_->require_configuring("transport");
  runtime_->settings.transport = kind;
  return *this;
}

mesh_node& mesh_node::tls(mesh_tls files) {
  runtime_->require_configuring("tls");
  runtime_->settings.tls = std::move(files);
  return *this;
}

mesh_node& mesh_node::secret(std::string shared) {
  runtime_->require_configuring("secret");
  runtime_->settings.secret = std::move(shared);
  return *this;
}

mesh_node& mesh_node::peer(const std::string& where) {
  runtime_->require_configuring("peers");
  auto parsed = detail::parse_endpoint(where);
  if (!parsed)
    throw configuration_error{"mesh \"" + name() + "\": \"" + where + "\" is no endpoint of the form scheme://host:port with port 1 to 65535"};
  runtime_->settings.peers.push_back(std::move(*parsed));
  return *this;
}

std::string mesh_node::endpoint() const { return runtime_->listening_at(); }

mesh_node& mesh_node::placement_weight(std::uint32_t weight) {
  if (weight > defaults::max_placement_weight)
    throw configuration_error{"mesh \"" + name() + "\": placement_weight " + std::to_string(weight) + " is not in 0..10000"};
  if (runtime_->host().configuring())
    runtime_->settings.placement_weight = weight;
  else
    runtime_->host().change_weight(*runtime_, weight);
  return *this;
}

mesh_node& mesh_node::actor_limit(std::uint32_t actors) {
  runtime_->require_configuring("actor_limit");
  runtime_->settings.actor_limit = actors;
  return *this;
}

mesh_node& mesh_node::spot_limit(std::uint32_t spots) {
  runtime_->require_configuring("spot_limit");
  runtime_->settings.spot_limit = spots;
  return *this;
}

mesh_node& mesh_node::activation_concurrency(std::uint32_t sequences) {
  runtime_->require_configuring("activation_concurrency");
  runtime_->settings.activation_concurrency = sequences;
  return *this;
}

mesh_node& mesh_node::instance_spot_idle_timeout(time_span timeout) {
  runtime_->require_configuring("instance_spot_idle_timeout");
  runtime_->settings.instance_idle_timeout = timeout.milliseconds();
  return *this;
}

mesh_node& mesh_node::request_timeout(time_span timeout) {
  runtime_->require_configuring("request_timeout");
  runtime_->settings.request_timeout = detail::check_timeout(timeout);
  return *this;
}

mesh_node& mesh_node::send_timeout(time_span timeout) {
  runtime_->require_configuring("send_timeout");
  runtime_->settings.send_timeout = detail::check_timeout(timeout);
  return *this;
}

task<void> mesh_node::until_peers_ready(std::size_t count, std::stop_token cancel) {
  return runtime_->links->until_ready(count, std::move(cancel));
}

mesh_node& mesh_node::add_channel_client(std::string channel) {
  runtime_->require_configuring("channels");
  detail::require_valid_id("channel name", channel);
  runtime_->channels.add_client(std::move(channel));
  return *this;
}

channel_server_builder mesh_node::add_channel_server(std::string channel) {
  runtime_->require_configuring("channels");
  detail::require_valid_id("channel name", channel);
  return {*runtime_, runtime_->channels.add_server(std::move(channel)).name};
}

mesh_node& mesh_node::channel_weight(const std::string& channel, std::uint32_t weight) {
  detail::set_channel_weight(*runtime_, channel, weight);
  return *this;
}

task<void> mesh_node::until_channel_ready(std::string channel, std::stop_token cancel) {
  if (runtime_->channels.find(channel) == nullptr)
    return detail::make_ready_task(
      result<void>{error{error_kind::not_found, "mesh \"" + name() + "\": this node does not take part in channel \"" + channel + '"'}});
  return runtime_->links->until_channel_ready(std::move(channel), std::move(cancel));
}

void detail::add_channel_handler(node_runtime& node, const std::string& channel, function_handler handler) {
  node.require_configuring("channel handlers");
  node.channels.find(channel)->handlers->add(std::move(handler));
}

void detail::set_channel_weight(node_runtime& node, const std::string& channel, std::uint32_t weight) {
  const std::string name = "mesh \"" + node.mesh_name() + "\": channel \"" + channel + "\": ";
  const auto* membership = node.channels.find(channel);
  if (membership == nullptr || !membership->server())
    throw configuration_error{name + "this node does not serve it, so it has no weight"};
  if (weight > defaults::max_channel_weight)
    throw configuration_error{name + "weight " + std::to_string(weight) + " is not in 0..10000"};
  if (node.host().configuring())
    node.channels.set_weight(channel, weight);
  else
    node.host().change_channel_weight(node, channel, weight);
}

void detail::add_filter(node_runtime& node, filter_maker make) {
  node.require_configuring("filters");
  node.filters->push_back(std::move(make));
}

void detail::add_node_handler(node_runtime& node, function_handler handler) {
  node.require_configuring("node handlers");
  node.handlers.add(std::move(handler));
}

} // namespace zlink
