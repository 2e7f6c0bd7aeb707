// What a test may do to network, machines and stores, and how hosts that are real get over it.
#include "tests/contract/fixture_spots.hpp"

#include <stdexcept>
#include <utility>

namespace fixture_test {

using zlink::testing::store_fault;
using zlink::testing::store_operation;

// -- network ----------------------------------------------------------------------------------------------------------

TEST_CASE("callers beyond a partition are refused, and served when it has healed") {
  evidence log;
  mesh net{{.hosts = 3, .seed = 20}};
  net.start(serve(log));
  net.run(add_at(net.host(0), 1));
  const auto owner = net.owner_of("c");
  const auto stranger = (owner + 1) % 3;
  net.partition({owner}, {stranger, (owner + 2) % 3});
  CHECK(failure_of(net.run(zlink::as_result(add_at(net.host(stranger), 1)))) == zlink::error_kind::unavailable);
  CHECK(net.run(add_at(net.host(owner), 1)).value == 2);
  net.heal();
  net.run(net.host(stranger).mesh("m").until_peers_ready(2));
  CHECK(net.run(add_at(net.host(stranger), 0)).value == 2);
  CHECK(log.incarnations == 1);
}

TEST_CASE("a muted direction is found out by silence alone") {
  evidence log;
  mesh net{2};
  net.start(serve(log));
  net.run(add_at(net.host(0), 1));
  const auto owner = net.owner_of("c");
  const auto began = net.elapsed();
  net.mute(owner, 1 - owner);
  CHECK_FALSE(net.run(zlink::as_result(add_at(net.host(1 - owner), 1, 60s))).has_value());
  CHECK(net.elapsed() - began > 5s);
  CHECK(net.elapsed() - began < 60s);
  CHECK(net.run(add_at(net.host(owner), 0)).value == 2); // it had arrived
}

TEST_CASE("links that are lost once take what was on its way with them, and come back by themselves") {
  evidence log;
  mesh net{{.hosts = 2, .max_link_delay = 40ms}};
  net.start(serve(log));
  net.run(add_at(net.host(0), 1));
  const auto caller = 1 - net.owner_of("c");
  net.run(add_at(net.host(caller), 1)); // knows the way now
  auto on_its_way = zlink::as_result(add_at(net.host(caller), 1));
  auto lost = zlink::testing::start_watched(std::move(on_its_way));
  net.advance(0s);
  net.lose_links(0, 1);
  net.run_until([&lost] { return lost->ended(); });
  CHECK(failure_of(*lost->value) == zlink::error_kind::unavailable);
  net.run_until_idle(); // both have noticed
  net.run(net.host(0).mesh("m").until_peers_ready(1));
  net.run(net.host(1).mesh("m").until_peers_ready(1));
  CHECK(net.run(add_at(net.host(0), 1)).value == 3);
  CHECK(net.run(add_at(net.host(1), 1)).value == 4);
}

// -- machines ---------------------------------------------------------------------------------------------------------

TEST_CASE("a frozen host does nothing, and goes on where it stood when it thaws") {
  evidence log;
  mesh net{2};
  net.start(serve(log));
  net.run(add_at(net.host(0), 1));
  const auto owner = net.owner_of("c");
  net.freeze(owner);
  auto waiting = add_at(net.host(1 - owner), 1, 60s);
  net.advance(3s);
  CHECK_FALSE(waiting.ready());
  net.thaw(owner);
  CHECK(net.run(std::move(waiting)).value == 2);
}

TEST_CASE("a killed host runs nothing any more; what takes its place is a host like any other") {
  evidence log;
  mesh net{3};
  net.start(serve(log));
  net.run(add_at(net.host(0), 5));
  const auto dead = net.owner_of("c");
  const auto caller = (dead + 1) % 3;
  const auto former_rid = net.host(dead).mesh("m").rid();
  net.kill(dead);
  CHECK(failure_of(net.run(zlink::as_result(add_at(net.host(caller), 1)))) == zlink::error_kind::unavailable);
  net.advance(2min);
  CHECK(log.ticks == 0);
  CHECK(log.alive == 1); // as the memory of a dead process: gone with the mesh
  CHECK_THROWS_AS(net.owner_of("c"), std::logic_error);
  net.restart(dead);
  CHECK(net.host(dead).mesh("m").rid() != former_rid);
  net.run(net.host(dead).mesh("m").until_peers_ready(2));
  CHECK(net.run(add_at(net.host(dead), 1, 5s, "d")).value == 1);
  CHECK_THROWS_AS(net.restart(dead), std::logic_error);
  net.finish();
  CHECK(log.alive == 0);
}

// -- stores -----------------------------------------------------------------------------------------------------------

TEST_CASE("a host cut off from its store stops working when its lease is over, and works again when it is back") {
  evidence log;
  mesh net{2};
  net.start(serve(log));
  net.run(add_at(net.host(0), 1));
  const auto owner = net.owner_of("c");
  net.cut_store(owner);
  net.advance(1s);
  CHECK(net.run(add_at(net.host(owner), 1)).value == 2); // the lease still holds
  net.advance(30s);
  CHECK_FALSE(net.run(zlink::as_result(add_at(net.host(owner), 1))).has_value());
  CHECK_THROWS_AS(net.owner_of("c"), std::logic_error);
  net.heal();
  net.advance(30s);
  CHECK(net.run(add_at(net.host(owner), 1, 5s, "d")).value == 1);
}

TEST_CASE("a conflict and a lost answer are met once each and overcome") {
  for (const auto fault : {store_fault::conflict, store_fault::lose_reply}) {
    evidence log;
    mesh net{1};
    net.start(serve(log));
    bool met = false;
    net.faults(0).set_rule([&met, fault](const zlink::testing::store_call& call) {
      if (call.what != store_operation::write || std::exchange(met, true))
        return store_fault::none;
      return fault;
    });
    CHECK(net.run(add_at(net.host(0), 1)).value == 1);
    CHECK(met);
    CHECK(log.incarnations == 1);
  }
}

TEST_CASE("a held store call holds what needs it, until it is released") {
  evidence log;
  mesh net{1};
  net.start(serve(log));
  bool hold = true;
  net.faults(0).set_rule([&hold](const zlink::testing::store_call& call) {
    return hold && call.what == store_operation::write ? store_fault::hold_call : store_fault::none;
  });
  auto waiting = add_at(net.host(0), 1);
  net.run_until_idle();
  CHECK(log.incarnations == 0);
  CHECK(net.faults(0).held() > 0);
  hold = false;
  net.faults(0).release_all();
  CHECK(net.run(std::move(waiting)).value == 1);
}

} // namespace fixture_test
