// Joins of Actors whose host gives away what it has, and moves of Actors who join: whichever has the Actor first (05 section 12).
#include "tests/contract/relocation/apart_scene.hpp"

namespace relocation_test {
namespace {

TEST_CASE("J-160 a Join that waits for its gate is not disturbed by the Relocate of its host: that waits, and moves who is left") {
  for (const bool same_node : {false, true}) {
    CAPTURE(same_node);
    stage on;
    barrier gate;
    mesh net{{.hosts = 3, .max_link_delay = 2ms, .max_store_delay = 2ms}};
    net.start(serve_rooms(on, {.per_actor = same_node}));
    const apart s{net, on, same_node};
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

} // namespace
} // namespace relocation_test
