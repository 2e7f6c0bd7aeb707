#include "arena.hpp"

#include <zlink/redis_store.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include <poll.h>

namespace {

using namespace std::chrono_literals;

constexpr const char* visitors = "visitor"; ///< routing ids of those who hold nothing begin with it
constexpr auto patience = 60s;              ///< for processes to find each other on a busy machine

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

arena arena::fresh(std::string redis_url) { return {std::move(redis_url), "match_room:" + random_text(), random_text()}; }

zlink::host_options arena::settings() {
  zlink::host_options options;
  // A node that has handed everything over passes on what still comes for it, and may go when nobody can know its address
  // any more. Both times are short here, so that a deploy is; a cache has to forget 5 s before the forwarding ends.
  options.message_follow_duration = 6s;
  options.route_cache_max_age = 1s;
  return options;
}

zlink::mesh_node& arena::declare(zlink::host& host, const std::string& name) const {
  zlink::redis_options location;
  location.url = redis_url;
  location.key_prefix = key_prefix + ":location";
  auto relocation = location;
  relocation.key_prefix = key_prefix + ":relocation";
  host.use_location_store(zlink::make_redis_location_store(location))
    .use_relocation_store(zlink::make_redis_relocation_store(relocation));
  auto& node = host.add_mesh(mesh);
  node.transport(zlink::mesh_transport::tcp).rid_prefix(name).request_timeout(10s);
  if (!secret.empty())
    node.secret(secret);
  return node;
}

std::string name_of(const std::string& rid) {
  constexpr std::size_t drawn = 1 + 36; // what the layer appends: a hyphen and a UUID
  return rid.size() > drawn ? rid.substr(0, rid.size() - drawn) : rid;
}

visitor::visitor(const arena& where, std::size_t nodes) : host_(arena::settings()) {
  where.declare(host_, visitors).object_client();
  host_.start();
  const zlink::system_clock clock;
  const auto until = clock.now() + patience;
  for (;;) {
    const auto seen = look_around();
    if (seen.size() >= nodes && std::ranges::all_of(seen, [](const seen_node& one) { return one.report.has_value(); }))
      return;
    if (clock.now() > until)
      throw std::runtime_error{"of at least " + std::to_string(nodes) + " nodes that should be there, "
                               + std::to_string(seen.size()) + " are, and not all of them answer"};
    ::poll(nullptr, 0, 50);
  }
}

std::vector<seen_node> visitor::look_around() {
  std::vector<seen_node> all;
  for (const auto& one : zlink::sync_wait(host_.queries().nodes(arena::mesh))) {
    if (!one.live || one.node_rid.starts_with(visitors))
      continue;
    auto asking = host_.nodes().request_to_node(arena::mesh, one.node_rid, ask_node{}).timeout(2s).submit<node_report>();
    const auto told = zlink::sync_wait(zlink::as_result(std::move(asking)));
    all.push_back({one.node_rid, told ? std::optional{*told} : std::nullopt});
  }
  return all;
}

std::string visitor::find(const std::string& name) {
  for (const auto& one : look_around())
    if (name_of(one.rid) == name)
      return one.rid;
  throw std::runtime_error{"there is no live node of the name " + name};
}
