#include "member.hpp"

#include <zlink/redis_store.hpp>

#include <algorithm>
#include <chrono>
#include <future>
#include <iostream>
#include <memory>

namespace {

using namespace std::chrono_literals;

/// Nodes that hold twins and live.
std::size_t serving_nodes(zlink::host& host) {
  const auto nodes = zlink::sync_wait(host.queries().nodes(plant));
  return static_cast<std::size_t>(std::ranges::count_if(
    nodes, [](const zlink::listed_node& node) { return node.live && !is_client(node.node_rid); }));
}

} // namespace

zlink::host_options settings_of(const options& chosen) {
  zlink::host_options settings;
  settings.shutdown_deadline = 20s;
  settings.on_trace = [name = chosen.name](const zlink::trace_record& what) {
    if (what.kind != zlink::spot_kind::instance)
      return;
    const std::string id{what.spot_id};
    std::string line;
    if (what.event == "created")
      line = name + ": " + id + " lives here\n";
    else if (what.event == "closed")
      line = name + ": " + id + " has ended: " + std::string{what.reason} + '\n';
    else if (what.event == "abandoned")
      line = name + ": " + id + " is given up: the lease of this host was lost\n";
    std::cout << line << std::flush;
  };
  return settings;
}

zlink::mesh_node& join(zlink::host& host, const options& chosen) {
  zlink::redis_options location;
  location.url = chosen.redis_url;
  location.key_prefix = "cluster-sample:location";
  auto relocation = location;
  relocation.key_prefix = "cluster-sample:relocation";
  host.use_location_store(zlink::make_redis_location_store(location))
    .use_relocation_store(zlink::make_redis_relocation_store(relocation));

  auto& node = host.add_mesh(plant);
  node.transport(zlink::mesh_transport::tcp)
    .rid_prefix(chosen.name)
    .bind_host(chosen.bind)
    .advertise_host(chosen.advertise)
    .listen_port(chosen.port)
    .request_timeout(5s);
  if (const auto& in = chosen.tls_directory; !in.empty())
    node.tls({.cert = in + '/' + chosen.name + ".crt", .key = in + '/' + chosen.name + ".key", .ca = in + "/ca.crt"});
  if (!chosen.secret.empty())
    node.secret(chosen.secret);
  return node;
}

bool is_client(const std::string& rid) { return rid.starts_with(client_prefix); }

client::client(const options& chosen) : host_(settings_of(chosen)) {
  join(host_, chosen).rid_prefix(client_prefix + chosen.name).object_client();
  host_.start();
  const auto expected = serving_nodes(host_);
  auto linked = std::make_shared<std::promise<void>>(); // shared: who waited too long is gone when it comes true
  auto when = linked->get_future();
  host_.mesh(plant).until_peers_ready(expected).then([linked](zlink::result<void>) { linked->set_value(); });
  if (when.wait_for(5s) != std::future_status::ready)
    std::cerr
      << "cluster: not all of the " << expected
      << " nodes that the Redis names are reached; firewall, certificates, --advertise? See also what was refused\n";
}
