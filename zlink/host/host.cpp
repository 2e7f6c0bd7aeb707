#include "zlink/host.hpp"

#include "relocation/host_relocate.hpp"
#include "zlink/host/address_actor.hpp"
#include "zlink/execution/signals_blocked.hpp"
#include "zlink/host/host_runtime.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <csignal>
#include <iostream>
#include <memory>
#include <mutex>
#include <vector>

namespace zlink {

const char* to_string(host_state state) noexcept {
  switch (state) {
    case host_state::preparing: return "preparing";
    case host_state::serving: return "serving";
    case host_state::relocating: return "relocating";
    case host_state::relocated: return "relocated";
    case host_state::draining: return "draining";
    case host_state::stopped: return "stopped";
    case host_state::error: return "error";
  }
  return "unknown";
}

const char* to_string(shutdown_outcome outcome) noexcept {
  return outcome == shutdown_outcome::stopped ? "stopped" : "force_stopped";
}

const char* to_string(shutdown_reason reason) noexcept {
  switch (reason) {
    case shutdown_reason::none: return "none";
    case shutdown_reason::deadline_exceeded: return "deadline_exceeded";
    case shutdown_reason::teardown_failed: return "teardown_failed";
  }
  return "unknown";
}

const char* to_string(listener_kind kind) noexcept { return kind == listener_kind::mesh ? "mesh" : "stream"; }

const char* to_string(trace_category category) noexcept {
  return category == trace_category::spot_instance ? "spot-instance" : "actor-relocation";
}

namespace {

std::unique_ptr<caf::actor_system_config> make_config() {
  auto config = std::make_unique<caf::actor_system_config>();
  configure(*config);
  detail::load_remoting(*config);
  return config;
}

std::unique_ptr<caf::actor_system> make_system(caf::actor_system_config& config) {
  const detail::signals_blocked blocked{detail::signals_blocked::which::to_end};
  return std::make_unique<caf::actor_system>(config);
}

/// Hosts whose handlers did not end. Never destroyed, and seen by whoever looks for memory that nothing leads to.
class hosts_left_behind {
public:
  void keep(std::unique_ptr<host> one) {
    std::lock_guard guard{mutex_};
    all_.push_back(std::move(one));
  }

private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<host>> all_;
};

hosts_left_behind& left_behind() {
  static auto& the_hosts = *new hosts_left_behind;
  return the_hosts;
}

} // namespace

host::host(host_options options)
  : own_config_(make_config()), own_system_(make_system(*own_config_)),
    runtime_(std::make_unique<detail::host_runtime>(*own_system_, std::move(options))) {
  runtime_->handle = this;
}

host::host(caf::actor_system& system, host_options options)
  : runtime_(std::make_unique<detail::host_runtime>(system, std::move(options))) {
  runtime_->handle = this;
}

host::host(host& ending) noexcept
  : own_config_(std::move(ending.own_config_)), own_system_(std::move(ending.own_system_)),
    runtime_(std::move(ending.runtime_)) {
  runtime_->handle = this;
}

host::~host() {
  if (runtime_->options.environment == nullptr)
    sync_wait(runtime_->shutdown()); // with an injected environment its owner has shut the host down
  if (runtime_->left_behind()) {
    left_behind().keep(std::unique_ptr<host>{new host{*this}}); // so the bound of ~host is kept
    return;
  }
  runtime_->end();
}

mesh_node& host::add_mesh(std::string name) { return runtime_->add_mesh(std::move(name)); }
mesh_node& host::mesh(const std::string& name) { return runtime_->mesh(name); }

host& host::use_location_store(std::shared_ptr<location_store> store) {
  runtime_->require_configuring("stores");
  if (runtime_->location || runtime_->stores_off)
    throw configuration_error{"the Location Store was chosen before; there is one"};
  runtime_->location = std::move(store);
  return *this;
}

host& host::use_relocation_store(std::shared_ptr<relocation_store> store) {
  runtime_->require_configuring("stores");
  if (runtime_->relocation || runtime_->stores_off || runtime_->relocation_off)
    throw configuration_error{"the Relocation Store was chosen before; there is one"};
  runtime_->relocation = std::move(store);
  return *this;
}

host& host::use_store(const embedded_store& store) {
  return use_location_store(store.location()).use_relocation_store(store.relocation());
}

host& host::without_stores() {
  runtime_->require_configuring("stores");
  if (runtime_->location || runtime_->relocation)
    throw configuration_error{"a store was chosen before without_stores()"};
  runtime_->stores_off = true;
  return *this;
}

host& host::without_relocation_store() {
  runtime_->require_configuring("stores");
  if (runtime_->relocation || runtime_->stores_off)
    throw configuration_error{"a Relocation Store was chosen, or all stores switched off, before without_relocation_store()"};
  runtime_->relocation_off = true;
  return *this;
}

host& host::add_codec(std::shared_ptr<const codec> added) {
  runtime_->require_configuring("codecs");
  runtime_->codecs.add(std::move(added));
  return *this;
}

void host::start() {
  auto starting = runtime_->start();
  try {
    sync_wait(std::move(starting));
  } catch (const operation_failed&) {
    if (runtime_->start_failure)
      throw configuration_error{*runtime_->start_failure};
    throw;
  }
}

int host::run() {
  const detail::signals_blocked blocked{detail::signals_blocked::which::to_end};
  int code = 0;
  try {
    start();
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGINT);
    int received = 0;
    sigwait(&wanted, &received);
  } catch (const configuration_error& what) {
    std::cerr << what.what() << '\n';
    code = 2;
  }
  const auto ended = sync_wait(shutdown());
  return code != 0 ? code : ended.outcome == shutdown_outcome::stopped ? 0 : 1;
}

