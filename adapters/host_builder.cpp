// Where a host meets the outside world: which link it uses by default, and CAF's settings (C-46, D-12). The only file that
// sees both the model and its adapters.
#include "adapters/caf/caf_link.hpp"
#include "adapters/tcp/tcp_link.hpp"
#include "zlink/caf/caf_reply.hpp"
#include "zlink/host/address_actor.hpp"
#include "zlink/host/host_runtime.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/io/middleman.hpp>

#include <algorithm>
#include <thread>

namespace zlink {

namespace {

/// A link for a system without CAF's remoting: the mesh is this host alone.
class no_transport final : public detail::link_transport {
public:
  detail::endpoint listen(const std::string&, std::uint16_t, accept_handler) override { return {"none", "127.0.0.1", 1}; }
  void connect(const detail::endpoint&, std::uint32_t, connect_handler done) override {
    done(error{error_kind::not_configured, "the actor system has no caf::io::middleman loaded"});
  }
  void stop() override {}
};

/// Sets a value that the application has left at CAF's default.
template <class T>
void prefer(caf::actor_system_config& config, const std::string& key, T value) {
  if (!caf::get_if<T>(&content(config), key))
    config.set(key, std::move(value));
}

} // namespace

void configure(caf::actor_system_config& config) {
  prefer(config, "scheduler.policy", caf::atom("sharing"));
  prefer(config, "scheduler.max-threads", std::size_t{std::max(1u, std::thread::hardware_concurrency())});
  prefer(config, "scheduler.max-throughput", std::size_t{300});
  prefer(config, "middleman.workers", std::size_t{0});
  for (const auto* packet : detail::registered_packets())
    if (const auto* ops = packet->caf.load(std::memory_order_acquire))
      detail::announce(*ops, config);
  config.add_error_category(caf_error_category, [](std::uint8_t, caf::atom_value, const caf::message& context) {
    return context.match_elements<std::string>() ? context.get_as<std::string>(0) : std::string{"a zlink error"};
  });
}

namespace detail {

void load_remoting(caf::actor_system_config& config) { config.load<caf::io::middleman>(); }

std::shared_ptr<link_transport> host_runtime::make_transport(const std::string& mesh) {
  if (options.transport)
    return options.transport(system, mesh);
  if (const auto& node = find_node(mesh)->settings; node.transport == mesh_transport::tcp) {
    tcp_link_options link;
    link.mesh = mesh;
    link.secret = node.secret.value_or(std::string{});
    link.tls = node.tls;
    link.on_refused = options.on_link_refused;
    link.time = time;
    link.random = random;
    return make_tcp_link(std::move(link));
  }
  if (!system.has_middleman())
    return std::make_shared<no_transport>();
  return make_caf_link(system);
}

} // namespace detail
} // namespace zlink
