// Home from a node that takes no members: the Entry Spot of another one (05 section 5).
#include "tests/contract/relocation/apart_scene.hpp"

namespace relocation_test {
namespace {

/// Host `here` takes nothing new, and the others know it. Nothing of it moves by itself.
void close_door(mesh& net, std::size_t here) {
  net.host(here).runtime().state.store(zlink::host_state::relocating);
  net.run_until_idle();
}

TEST_CASE("J-73 J-81 J-111 an Entry Spot of a node that takes no members is left for another one: no gate, joined there, left here") {
  stage on;
  mesh net{{.hosts = 3, .max_link_delay = 2ms, .max_store_delay = 2ms}};
  net.start(serve_rooms(on));
  const apart s{net, on};
  const auto before = *player_row(net, "ada");
  net.host(s.there).mesh("m").placement_weight(0); // so that the third is the only one that may be chosen
  net.advance(2s);
  const auto third = 3 - s.here - s.there;

  go_to(net, on, "ada", ""); // its own node may: nothing happens
  CHECK(on.count("completed ada accepted") == 1);
  CHECK(*player_row(net, "ada") == before);

  on.trace.clear();
  close_door(net, s.here);
  go_to(net, on, "ada", "");
  CHECK(on.count("completed ada accepted") == 1);
  net.run_until([&] { return on.count("left hall ada") == 1 && on.count("destroy ada") == 1; });
  CHECK(on.count("gate") == 0);
  CHECK(on.count("joined hall ada") == 1);
  words order;
  for (const auto& one : on.trace)
    if (one.starts_with("capture") || one.starts_with("restore") || one.starts_with("joined") || one.starts_with("completed"))
      order.push_back(one);
  CHECK(order == words{"capture ada", "restore ada", "joined hall ada", "completed ada accepted"});
  const auto after = *player_row(net, "ada");
  CHECK(after.node.node_rid == rid_of(net, third));
  CHECK(after.member_of->spot_id == net.host(third).mesh("m").entry_spot_id());
  CHECK(!after.member_of->spot_generation);
  CHECK(after.generation == before.generation);
  CHECK(after.authority > before.authority);
  const auto told = net.run(say(net.host(0), "ada", "here"));
  CHECK(told.rid == rid_of(net, third));
  CHECK(told.room == "hall");
  CHECK(told.heard == words{"zero", "here"});
  CHECK_FALSE(net.run(net.host(0).actors().find_spot("ada"))); // J-1: an Entry Spot
}

TEST_CASE("J-73 J-90 home from a room of a node that takes no members: the room is left, the Entry Spot of another node is joined") {
  stage on;
  mesh net{{.hosts = 2, .max_link_delay = 2ms}};
  net.start(serve_rooms(on));
  const table t{net, on, "r", {"ada", "bob"}};
  on.trace.clear();
  close_door(net, t.home);
  go_to(net, on, "ada", "");
  CHECK(on.count("completed ada accepted") == 1);
  net.run_until([&] { return on.count("left " + t.room + " ada") == 1 && on.count("destroy ada") == 1; });
  CHECK(on.count("joined hall ada") == 1);
  CHECK(on.count("gate") == 0);
  CHECK(net.run(say(net.host(0), "ada", "here")).rid == rid_of(net, 1 - t.home));
  CHECK(net.run(call_roll(net.host(0), t.room)).members == words{"bob"});
}

TEST_CASE("J-73 nobody else takes members of the type: unavailable, and nothing has changed") {
  stage on;
  mesh net{2};
  net.start(serve_rooms(on));
  const apart s{net, on};
  net.host(s.there).mesh("m").placement_weight(0);
  net.advance(2s);
  close_door(net, s.here);
  const auto before = *player_row(net, "ada");
  go_to(net, on, "ada", "");
  CHECK(on.count("completed ada failed unavailable") == 1);
  CHECK(*player_row(net, "ada") == before);
  CHECK(on.count("capture") + on.count("joined") + on.count("left") == 0);
  CHECK(net.run(say(net.host(0), "ada", "still")).rid == rid_of(net, s.here));
}

TEST_CASE("J-73 J-75 L-21 one that never leaves its node is rejected where only another node's Entry Spot is left") {
  stage on;
  mesh net{2};
  net.start(serve_rooms(on, {.fixed_players = true}));
  net.run(net.host(0).actors().create("ada", "player").submit());
  const auto at = home_of_player(net, "ada");
  const auto before = *player_row(net, "ada");
  close_door(net, at);
  go_to(net, on, "ada", "");
  CHECK(on.count("completed ada failed rejected") == 1);
  CHECK(on.count("capture") + on.count("joined") + on.count("left") == 0);
  CHECK(*player_row(net, "ada") == before);
}

} // namespace
} // namespace relocation_test