task<shutdown_result> host::shutdown() { return runtime_->shutdown(); }
task<relocate_result> host::relocate(relocate_options options, std::stop_token cancel) {
  return runtime_->relocating().relocate(options, std::move(cancel));
}
spot_manager host::spots() const noexcept { return spot_manager{*runtime_}; }
actor_manager host::actors() const noexcept { return actor_manager{*runtime_}; }
node_client host::nodes() const noexcept { return node_client{*runtime_}; }
channel_client host::channels() const noexcept { return channel_client{*runtime_}; }
operator_queries host::queries() const noexcept { return operator_queries{*runtime_}; }
host_status host::status() const { return runtime_->status(); }
listener_status host::listener(listener_kind kind, const std::string& name) const { return runtime_->listener(kind, name); }
caf::actor_system& host::system() const noexcept { return runtime_->system; }

caf::actor host::spot_actor(std::string spot_id, spot_actor_options options) {
  detail::require_valid_id("spot id", spot_id);
  if (!options.instance_spot.empty())
    detail::require_valid_id("instance spot type", options.instance_spot);
  else if (!options.in_mesh.empty())
    throw std::invalid_argument{"in_mesh needs instance_spot: it says where a missing spot may come to life"};
  if (options.send_timeout.count() != 0)
    options.send_timeout = detail::check_timeout(options.send_timeout);
  return detail::make_address_actor(*runtime_, std::move(spot_id), std::move(options));
}

// -- managers -----------------------------------------------------------------------------------------------------------

detail::message_call spot_manager::call(std::string spot_id, detail::record* r) const {
  return detail::make_spot_call(*host_, std::move(spot_id), r);
}

spot_create_call spot_manager::create(std::string spot_type) const {
  detail::require_valid_id("spot type", spot_type);
  return spot_create_call{detail::create_call{*host_, detail::created_object::issued_spot, {}, std::move(spot_type)}};
}

spot_get_or_create_call spot_manager::get_or_create(std::string spot_id, std::string spot_type) const {
  detail::require_valid_id("spot id", spot_id);
  detail::require_valid_id("spot type", spot_type);
  return spot_get_or_create_call{
    detail::create_call{*host_, detail::created_object::spot_if_missing, std::move(spot_id), std::move(spot_type)}};
}

task<std::optional<spot_ref>> spot_manager::find(std::string spot_id, std::stop_token cancel) const {
  detail::require_valid_id("spot id", spot_id);
  return host_->spots.find(std::move(spot_id), std::move(cancel));
}

task<bool> spot_manager::close(spot_ref spot, std::stop_token cancel) const {
  detail::require_valid_id("spot id", spot.spot_id);
  return host_->spots.close(std::move(spot), std::move(cancel));
}

actor_create_call actor_manager::create(std::string actor_id, std::string actor_type) const {
  detail::require_valid_id("actor id", actor_id);
  detail::require_valid_id("actor type", actor_type);
  return actor_create_call{
    detail::create_call{*host_, detail::created_object::actor, std::move(actor_id), std::move(actor_type)}};
}

actor_create_call actor_manager::get_or_create(std::string actor_id, std::string actor_type) const {
  detail::require_valid_id("actor id", actor_id);
  detail::require_valid_id("actor type", actor_type);
  return actor_create_call{
    detail::create_call{*host_, detail::created_object::actor_if_missing, std::move(actor_id), std::move(actor_type)}};
}

task<std::optional<actor_ref>> actor_manager::find(std::string actor_id, std::stop_token cancel) const {
  detail::require_valid_id("actor id", actor_id);
  return host_->actors.find(std::move(actor_id), std::move(cancel));
}

task<std::optional<spot_ref>> actor_manager::find_spot(std::string actor_id, std::stop_token cancel) const {
  detail::require_valid_id("actor id", actor_id);
  return host_->actors.find_spot(std::move(actor_id), std::move(cancel));
}

task<bool> actor_manager::destroy(actor_ref who, std::stop_token cancel) const {
  detail::require_valid_id("actor id", who.actor_id);
  return host_->actors.destroy(std::move(who), std::move(cancel));
}

detail::message_call node_client::call(std::string mesh_name, std::string node_rid, detail::record* r) const {
  try {
    detail::require_valid_id("mesh name", mesh_name);
    detail::require_valid_id("node rid", node_rid);
  } catch (...) {
    detail::free_record(r);
    throw;
  }
  return {*host_, host_->find_node(mesh_name), std::move(mesh_name), std::move(node_rid), r};
}

namespace detail {

void create_call::set_mesh(std::string name) {
  twice_ = twice_ || mesh_;
  mesh_ = std::move(name);
}
void create_call::set_request(message request) {
  twice_ = twice_ || request_;
  request_ = std::move(request);
}
void create_call::set_timeout(time_span limit) {
  const auto checked = check_timeout(limit);
  twice_ = twice_ || timeout_;
  timeout_ = checked;
}
void create_call::begin(counted_ptr<operation_base> ended, turn_use use, std::stop_token cancel) {
  auto& host = *host_;
  auto taken = std::move(*this);
  started_ = true;
  host.spots.create(std::move(taken), std::move(ended), use, std::move(cancel));
}

} // namespace detail
} // namespace zlink
