#include "cluster.hpp"

#include <chrono>
#include <future>
#include <stdexcept>
#include <utility>

namespace {

using namespace std::chrono_literals;

constexpr auto patience = 60s; // for processes to find each other on a busy machine

/// Waits until the node reaches so many others.
void await_peers(zlink::mesh_node& node, std::size_t count) {
  auto ready = std::make_shared<std::promise<void>>(); // shared: who waited too long is gone when it comes true
  auto when = ready->get_future();
  node.until_peers_ready(count).then([ready](zlink::result<void>) { ready->set_value(); });
  if (when.wait_for(patience) != std::future_status::ready)
    throw std::runtime_error{
      "the nodes did not find each other within a minute; is the Redis there, and does it answer?"};
}

} // namespace

cluster::cluster(std::size_t nodes) : size_(nodes) {
  for (std::size_t i = 0; i < nodes; ++i) {
    auto& host = add_host();
    host.use_store(store_); // hosts that share a store find each other
    serve_packages(host.add_mesh(shared_mesh::name).rid_prefix(node_prefix(i)));
    host.start();
  }
  for (auto& host : hosts_)
    zlink::sync_wait(host->mesh(shared_mesh::name).until_peers_ready(nodes - 1));
}

cluster::cluster(std::size_t nodes, const shared_mesh& shared) : size_(nodes) {
  auto& host = add_host(shared_mesh::options());
  auto& client = shared.declare(host).rid_prefix("replay").object_client();
  host.start();
  await_peers(client, nodes);
}

cluster::~cluster() {
  for (auto& host : hosts_)
    host->shutdown(); // begins; the host's destructor waits for its end
}

std::size_t cluster::index_of(const std::string& rid) const {
  for (std::size_t i = 0; i < size_; ++i)
    if (rid.starts_with(node_prefix(i) + '-'))
      return i;
  throw std::logic_error{"no node has the routing id " + rid};
}
