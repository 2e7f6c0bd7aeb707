// A Join to a room of another node (05 section 7).
#include "tests/contract/relocation/apart_scene.hpp"
#include "zlink/messaging/mesh_links.hpp"

namespace relocation_test {
namespace {

TEST_CASE("J-90 J-91 J-100 J-101 J-102 J-106 J-111 L-68 a Join to another node: gate, capture, commit, joined, completion, then the messages in order") {
  stage on;
  mesh net{{.hosts = 3, .max_link_delay = 2ms}};
  net.start(serve_rooms(on));
  const apart s{net, on};
  barrier gate;
  on.hold("gate", gate);
  net.run(net.host(0).actors().send_to_actor("ada", enter{s.room}).submit());
  net.run_until([&] { return gate.waiting() == 1; });
  CHECK(on.count("capture") == 0);
  auto old_1 = say(net.host(s.here), "ada", "old-1");
  auto old_2 = say(net.host(s.there), "ada", "old-2");
  net.advance(20ms);
  CHECK(on.count("handle") == 0);
  gate.open();
  const auto first = net.run(std::move(old_1));
  CHECK(first.rid == rid_of(net, s.there));
  CHECK(first.room == s.room);
  CHECK(net.run(std::move(old_2)).rid == rid_of(net, s.there));
  CHECK(net.run(say(net.host(0), "ada", "new-1")).heard.size() == 4);
  net.run_until([&] { return on.count("left hall ada") == 1 && on.count("destroy ada") == 1; });
  words order;
  for (const auto& one : on.trace)
    if (one.starts_with("gate") || one.starts_with("capture") || one.starts_with("restore") || one.starts_with("joined")
        || one.starts_with("completed") || one == "handle ada old-1")
      order.push_back(one);
  CHECK(order == words{"gate " + s.room + " ada", "capture ada", "restore ada", "joined " + s.room + " ada", "completed ada accepted", "handle ada old-1"});
  CHECK(player_row(net, "ada")->member_of->spot_id == s.room);
  CHECK(net.run(call_roll(net.host(0), s.room)).members == words{"ada"});
  go_to(net, on, "ada", "");
  CHECK(net.run(say(net.host(0), "ada", "home")).rid == rid_of(net, s.there)); // home is the Entry Spot of the node where it is
}

TEST_CASE("J-82 J-91 J-112 declined by another node: nothing was captured, and the Actor goes on where it is") {
  stage on;
  mesh net{2};
  net.start(serve_rooms(on));
  const apart s{net, on};
  on.at = [&](const std::string& step, const std::string& id) {
    if (step == "gate" && id == s.room)
      throw std::runtime_error{"the gate is broken"};
  };
  go_to(net, on, "ada", s.room);
  CHECK(on.count("completed ada failed internal_failure") == 1);
  CHECK(on.count("capture") == 0);
  CHECK(net.run(say(net.host(0), "ada", "on")).rid == rid_of(net, s.here));
}

TEST_CASE("J-74 J-75 J-94 L-21 Actors that never leave their node are not even asked for") {
  stage on;
  mesh net{2};
  net.start(serve_rooms(on, {.fixed_players = true}));
  const auto made = net.run(net.host(0).spots().get_or_create("r", "room").submit());
  const auto there = host_of(net, made.spot.node_rid);
  for (int i = 0; i < 20; ++i) {
    const auto who = "p" + std::to_string(i);
    net.run(net.host(0).actors().create(who, "player").submit());
    if (home_of_player(net, who) == there)
      continue;
    on.trace.clear();
    go_to(net, on, who, "r");
    CHECK(on.count("completed " + who + " failed rejected") == 1);
    CHECK(on.count("gate") == 0);
    return;
  }
  FAIL("all players are on one host");
}

TEST_CASE("J-103 J-113 J-117 a restore that fails: the Join fails, the Actor runs what waited, in order, where it was") {
  stage on;
  mesh net{2};
  net.start(serve_rooms(on));
  const apart s{net, on};
  barrier gate;
  on.hold("gate", gate);
  on.at = [](const std::string& step, const std::string&) {
    if (step == "restore")
      throw std::runtime_error{"no"};
  };
  net.run(net.host(0).actors().send_to_actor("ada", enter{s.room}).submit());
  net.run_until([&] { return gate.waiting() == 1; });
  auto q1 = say(net.host(s.here), "ada", "q1");
  auto q2 = say(net.host(s.here), "ada", "q2");
  gate.open();
  CHECK(net.run(std::move(q1)).rid == rid_of(net, s.here));
  CHECK(net.run(std::move(q2)).heard == words{"zero", "q1", "q2"});
  CHECK(on.count("completed ada failed internal_failure") == 1);
  CHECK(on.count("left") == 0);
  CHECK(on.count("joined") == 0);
  on.at = nullptr;
  go_to(net, on, "ada", s.room); // nothing is in the way of the next
  CHECK(net.run(say(net.host(0), "ada", "there")).rid == rid_of(net, s.there));
}

// -- asked, and asked again -------------------------------------------------------------------------------------------

bool linked(mesh& net, std::size_t a, std::size_t b) {
  const auto ready = [&](std::size_t from, std::size_t to) {
    return net.host(from).runtime().find_node("m")->links->ready_link(rid_of(net, to)) != nullptr;
  };
  return ready(a, b) && ready(b, a);
}
bool may_close(mesh& net, std::size_t host, const std::string& room) {
  const auto found = net.run(net.host(host).spots().find(room));
  REQUIRE(found);
  return net.run(net.host(host).spots().close(*found));
}

TEST_CASE("C-75 C-114 J-91 J-150 a gate whose answer was lost is asked once: the same answer comes by the next link, and nobody stays expected") {
  enum class lost { while_it_decides, with_its_answer, twice };
  for (const auto when : {lost::while_it_decides, lost::with_its_answer, lost::twice}) {
    for (const bool declined : {false, true}) {
      CAPTURE(static_cast<int>(when));
      CAPTURE(declined);
      stage on;
      barrier gate;
      mesh net{{.hosts = 3, .max_link_delay = 2ms}};
      net.start(serve_rooms(on));
      const apart s{net, on};
      static_cast<room*>(net.host(s.there).runtime().objects.find(s.room)->application())->declines = declined;
      const auto break_links = [&] {
        net.lose_links(s.here, s.there);
        net.run_until([&] { return linked(net, s.here, s.there); });
        net.advance(100ms); // asked again
      };
      on.hold("gate", gate);
      net.run(net.host(0).actors().send_to_actor("ada", enter{s.room}).submit());
      net.run_until([&] { return gate.waiting() == 1; });
      if (when == lost::with_its_answer) {
        net.mute(s.there, s.here);
        gate.open();
        net.run_until_idle();
        net.lose_links(s.here, s.there);
        net.heal();
      } else {
        break_links();
        if (when == lost::twice)
          break_links();
        gate.open();
      }
      net.run_until([&] { return on.count("completed ada") == 1; });
      net.run_until_idle();
      CHECK(on.count("gate " + s.room) == 1);
      CHECK(on.count(declined ? "completed ada rejected" : "completed ada accepted") == 1);
      CHECK(on.count("joined " + s.room + " ada") == (declined ? 0 : 1));
      if (!declined)
        go_to(net, on, "ada", "");
      CHECK(on.count("completed ada") == (declined ? 1 : 2));
      CHECK(may_close(net, s.there, s.room)); // it expects nobody
    }
  }
}

TEST_CASE("J-94 J-103 J-150 C-114 a move that the target refused or dropped is expected no more: the room closes when the Join has ended") {
  enum class end { refused, abandoned, link_lost };
  for (const auto how : {end::refused, end::abandoned, end::link_lost}) {
    CAPTURE(static_cast<int>(how));
    stage on;
    barrier restore;
    mesh net{{.hosts = 3, .max_link_delay = 2ms}};
    net.start(serve_rooms(on));
    const apart s{net, on};
    on.hold("restore", restore);
    if (how == end::refused)
      on.at = [](const std::string& step, const std::string&) {
        if (step == "restore")
          throw std::runtime_error{"no"};
      };
    bool removed = false;
    net.host(s.there).runtime().moving.on_step = [&](move_step step, const std::string&) { removed = removed || step == move_step::staging_removed; };
    net.run(net.host(0).actors().send_to_actor("ada", enter{s.room}).submit());
    if (how == end::link_lost) {
      net.run_until([&] { return restore.waiting() == 1; });
      net.lose_links(s.here, s.there);
      restore.open();
    } else if (how == end::abandoned) { // out of time
      net.run_until([&] { return on.count("completed ada failed deadline_exceeded") == 1; });
      restore.open();
    }
    net.run_until([&] { return on.count("completed ada failed") == 1 && removed; });
    CHECK(may_close(net, s.there, s.room));
    CHECK(net.run(say(net.host(0), "ada", "on")).rid == rid_of(net, s.here));
  }
}

} // namespace
} // namespace relocation_test
