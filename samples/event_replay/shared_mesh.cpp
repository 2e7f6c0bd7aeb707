#include "shared_mesh.hpp"

#include "package_spot.hpp"
#include "rolling.hpp"

#include <zlink/redis_store.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <initializer_list>
#include <iostream>
#include <utility>

#include <unistd.h>

namespace {

using namespace std::chrono_literals;

constexpr auto looks_for_news = 200ms; // of other nodes

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

zlink::host_options shared_mesh::options() {
  zlink::host_options options;
  options.shutdown_deadline = 10s; // a Redis that has gone cannot be told that the node ends
  options.discovery_polling_interval = looks_for_news;
  return options;
}

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
  node.add_node_handler([](const knock&, const zlink::message_context&) { return knocked{}; });
  node.object_server().add_instance_spot_factory<package_spot>(package_spot::type,
                                                               [](auto& factory) {
                                                                 factory.preserve_state_with(package_adapter{});
                                                               });
}

namespace {

/// The first of these signals, all of them blocked; 0 if none comes in time.
int await_signal(std::initializer_list<int> all, std::chrono::nanoseconds patience = 24h) {
  sigset_t which;
  ::sigemptyset(&which);
  for (const int one : all)
    ::sigaddset(&which, one);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(patience);
  const timespec limit{seconds.count(), (patience - seconds).count()};
  return std::max(::sigtimedwait(&which, nullptr, &limit), 0);
}

/// True if everything has left the host, which goes on passing late messages on.
bool empty(zlink::host& host) {
  // A first line that another node has sent here before it read that nothing may come to life here any more would be refused.
  host.mesh(shared_mesh::name).placement_weight(0);
  await_signal({}, 3 * looks_for_news);
  const auto moved = zlink::sync_wait(host.relocate({.deadline = 60s}));
  if (moved.outcome == zlink::relocate_outcome::relocated)
    return true;
  std::cerr << "event_replay: a node cannot be emptied: " << zlink::to_string(moved.reason) << '\n';
  return false;
}

} // namespace

int run_node(std::size_t index, const shared_mesh& shared) {
  zlink::host host{shared_mesh::options()};
  serve_packages(shared.declare(host).rid_prefix(node_prefix(index)));
  return host.run();
}

int run_replaceable_node(std::size_t index, const shared_mesh& shared) {
  zlink::host host{shared_mesh::options()};
  serve_packages(shared.declare(host).rid_prefix(node_prefix(index)));
  host.start();
  int told = 0;
  while (told == 0)
    told = await_signal({SIGTERM, SIGINT, node_leaves});
  if (told == node_leaves) {
    if (!empty(host))
      return 1;
    ::kill(::getppid(), node_leaves);
    while (!host.status().safe_to_shutdown && await_signal({SIGTERM, SIGINT}, 1s) == 0) {
    }
  }
  return zlink::sync_wait(host.shutdown()).outcome == zlink::shutdown_outcome::stopped ? 0 : 1;
}
