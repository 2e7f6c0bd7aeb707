// Joins of Actors whose host gives away what it has, and moves of Actors who join: whichever has the Actor first (05 section 12).
#include "tests/contract/relocation/apart_scene.hpp"

namespace relocation_test {
namespace {

enum class place_of_room { elsewhere, here_spot_wide, here_per_actor };

TEST_CASE("J-160 a Join that waits for its gate is not disturbed by the Relocate of its host: that waits, and moves who is left") {
  for (const auto where : {place_of_room::elsewhere, place_of_room::here_spot_wide, place_of_room::here_per_actor}) {
    CAPTURE(static_cast<int>(where));
    stage on;
    barrier gate;
    mesh net{{.hosts = 3, .max_link_delay = 2ms, .max_store_delay = 2ms}};
    net.start(serve_rooms(on, {.per_actor = where == place_of_room::here_per_actor}));
    const apart s{net, on, where != place_of_room::elsewhere};
    on.hold("gate", gate);
    net.run(net.host(0).actors().send_to_actor("ada", enter{s.room}).submit());
    net.run_until([&] { return gate.waiting() == 1; });
    auto leaving = net.host(s.here).relocate({});
    net.advance(1s);
    CHECK(on.count("capture ada") == 0);
    CHECK(on.count("completed") == 0);
    CHECK(net.host(s.here).status().state == zlink::host_state::relocating);
    gate.open();
    const auto end = net.run(std::move(leaving));
    CHECK(end.outcome == zlink::relocate_outcome::relocated);
    CHECK(on.count("completed ada accepted") == 1);
    CHECK(on.count("completed ada") == 1);
    CHECK(on.count("joined " + s.room + " ada") == 1);
    net.run_until([&] { return !player_lives(net, s.here, "ada"); });
    const auto told = net.run(say(net.host(0), "ada", "where"));
    CHECK(told.room == s.room);
    CHECK(told.heard == words{"zero", "where"});
    CHECK(host_of(net, told.rid) == home_of(net, s.room));
    CHECK(player_row(net, "ada")->member_of->spot_id == s.room);
  }
}

/// As a handler of somebody else on that host, who knows the Actor.
std::string join_refused(mesh& net, std::size_t host, const std::string& who, const std::string& room) {
  try {
    net.host(host).runtime().objects.find_actor(who)->application()->context().join_spot(room).timeout(5s).defer();
  } catch (const zlink::operation_failed& failed) {
    return to_string(failed.kind());
  }
  return "";
}

TEST_CASE("J-161 J-166 the seal came first: a Join of the Actor is unavailable, and the move goes on") {
  for (const std::string step : {"capture", "restore"}) {
    CAPTURE(step);
    stage on;
    barrier held;
    mesh net{{.hosts = 3, .max_link_delay = 2ms}};
    net.start(serve_rooms(on));
    const apart s{net, on};
    const auto third = 3 - s.here - s.there;
    net.run(net.host(0).actors().create("bob", "player").submit());
    if (const auto at = home_of_player(net, "bob"); at != s.here) {
      REQUIRE(net.run(start_actor_move(net, "bob", at, s.here)).left);
      net.run_until([&] { return !player_lives(net, at, "bob"); });
    }
    on.hold(step, held);
    auto moving = start_actor_move(net, "ada", s.here, third);
    net.run_until([&] { return held.waiting() == 1; });
    std::string refused = "not asked";
    on.at = [&](const std::string& now, const std::string& who) {
      if (now == "handle" && who == "bob")
        refused = join_refused(net, s.here, "ada", s.room);
    };
    net.run(say(net.host(0), "bob", "you go"));
    CHECK(refused == "unavailable");
    held.open();
    CHECK(net.run(std::move(moving)).left);
    CHECK(net.run(say(net.host(0), "ada", "on")).rid == rid_of(net, third));
    CHECK(on.count("gate") + on.count("completed") == 0); // and nobody takes it up later
    go_to(net, on, "ada", s.room);
    CHECK(net.run(say(net.host(0), "ada", "in")).room == s.room);
  }
}

} // namespace
} // namespace relocation_test
