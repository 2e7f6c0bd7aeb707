// Ends that meet: of Actors, of rooms, of handlers that have registered something (05 sections 4, 8, 9, 11 and 12).
#include "tests/contract/membership/join_scene.hpp"

namespace membership_test {
namespace {

using words = std::vector<std::string>;

TEST_CASE("J-63 a plain handler that throws takes back what it has registered") {
  scene s;
  auto& net = s.net;
  auto& on = s.on;
  CHECK(failure(net, net.host(0).actors().request_to_actor("ada", plain{"throw"}).submit<said>()) == error_kind::internal_failure);
  CHECK(net.run(talk(net.host(0), "ada", "goes on")).word == "goes on");
  CHECK(on.ends.empty());
  net.run(net.host(0).actors().request_to_actor("ada", plain{"well"}).submit<said>());
  net.run_until([&] { return on.ends.size() == 1; });
  CHECK(net.run(talk(net.host(0), "ada", "x")).spot == "r");
}

TEST_CASE("J-134 J-84 an Actor is not destroyed under a callback that still has it") {
  scene s;
  auto& net = s.net;
  auto& on = s.on;
  move_person(net, on, "ada", "r");
  barrier open;
  on.hold("left r ada", open);
  move_person(net, on, "ada", "");
  net.run_until([&] { return open.waiting() == 1; });
  auto ending = net.host(0).actors().destroy(s.ada.actor);
  net.advance(1s);
  CHECK(on.alive == 1);
  open.open();
  CHECK(net.run(std::move(ending)));
  CHECK(on.alive == 0);
}

TEST_CASE("J-130 J-150 C-115 C-114 a member closes the room: not as long as it is one, and then when it has left") {
  for (const bool per_actor : {false, true}) {
    scene s{1, 1, {.per_actor = per_actor}};
    auto& net = s.net;
    auto& on = s.on;
    move_person(net, on, "ada", "r");
    on.trace.clear();
    std::vector<bool> closed;
    on.handler = [&](zlink::actor& who, const std::string& word) -> zlink::task<void> {
      if (word != "last one out")
        co_return;
      auto early = on.close();
      closed.push_back(co_await std::move(early));
      auto leaving = on.leave(who);
      co_await std::move(leaving);
      auto closing = on.close();
      closed.push_back(co_await std::move(closing));
    };
    net.run(talk(net.host(0), "ada", "last one out"));
    net.run(talk(net.host(0), "ada", "home"));
    net.run_until_idle();
    CHECK(closed == std::vector<bool>{false, true});
    const auto position = [&](const std::string& what) {
      return std::ranges::find_if(on.trace, [&](const auto& one) { return one.starts_with(what); }) - on.trace.begin();
    };
    CHECK(on.count("left r ada") == 1);
    CHECK(on.count("closing r") == 1);
    CHECK(position("left r ada") < position("closing r"));
    CHECK_FALSE(creation_test::row_of(net, "r"));
  }
}

TEST_CASE("J-134 an Actor that ends itself is told when its admission has closed") {
  scene s;
  auto& net = s.net;
  auto& on = s.on;
  bool ended = false;
  on.handler = [&](zlink::actor& who, const std::string&) -> zlink::task<void> {
    auto ending = who.context().host().actors().destroy(s.ada.actor);
    ended = co_await std::move(ending);
  };
  CHECK(net.run(talk(net.host(0), "ada", "x")).word == "x");
  CHECK(ended);
  net.run_until_idle();
  CHECK(on.alive == 0);
  CHECK_FALSE(person_row(net, "ada"));
}

TEST_CASE("J-57 a reply of the gate beyond 1 MiB fails the Join before anything is committed") {
  scene s;
  auto& net = s.net;
  auto& on = s.on;
  on.gate = [](const std::string&) { return zlink::accept(ticket{std::string((1 << 20) + 1, 'x')}); };
  const auto version = person_version(net, "ada");
  move_person(net, on, "ada", "r");
  REQUIRE(on.ends[0].error);
  CHECK(on.ends[0].error->kind() == error_kind::internal_failure);
  CHECK(person_version(net, "ada") == version);
}

TEST_CASE("J-167 C-114 nobody is let into a room whose close has found nobody, while the store is slow to hear of it") {
  scene s;
  auto& net = s.net;
  auto& on = s.on;
  net.faults(0).once(store_operation::write, zlink::placement::spot_key("r"), store_fault::hold_reply);
  auto closing = net.host(0).spots().close(s.room);
  net.run_until([&] { return net.faults(0).held() == 1; });
  net.run(send_off(net.host(0), "ada", "r"));
  net.advance(10ms);
  net.faults(0).release_all();
  CHECK(net.run(std::move(closing)));
  net.run_until([&] { return on.ends.size() == 1; });
  REQUIRE(on.ends[0].error);
  CHECK(on.ends[0].error->kind() == error_kind::not_found);
  CHECK(on.count("gate") == 0);
}

TEST_CASE("S-44 J-67 a host that loses its lease loses its Actors and rooms, with whatever they were at") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    stage on;
    mesh net{{.hosts = 2, .seed = seed, .max_store_delay = 3ms}};
    INFO("seed ", seed);
    net.start(serve_beside_client(on));
    for (const auto* id : {"ada", "bob", "cyd"})
      net.run(make_person(net.host(0), id));
    open_room(net, "r");
    move_person(net, on, "bob", "r");
    barrier open;
    on.hold("handle bob held", open);
    auto held = talk(net.host(0), "bob", "held", 60s);
    net.run_until([&] { return open.waiting() == 1; });
    net.run(send_off(net.host(0), "ada", "r"));
    net.advance(std::chrono::milliseconds{seed % 7});
    net.cut_store(1);
    net.advance(20s);
    open.open();
    net.advance(2s);
    static_cast<void>(net.run(zlink::as_result(std::move(held))));
    net.heal();
    net.advance(1min); // it learns that its token is dead
    CHECK(on.alive == 0);
    CHECK(net.host(1).status().actors == 0);
    CHECK(failure(net, talk(net.host(0), "bob", "x", 2s)) == error_kind::unavailable);
  }
}

} // namespace
} // namespace membership_test
