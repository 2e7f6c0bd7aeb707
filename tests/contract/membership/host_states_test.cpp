// What a node that is about to go still does for Actors, and where they go home to (05 sections 5 and 12).
#include "tests/contract/membership/join_scene.hpp"
#include "zlink/host/host_runtime.hpp"

namespace membership_test {
namespace {

/// Ada is in a room of host 1; a handler of hers, which waits for `open`, keeps that host from its end.
struct draining_scene {
  draining_scene() : net(3) {
    net.start(serve_beside_client(on));
    net.host(2).mesh("m").placement_weight(0);
    net.run_until_idle();
    for (const auto* id : {"ada", "bob"})
      net.run(make_person(net.host(0), id));
    open_room(net, "r");
    move_person(net, on, "ada", "r");
    net.host(2).mesh("m").placement_weight(100);
    net.run_until_idle();
    on.trace.clear();
  }
  /// `then`: what Ada's handler goes on with.
  void drain(std::function<zlink::task<void>(zlink::actor& who)> then) {
    on.handler = [this, then = std::move(then)](zlink::actor& who, const std::string&) -> zlink::task<void> {
      auto waiting = open.passed();
      co_await std::move(waiting);
      auto going_on = then(who);
      co_await std::move(going_on);
    };
    asked.emplace(talk(net.host(0), "ada", "held", 60s));
    net.run_until([this] { return open.waiting() == 1; });
    ended.emplace(net.host(1).shutdown());
    net.advance(3s); // everybody knows
    CHECK(net.host(1).status().state == zlink::host_state::draining);
  }
  stage on;
  mesh net;
  barrier open;
  std::optional<zlink::task<said>> asked;
  std::optional<zlink::task<zlink::shutdown_result>> ended;
};

TEST_CASE("J-164 C-129 a node that drains takes no new Actor, others skip it, and it is no target of a Join") {
  draining_scene s;
  auto& net = s.net;
  auto& on = s.on;
  std::string refused;
  s.drain([&](zlink::actor& who) -> zlink::task<void> {
    try {
      who.context().join_entry_spot().defer();
    } catch (const zlink::operation_failed& failed) { // at once, or by the completion: the kind is the same
      refused = to_string(failed.kind());
    }
    return zlink::task<void>::done();
  });
  CHECK(failure(net, make_person(net.host(1), "eve")) == error_kind::shutting_down);
  CHECK(failure(net, get_person(net.host(1), "eve")) == error_kind::shutting_down);
  for (int i = 0; i < 12; ++i)
    CHECK(net.run(make_person(net.host(0), "p" + std::to_string(i))).actor.node_rid == net.host(2).mesh("m").rid());
  net.host(2).mesh("m").placement_weight(0);
  net.run_until_idle();
  CHECK(failure(net, make_person(net.host(0), "eve")) == error_kind::unavailable);
  CHECK(on.count("create eve") == 0);
  s.open.open(); // its own Actor asks it to be a target
  net.run(std::move(*s.asked));
  net.run(std::move(*s.ended));
  if (on.ends.size() == 2 && on.ends.back().error)
    refused = to_string(on.ends.back().error->kind());
  CHECK(refused == "shutting_down");
  CHECK(on.count("joined") == 0);
}

TEST_CASE("J-164 a node that drains takes no membership, and an Actor can leave its room there all the same") {
  draining_scene s;
  auto& net = s.net;
  auto& on = s.on;
  std::string how;
  std::string where;
  s.drain([&](zlink::actor& who) -> zlink::task<void> {
    auto leaving = zlink::as_result(on.leave(who));
    const auto left = co_await std::move(leaving);
    how = left.has_value() ? "left" : to_string(left.error().kind());
    where = who.context().spot_id();
  });
  const auto entry = net.host(1).mesh("m").entry_spot_id();
  s.open.open();
  net.run(std::move(*s.asked));
  CHECK(how == "left");
  CHECK(where == entry);
  CHECK(net.run(std::move(*s.ended)).outcome == zlink::shutdown_outcome::stopped);
  CHECK(on.count("left r ada") == 1);
  CHECK(on.count("joined hall ada") == 1);
  CHECK(on.alive == 0);
}

// J-73, as far as it goes where nothing moves; the rest is in relocation/entry_joins_test.cpp.
TEST_CASE("home is the Entry Spot of one's own node, however much room others have") {
  stage on;
  mesh net{3};
  net.start(serve_beside_client(on));
  net.host(2).mesh("m").placement_weight(0);
  net.run_until_idle();
  net.run(make_person(net.host(0), "ada"));
  for (const auto* id : {"r", "other"})
    open_room(net, id);
  move_person(net, on, "ada", "r");
  net.host(1).mesh("m").placement_weight(0);
  net.host(2).mesh("m").placement_weight(10'000);
  net.run_until_idle();
  move_person(net, on, "ada", "");
  CHECK(on.ends.back().outcome == join_outcome::accepted);
  CHECK(on.ends.back().actor.node_rid == net.host(1).mesh("m").rid());
  CHECK(person_row(net, "ada")->member_of->spot_id == net.host(1).mesh("m").entry_spot_id());

  move_person(net, on, "ada", "r");
  on.trace.clear();
  const auto version = person_version(net, "ada");
  auto& state = net.host(1).runtime().state;
  for (const auto none : {zlink::host_state::relocating, zlink::host_state::relocated}) {
    state.store(none); // another node would take her, but people do not leave theirs (J-75)
    move_person(net, on, "ada", "");
    REQUIRE(on.ends.back().error);
    CHECK(on.ends.back().error->kind() == error_kind::rejected);
    move_person(net, on, "ada", "other");
    REQUIRE(on.ends.back().error); // nobody is let in either (J-164)
    CHECK(on.ends.back().error->kind() == error_kind::unavailable);
  }
  state.store(zlink::host_state::serving);
  CHECK(person_version(net, "ada") == version);
  CHECK(on.count("joined") == 0);
  CHECK(on.count("left") == 0);
  CHECK(net.run(talk(net.host(0), "ada", "still there")).spot == "r");
}

} // namespace
} // namespace membership_test
