// docs/guide/hosts.md: two hosts that share a store, links between them, and where Spots are placed.
#include <zlink/zlink.hpp>

#include <iostream>
#include <string>

struct whereabouts {};
struct found_at { std::string rid; };

ZLINK_PACKET(whereabouts, "fleet.whereabouts")
ZLINK_PACKET(found_at, "fleet.found_at", rid)

class ship final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;

  caf::behavior make_behavior() override {
    return {[this](const whereabouts&) { return found_at{context().node_rid()}; }};
  }
};

zlink::mesh_node& join_fleet(zlink::host& host, const zlink::embedded_store& store, const std::string& prefix) {
  host.use_store(store);
  auto& fleet = host.add_mesh("fleet");
  fleet.rid_prefix(prefix).object_server().add_instance_spot_factory<ship>(
    "ship", [](auto& factory) { factory.disable_relocation(); });
  return fleet;
}

std::string ask(zlink::host& from, const std::string& ship_id) {
  auto call = from.spots().request_to_spot(ship_id, whereabouts{});
  call.instance_spot("ship");
  return zlink::sync_wait(call.submit<found_at>()).rid;
}

int main() {
  zlink::embedded_store store; // shared: this is how the hosts find each other
  zlink::host north, south;
  auto& at_north = join_fleet(north, store, "north");
  auto& at_south = join_fleet(south, store, "south");
  at_north.placement_weight(0); // takes no new Spots; what it has, it keeps
  north.start();
  south.start();
  zlink::sync_wait(at_north.until_peers_ready(1));
  zlink::sync_wait(at_south.until_peers_ready(1));

  // Whoever asks, there is one Argo, and it lives where placement put it.
  std::cout << std::boolalpha << (ask(north, "argo") == at_south.rid()) << '\n';
  std::cout << (ask(south, "argo") == ask(north, "argo")) << '\n';
  auto seen = zlink::sync_wait(north.spots().find("argo"));
  std::cout << seen->node_rid.substr(0, 5) << '\n';

  // For operators: what the store shows, page by page.
  zlink::object_query ships{.kind = zlink::listed_kind::instance_spot, .stable_type = "ship"};
  auto page = zlink::sync_wait(north.queries().list(ships));
  for (const auto& one : page.objects)
    std::cout << one.id << ' ' << to_string(one.state) << '\n';
  std::cout << zlink::sync_wait(south.queries().summary("fleet")).ready << " nodes\n";
}
