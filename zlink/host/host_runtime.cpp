#include "zlink/host/host_runtime.hpp"

#include "relocation/host_relocate.hpp"
#include "zlink/execution/job_sizing.hpp"
#include "zlink/execution/processors.hpp"
#include "zlink/execution/system_executor.hpp"
#include "zlink/messaging/mesh_links.hpp"

#include <algorithm>
#include <map>

#include <caf/actor_system_config.hpp>

namespace zlink::detail {

namespace {

lane_limits limits_of(const host_options& options) {
  return {options.application_lane_records != 0 ? options.application_lane_records : defaults::application_lane_records,
          options.application_lane_bytes != 0 ? options.application_lane_bytes : defaults::application_lane_bytes};
}

} // namespace

host_runtime::host_runtime(caf::actor_system& borrowed, host_options given)
  : system(borrowed), options(std::move(given)),
    time(options.time ? options.time : std::make_shared<const system_clock>()),
    random(options.random ? options.random : std::make_shared<system_random>()),
    environment(options.environment ? options.environment : make_system_environment()),
    operations(std::max<std::uint32_t>(options.max_operations, 1)),
    infra(std::make_unique<infrastructure>(environment->make_serial("zlink.infra", time), time)),
    dispatcher(environment->make_serial("zlink.completions", time)), workers(environment->make_workers(options.workers)),
    outside(domain), events(*this), messages(*this), sessions(*this), activations(*this), closings(*this), spots(*this), actors(*this), queries(*this), moving(*this), recovery(*this),
    relocating_(std::make_unique<host_relocate>(*this, moving)) {
  values->system = &system;
  domain.system = &system;
  domain.time = time;
  domain.infra = infra.get();
  domain.dispatcher = dispatcher;
  domain.application = limits_of(options);
  domain.occupancy = options.owner_time_slice;
  domain.codecs = &codecs;
  domain.log = options.on_dispatch_error;
  domain.hand_off = options.environment == nullptr;
  waiting = std::make_unique<waiting_sends>(domain);
  domain.waiting = waiting.get();
}


host_runtime::~host_runtime() = default;

// -- configuration ------------------------------------------------------------------------------------------------------

mesh_node& host_runtime::add_mesh(std::string name) {
  require_configuring("meshes");
  if (!is_valid_id(name))
    throw configuration_error{"a mesh name takes 1 to 255 bytes of UTF-8, got \"" + name + '"'};
  if (find_node(name) != nullptr)
    throw configuration_error{"mesh \"" + name + "\" is declared already; a host has one node per mesh"};
  nodes.push_back(std::make_unique<mesh_node>(std::make_unique<node_runtime>(*this, std::move(name))));
  return *nodes.back();
}

mesh_node& host_runtime::mesh(const std::string& name) {
  std::string known;
  for (const auto& node : nodes) {
    if (node->name() == name)
      return *node;
    known += (known.empty() ? "\"" : ", \"") + node->name() + '"';
  }
  throw configuration_error{"no mesh \"" + name + "\" is declared; there is " + (known.empty() ? std::string{"none"} : known)};
}

node_runtime* host_runtime::find_node(std::string_view mesh_name) noexcept {
  for (const auto& node : nodes)
    if (node->runtime().mesh_name() == mesh_name)
      return &node->runtime();
  return nullptr;
}

std::variant<node_runtime*, error> host_runtime::default_node() {
  node_runtime* found = nullptr;
  for (const auto& node : nodes) {
    if (!node->runtime().has_object_role())
      continue;
    if (found != nullptr)
      return error{error_kind::invalid_operation, "this host has object roles in several meshes; name one: in_mesh(name)"};
    found = &node->runtime();
  }
  if (found == nullptr)
    return error{error_kind::not_configured, "no mesh of this host has an object role; call object_client() or object_server()"};
  return found;
}

std::variant<node_runtime*, error> host_runtime::node_for(const std::optional<std::string>& mesh) {
  if (!mesh)
    return default_node();
  auto* node = find_node(*mesh);
  if (node == nullptr || !node->has_object_role())
    return error{error_kind::not_found, "this host has no mesh \"" + *mesh + "\" with an object role"};
  return node;
}

node_runtime* host_runtime::channel_node(std::string_view channel) noexcept {
  for (const auto& node : nodes)
    if (node->runtime().channels.find(channel) != nullptr)
      return &node->runtime();
  return nullptr;
}

bool host_runtime::lists_entry_spot(std::string_view id) const {
  return is_entry_spot_format(id) && std::ranges::any_of(nodes, [id](const auto& node) {
    const auto& n = node->runtime();
    return n.published_entry_id() == id || (n.peers_known && n.peers_known->find_entry_spot(id));
  });
}

void host_runtime::require_configuring(const char* what) const {
  if (!configuring())
    throw configuration_error{std::string{what} + " cannot be declared once the host has started"};
}

std::vector<std::string> host_runtime::collect_mistakes() const {
  auto mistakes = packet_registration_mistakes();
  bool objects = false;
  for (const auto& node : nodes) {
    node->runtime().collect_mistakes(mistakes);
    objects = objects || node->runtime().has_object_role();
  }
  std::map<std::string, std::string> channel_of;
  for (const auto& node : nodes)
    for (const auto& channel : node->runtime().channels.memberships())
      if (const auto [place, first] = channel_of.try_emplace(channel->name, node->name()); !first)
        mistakes.push_back("channel \"" + channel->name + "\" is declared on meshes \"" + place->second + "\" and \""
                           + node->name() + "\"; a host takes part in a channel on one mesh only");
  if (stores_off && objects)
    mistakes.push_back("object roles need a Location Store; leave out without_stores()");
  if (relocation_off)
    for (const auto& node : nodes)
      node->runtime().collect_payload_users(mistakes);
  const placement::lease_settings lease{options.lease_renew_interval, options.lease_ttl, options.lease_renew_timeout,
                                        options.lease_fencing_margin};
  if (auto mistake = placement::find_mistake(lease))
    mistakes.push_back("owner lease: " + *mistake);
  if (options.shutdown_deadline.count() <= 0)
    mistakes.push_back("shutdown_deadline must be positive");
  if (options.discovery_polling_interval.count() <= 0)
    mistakes.push_back("discovery_polling_interval must be positive");
  if (options.store_failure_grace.count() < 0)
    mistakes.push_back("store_failure_grace must not be negative");
  if (options.route_cache_max_age.count() < 0)
    mistakes.push_back("route_cache_max_age must not be negative; 0 turns the cache off");
  if (options.relocation_cutover_wait.count() <= 0)
    mistakes.push_back("relocation_cutover_wait must be positive");
  if (options.session_relocation_seal_timeout.count() <= 0 || options.session_relocation_seal_timeout > defaults::longest_timeout)
    mistakes.push_back("session_relocation_seal_timeout must be 1 ms to 2147483647 ms");
  if (options.relocation_chunk_bytes < 1024 || options.relocation_chunk_bytes > (32U << 20))
    mistakes.push_back("relocation_chunk_bytes must be 1 KiB to 32 MiB: a larger piece fits into no frame");
  if (options.message_follow_duration.count() < 0)
    mistakes.push_back("message_follow_duration must not be negative; 0 turns following off");
  if (options.max_jobs > 2'147'483'647)
    mistakes.push_back("max_jobs is beyond 2147483647; 0 computes it");
  if (options.owner_time_slice.count() <= 0)
    mistakes.push_back("owner_time_slice must be positive");
  if (options.application_lane_records > admission_word::most_records)
    mistakes.push_back("application_lane_records: at most " + std::to_string(admission_word::most_records));
  if (options.application_lane_bytes > admission_word::most_bytes)
    mistakes.push_back("application_lane_bytes: at most " + std::to_string(admission_word::most_bytes));
  if (options.max_operations == 0)
    mistakes.push_back("max_operations must be at least 1");
  if (options.publish_workers == 0)
    mistakes.push_back("publish_workers must be at least 1");
  if (options.route_cache_max_age.count() > 0 && options.message_follow_duration.count() > 0
      && options.route_cache_max_age + defaults::route_cache_follow_margin > options.message_follow_duration)
    mistakes.push_back("route_cache_max_age must be at least 5 s below message_follow_duration");
  return mistakes;
}

// -- calls ----------------------------------------------------------------------------------------------------------------

std::optional<error> host_runtime::refuse_call(bool needs_objects, bool only_ends) {
  const bool ends_here = only_ends && state.load(std::memory_order_acquire) == host_state::draining;
  if (auto why = ends_here ? std::nullopt : refuse(host_work::placement_away))
    return why;
  if (readiness_signaled())
    return readiness_error();
  if (needs_objects && !has_objects_)
    return error{error_kind::not_configured, "no mesh of this host has an object role; call object_client() or object_server()"};
  return std::nullopt;
}

std::optional<error> host_runtime::refuse(host_work work) const {
  const auto now = state.load(std::memory_order_acquire);
  const auto kind = refusal(work, now);
  if (!kind)
    return std::nullopt;
  switch (now) {
    case host_state::preparing: return error{*kind, "the host has not started"};
    case host_state::error: return error{*kind, "the host has failed"};
    case host_state::relocating:
    case host_state::relocated: return error{*kind, "this host gives away what it has and takes nothing new"};
    default: return error{*kind, "the host is shutting down"};
  }
}

void host_runtime::tell_selection() {
  const bool selectable = !refuse(host_work::selection);
  for (auto& node : nodes) {
    auto& n = node->runtime();
    n.channels.be_selected(selectable);
    if (n.links)
      n.links->tell_channels();
  }
}

std::optional<error> host_runtime::refuse_owned_work() const {
  if (domain.admits(time->now()))
    return std::nullopt;
  return error{error_kind::unavailable, "this host does not hold its ownership lease at the moment"};
}

std::chrono::milliseconds host_runtime::default_request_timeout() {
  if (const auto* t = current_turn())
    if (auto* node = find_node(t->object->mesh_name()))
      return node->settings.request_timeout;
  return nodes.size() == 1 ? nodes.front()->runtime().settings.request_timeout : defaults::request_timeout;
}

std::chrono::milliseconds host_runtime::default_send_timeout() {
  if (const auto* t = current_turn())
    if (auto* node = find_node(t->object->mesh_name()))
      return node->settings.send_timeout;
  return nodes.size() == 1 ? nodes.front()->runtime().settings.send_timeout : defaults::send_timeout;
}

listener_status host_runtime::listener(listener_kind kind, const std::string& name) const {
  const auto fail = [&](const char* why) {
    throw operation_failed{error{error_kind::not_configured, std::string{to_string(kind)} + " listener \"" + name + "\": " + why}};
  };
  const auto node = std::ranges::find_if(nodes, [&](const auto& one) { return one->name() == name; });
  if (kind != listener_kind::mesh || node == nodes.end())
    fail("none of that name is registered");
  listener_status found{kind, name, (*node)->runtime().listening_at(), time->wall_now()};
  if (found.endpoint.empty())
    fail("it is not bound yet");
  return found;
}

void host_runtime::trace(const hosted_object& object, std::string_view event, std::string_view reason) noexcept {
  if (!options.on_trace)
    return;
  trace_record told;
  told.event = event;
  if (object.is_actor())
    told.category = trace_category::actor_relocation;
  else
    told.kind = static_cast<const spot_object&>(object).factory().kind;
  told.mesh_name = object.home_node().mesh_name;
  told.node_rid = object.home_node().node_rid;
  (object.is_actor() ? told.actor_id : told.spot_id) = id_in(object.address());
  (object.is_actor() ? told.actor_type : told.spot_type) = object.type();
  told.object_generation = object.generation().value;
  told.reason = reason;
  trace(told);
}

void host_runtime::trace(const trace_record& told) noexcept {
  if (options.on_trace)
    run_application_callback([&] { options.on_trace(told); });
}

void host_runtime::trace_move(const std::string& address, std::uint64_t generation, std::string_view event,
                              const node_runtime& node) noexcept {
  if (!options.on_trace)
    return;
  trace_record told;
  told.category = trace_category::actor_relocation;
  told.event = event;
  told.mesh_name = node.home.mesh_name;
  told.node_rid = node.home.node_rid;
  (is_actor_address(address) ? told.actor_id : told.spot_id) = id_in(address);
  told.object_generation = generation;
  run_application_callback([&] { options.on_trace(told); });
}

placement::owner_token host_runtime::token() const noexcept {
  return ownership ? ownership->token().value_or(placement::owner_token{}) : placement::owner_token{};
}

host_status host_runtime::status() const {
  host_status s;
  s.state = state.load();
  s.is_ready = s.state == host_state::serving;
  const bool open = s.state == host_state::serving || s.state == host_state::relocating; // the rest of its objects serve on
  s.accepting_work = open && (!has_objects_ || domain.admits(time->now()));
  s.safe_to_shutdown = relocating_->safe_to_shutdown();
  s.last_relocation = relocating_->last_result();
  s.spots = objects.spots();
  s.actors = objects.actors();
  s.operations = outside.size();
  return s;
}

} // namespace zlink::detail
