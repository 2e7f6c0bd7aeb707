// What an operator asks for: see everything, and give up what dead nodes left behind.
#include "commands.hpp"
#include "member.hpp"
#include "reach.hpp"
#include "twin.hpp"

#include <cstdio>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;

/// Every twin that the store knows, page by page.
std::vector<zlink::listed_object> all_twins(zlink::host& host) {
  std::vector<zlink::listed_object> twins;
  zlink::object_query asked{.kind = zlink::listed_kind::instance_spot, .stable_type = twin::type};
  do {
    auto page = zlink::sync_wait(host.queries().list(asked));
    twins.insert(twins.end(), page.objects.begin(), page.objects.end());
    asked.continuation = std::move(page.continuation);
  } while (!asked.continuation.empty());
  return twins;
}

/// What a node says about itself, and whether that is good.
struct condition {
  std::string text;
  bool well = false;
};

condition ask(zlink::host& host, const zlink::listed_node& node) {
  if (!node.live) // what it published stays; nothing is placed there any more, and nobody dials it
    return {"is dead: its lease is over", true};
  auto asking = host.nodes().request_to_node(plant, node.node_rid, ask_reach{}).timeout(5s).submit<reach>();
  const auto told = zlink::sync_wait(zlink::as_result(std::move(asking)));
  if (!told)
    return {"does not answer: " + zlink::to_string(told.error()), false};
  const auto all = told->reached.size() + told->missed.size();
  auto text =
    node.state + ", reaches " + std::to_string(told->reached.size()) + " of " + std::to_string(all) + " other";
  for (const auto& missed : told->missed)
    text += ", not " + missed;
  return {text, told->missed.empty()};
}

} // namespace

int show(const options& chosen) {
  client here{chosen};
  auto& host = here.host();
  bool well = true;
  std::printf("%-44s %-28s %s\n", "node", "endpoint", "what it says");
  for (const auto& node : zlink::sync_wait(host.queries().nodes(plant))) {
    if (is_client(node.node_rid))
      continue;
    const auto now = ask(host, node);
    well = well && now.well;
    std::printf("%-44s %-28s %s\n", node.node_rid.c_str(), node.endpoint.c_str(), now.text.c_str());
  }
  std::printf("\n%-10s %-44s %s\n", "twin", "node", "state");
  for (const auto& one : all_twins(host))
    std::printf("%-10s %-44s %s\n", one.id.c_str(), one.node_rid.c_str(), to_string(one.state));
  std::fflush(stdout);
  return well ? 0 : 1;
}

int release(const options& chosen) {
  client here{chosen};
  auto& host = here.host();
  std::size_t released = 0;
  std::size_t refused = 0;
  for (const auto& one : all_twins(host)) {
    if (one.state != zlink::listed_state::unavailable)
      continue;
    // The exact incarnation: if the twin has come to life again meanwhile, nothing happens to it.
    const zlink::spot_ref ref{one.id, std::stoull(one.object_generation), one.mesh_name, one.node_rid};
    const auto gone = zlink::sync_wait(zlink::as_result(host.spots().close(ref)));
    if (!gone)
      std::cout << one.id << " stays: " << to_string(gone.error()) << '\n';
    else if (*gone)
      std::cout << one.id << " is released from " << one.node_rid << '\n';
    released += gone && *gone ? 1 : 0;
    refused += gone ? 0 : 1;
  }
  std::cout << released << " released" << (refused != 0 ? ", " + std::to_string(refused) + " stay" : "") << '\n';
  return refused == 0 ? 0 : 1;
}
