#include "cluster.hpp"

#include "package_spot.hpp"

#include <stdexcept>

namespace {

constexpr const char* mesh = "packages";

} // namespace

cluster::cluster(std::size_t nodes) {
  for (std::size_t i = 0; i < nodes; ++i) {
    auto& host = *hosts_.emplace_back(std::make_unique<zlink::host>());
    host.use_store(store_); // hosts that share a store find each other
    host.add_mesh(mesh)
      .rid_prefix("node-" + std::to_string(i + 1))
      .object_server()
      .add_instance_spot_factory<package_spot>(package_spot::type, [](auto& factory) { factory.disable_relocation(); });
    host.start();
  }
  for (auto& host : hosts_)
    zlink::sync_wait(host->mesh(mesh).until_peers_ready(nodes - 1));
}

cluster::~cluster() {
  for (auto& host : hosts_)
    host->shutdown(); // begins; the host's destructor waits for its end
}

std::size_t cluster::index_of(const std::string& rid) const {
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    if (hosts_[i]->mesh(mesh).rid() == rid)
      return i;
  throw std::logic_error{"no node has the routing id " + rid};
}
