#include "reach.hpp"

#include "member.hpp"

#include <chrono>
#include <utility>

namespace {

using namespace std::chrono_literals;

/// Asks every other node that is alive, all at the same time.
zlink::task<reach> look_around(zlink::host& host, std::string mesh) {
  auto listing = host.queries().nodes(mesh);
  const auto nodes = co_await std::move(listing);
  const auto own = host.mesh(mesh).rid();
  std::vector<std::pair<std::string, zlink::task<presence>>> asked;
  for (const auto& node : nodes) {
    if (!node.live || node.node_rid == own || is_client(node.node_rid))
      continue;
    auto ask = host.nodes().request_to_node(mesh, node.node_rid, ask_presence{}).timeout(3s).submit<presence>();
    asked.emplace_back(node.node_rid, std::move(ask));
  }
  reach seen;
  for (auto& [rid, answer] : asked) {
    const auto outcome = co_await zlink::as_result(std::move(answer));
    (outcome ? seen.reached : seen.missed).push_back(rid);
  }
  co_return seen;
}

} // namespace

void serve_reach(zlink::mesh_node& node, zlink::host& host, const std::string& mesh) {
  node.add_node_handler([](const ask_presence&, const zlink::message_context&) { return presence{}; });
  node.add_node_handler(
    [&host, mesh](const ask_reach&, const zlink::message_context&) { return look_around(host, mesh); });
}
