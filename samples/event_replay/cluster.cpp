#include "cluster.hpp"

#include <chrono>
#include <future>
#include <stdexcept>
#include <utility>

#include <poll.h>

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

void cluster::await_all() {
  const zlink::system_clock clock;
  const auto until = clock.now() + patience;
  auto& host = next();
  const auto reached = [&](const zlink::listed_node& node) {
    auto knocking = host.nodes().request_to_node(shared_mesh::name, node.node_rid, knock{}).timeout(1s).submit<knocked>();
    return zlink::sync_wait(zlink::as_result(std::move(knocking))).has_value();
  };
  for (;;) {
    std::size_t found = 0;
    for (const auto& node : zlink::sync_wait(host.queries().nodes(shared_mesh::name)))
      if (node.live && node.state == "serving" && node.placement_weight > 0 && reached(node))
        ++found;
    if (found >= size_)
      return;
    if (clock.now() >= until)
      throw std::runtime_error{"a node that replaces another one cannot be reached"};
    ::poll(nullptr, 0, 10);
  }
}

std::size_t cluster::index_of(const std::string& rid) const {
  for (std::size_t i = 0; i < size_; ++i)
    if (rid.starts_with(node_prefix(i) + '-'))
      return i;
  throw std::logic_error{"no node has the routing id " + rid};
}
