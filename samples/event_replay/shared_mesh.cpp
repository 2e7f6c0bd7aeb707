#include "shared_mesh.hpp"

#include "package_spot.hpp"

#include <zlink/redis_store.hpp>

#include <chrono>
#include <cstdint>
#include <utility>

namespace {

using namespace std::chrono_literals;

/// 32 characters that nobody guesses.
std::string random_text() {
  static constexpr char digits[] = "0123456789abcdef";
  zlink::system_random random;
  std::string text;
  for (int i = 0; i < 2; ++i) {
    auto bits = random.next();
    for (int digit = 0; digit < 16; ++digit, bits >>= 4)
      text += digits[bits & 0xf];
  }
  return text;
}

} // namespace

shared_mesh shared_mesh::fresh(std::string redis_url) {
  return {std::move(redis_url), "event_replay:" + random_text(), random_text()};
}

zlink::mesh_node& shared_mesh::declare(zlink::host& host) const {
  zlink::redis_options location;
  location.url = redis_url;
  location.key_prefix = key_prefix + ":location";
  auto relocation = location;
  relocation.key_prefix = key_prefix + ":relocation";
  host.use_location_store(zlink::make_redis_location_store(location))
    .use_relocation_store(zlink::make_redis_relocation_store(relocation));
  return host.add_mesh(name).transport(zlink::mesh_transport::tcp).secret(secret);
}

std::string node_prefix(std::size_t index) { return "node-" + std::to_string(index + 1); }

void serve_packages(zlink::mesh_node& node) {
  node.object_server().add_instance_spot_factory<package_spot>(package_spot::type,
                                                               [](auto& factory) { factory.disable_relocation(); });
}

int run_node(std::size_t index, const shared_mesh& shared) {
  zlink::host_options options;
  options.shutdown_deadline = 10s; // a Redis that has gone cannot be told that the node ends
  zlink::host host{options};
  serve_packages(shared.declare(host).rid_prefix(node_prefix(index)));
  return host.run();
}
