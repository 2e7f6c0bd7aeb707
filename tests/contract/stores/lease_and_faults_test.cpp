// What hosts do when their stores are slow, gone, or tell of dead owners.
#include "tests/contract/creation/scripted_spots.hpp"
#include "tests/sim/checkers.hpp"

namespace stores_test {

using namespace creation_test;

TEST_CASE("S-40 S-41 S-42 S-150 at the lease's deadline no handler starts any more, queued work included") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a", "1"));
  const auto owner = net.owner_of("a");
  for (const char* other : {"b", "c", "d", "e", "f", "g"})
    net.run(rouse(net.host(owner), other, "1"));
  barrier end;
  on.hold("handle", end);
  auto running = ask(net.host(owner), "a", "running", 5min);
  auto queued = ask(net.host(owner), "a", "queued", 5min);
  net.run_until([&] { return end.waiting() == 1; });
  net.cut_store(owner);
  net.advance(60s);
  const auto before = on.count("handle");
  for (const char* other : {"b", "c", "d", "e", "f", "g"}) // those that live here
    CHECK(failure(net, ask(net.host(owner), other, "late")) == error_kind::unavailable);
  CHECK(failure(net, ask(net.host(1 - owner), "a", "late")) == error_kind::unavailable);
  CHECK(failure(net, open_room(net.host(owner), "r")).has_value());
  end.open();
  CHECK_FALSE(net.run(zlink::as_result(std::move(running))).is_cancelled());
  CHECK(failure(net, std::move(queued)) == error_kind::unavailable);
  CHECK(on.count("handle") == before);
  CHECK(on.count("factory r") == 0);
}

TEST_CASE("S-45 S-150 a short outage of the store loses nothing") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  const auto first = net.run(rouse(net.host(0), "a", "1"));
  const auto owner = net.owner_of("a");
  net.cut_store(owner);
  net.advance(8s);
  net.heal();
  net.advance(60s);
  CHECK(net.run(ask(net.host(1 - owner), "a", "2")).generation == first.generation);
  CHECK(on.count("factory") == 1);
  CHECK(on.count("closing") == 0);
}

TEST_CASE("S-44 S-24 S-115 a lost lease makes old objects unavailable for good, and new ones work") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a", "1"));
  const auto owner = net.owner_of("a");
  const auto rid = net.host(owner).mesh("m").rid();
  const auto row = row_of(net, "a");
  net.freeze(owner);
  net.advance(60s);
  net.thaw(owner);
  net.advance(60s);
  CHECK(net.host(owner).mesh("m").rid() == rid);
  REQUIRE(descriptor_of(net, rid));
  CHECK(descriptor_of(net, rid)->owner.lease != row->owner.lease);
  for (int i = 0; i < 20; ++i)
    for (std::size_t host = 0; host < 2; ++host)
      CHECK(failure(net, rouse(net.host(host), "a", "x")) == error_kind::unavailable);
  CHECK(on.count("handle") == 1);
  CHECK(on.count("factory") == 1);
  CHECK(on.count("closing") == 0);
  CHECK(on.alive == 0);
  net.advance(10min);
  REQUIRE(row_of(net, "a"));
  CHECK(*row_of(net, "a") == *row);
  for (int i = 0; i < 8; ++i)
    net.run(rouse(net.host(1 - owner), "new " + std::to_string(i), "x"));
}

TEST_CASE("S-115 C-98 C-106 S-24 a dead owner's Spot is not taken over, with or without its first message handled") {
  for (const bool handled : {true, false}) {
    stage on;
    mesh net{3};
    net.start(serve(on));
    barrier end;
    if (!handled)
      on.hold("handle", end);
    auto first = rouse(net.host(0), "a", "1");
    net.run_until([&] { return on.count("handle") == 1; });
    net.run_until_idle();
    const auto owner = net.owner_of("a");
    const auto caller = (owner + 1) % 3;
    net.kill(owner);
    net.advance(60s);
    for (int i = 0; i < 100; ++i)
      CHECK(failure(net, rouse(net.host(i % 2 == 0 ? caller : (owner + 2) % 3), "a", "x")) == error_kind::unavailable);
    net.restart(owner); // another life of the same host has no better right
    net.advance(60s);
    CHECK(failure(net, rouse(net.host(owner), "a", "x")) == error_kind::unavailable);
    CHECK(on.count("factory") == 1);
    CHECK(row_of(net, "a"));
    end.open();
    net.run_until_idle();
  }
}

TEST_CASE("S-79 C-106 close releases a dead owner's Spot once its lease is over, then it may come to life anew") {
  for (const bool user : {true, false}) {
    stage on;
    mesh net{3};
    net.start(serve(on));
    const auto begin = [&](std::size_t host) {
      if (user)
        net.run(open_room(net.host(host), "a"));
      else
        net.run(rouse(net.host(host), "a", "1"));
      return *net.run(net.host(host).spots().find("a"));
    };
    const auto ref = begin(0);
    const auto owner = net.owner_of("a");
    const auto caller = (owner + 1) % 3;
    net.freeze(owner);
    net.advance(1s);
    auto early = net.host(caller).spots().close(ref);
    const auto refused = net.run(zlink::as_result(std::move(early)));
    REQUIRE_FALSE(refused.has_value());
    CHECK(row_of(net, "a"));
    net.advance(60s);
    CHECK(failure(net, rouse(net.host(caller), "a", "x")).has_value());
    CHECK(net.run(net.host(caller).spots().close(ref)));
    CHECK(on.count("closing") == 0);
    CHECK_FALSE(row_of(net, "a"));
    const auto fresh = begin(caller);
    CHECK(fresh.object_generation > ref.object_generation);
    const auto handled = on.count("handle");
    net.thaw(owner);
    net.advance(60s);
    CHECK(on.count("handle") == handled);
    CHECK(on.alive == 1);
  }
}

TEST_CASE("C-79 a reservation whose target died is released by whoever meets it") {
  stage on;
  mesh net{3};
  net.start(serve_beside_client(on));
  barrier never;
  on.hold("initialize", never);
  auto call = open_room(net.host(0), "a");
  net.run_until([&] { return never.waiting() == 1; });
  const auto rid = row_of(net, "a")->node.node_rid;
  const std::size_t target = net.host(1).mesh("m").rid() == rid ? 1 : 2;
  net.kill(target);
  const auto lost = failure(net, std::move(call));
  CHECK((lost == error_kind::unavailable || lost == error_kind::deadline_exceeded));
  net.advance(60s);
  on.during = nullptr;
  const auto made = net.run(open_room(net.host(0), "a", "again", 20s));
  CHECK(made.state == zlink::spot_create_state::created);
  CHECK(made.spot.node_rid != rid);
  never.open();
}

TEST_CASE("S-116 the background pass releases dead reservations and leaves dead owners' Spots alone") {
  stage on;
  mesh net{3};
  net.start(serve_beside_client(on));
  net.run(rouse(net.host(0), "ready", "1"));
  const auto target = net.owner_of("ready");
  barrier never;
  on.hold("initialize", never);
  std::vector<zlink::task<zlink::spot_create_result>> calls;
  std::size_t there = 0;
  for (int i = 0; i < 8; ++i)
    calls.push_back(open_room(net.host(0), "r" + std::to_string(i)));
  net.run_until([&] { return never.waiting() == 8; });
  for (int i = 0; i < 8; ++i)
    there += row_of(net, "r" + std::to_string(i))->node.node_rid == net.host(target).mesh("m").rid() ? 1 : 0;
  REQUIRE(there > 0);
  const auto dead = net.host(target).mesh("m").rid();
  net.kill(target);
  net.advance(10min);
  for (int i = 0; i < 8; ++i)
    CHECK((!row_of(net, "r" + std::to_string(i)) || row_of(net, "r" + std::to_string(i))->node.node_rid != dead));
  CHECK(row_of(net, "ready"));
  never.open();
  for (auto& call : calls)
    failure(net, std::move(call));
}

TEST_CASE("S-46 a message by an old route is refused by who is no owner any more, and not sent again") {
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  const auto ref = net.run(open_room(net.host(0), "a")).spot;
  net.run(ask(net.host(0), "a", "warm")); // the route is cached now
  CHECK(net.run(net.host(1).spots().close(ref)));
  const auto before = on.count("handle");
  CHECK(failure(net, ask(net.host(0), "a", "stale")) == error_kind::unavailable);
  CHECK(on.count("handle") == before);
}

TEST_CASE("S-70 a hanging store holds only what needs it") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a", "1"));
  net.run(ask(net.host(1), "a", "2"));
  net.run(ask(net.host(0), "a", "3"));
  for (std::size_t host = 0; host < 2; ++host)
    net.faults(host).set_rule([](const store_call&) { return store_fault::hold_call; });
  auto waits = rouse(net.host(0), "b", "x");
  std::vector<zlink::task<told>> calls;
  for (int i = 0; i < 100; ++i)
    calls.push_back(ask(net.host(static_cast<std::size_t>(i) % 2), "a", "w" + std::to_string(i)));
  const auto began = net.elapsed();
  for (auto& call : calls)
    net.run(std::move(call));
  CHECK(net.elapsed() == began);
  CHECK_FALSE(waits.ready());
  for (std::size_t host = 0; host < 2; ++host) {
    net.faults(host).set_rule({});
    net.faults(host).release_all();
  }
  CHECK(net.run(std::move(waits)).word == "x");
}

TEST_CASE("S-43 S-160 a store that is down at start is no mistake: blocked, then serving when it is there") {
  stage on;
  bool down = true;
  mesh net{1};
  net.faults(0).set_rule([&](const store_call&) { return down ? store_fault::refuse : store_fault::none; });
  net.start(serve(on));
  CHECK_FALSE(net.host(0).status().accepting_work);
  CHECK(failure(net, rouse(net.host(0), "a", "x")) == error_kind::unavailable);
  CHECK(failure(net, open_room(net.host(0), "r")).has_value());
  CHECK(on.trace.empty());
  CHECK_FALSE(descriptor_of(net, net.host(0).mesh("m").rid()));
  down = false;
  net.advance(30s);
  CHECK(net.host(0).status().accepting_work);
  REQUIRE(descriptor_of(net, net.host(0).mesh("m").rid()));
  CHECK(net.run(rouse(net.host(0), "a", "x")).word == "x");
}

TEST_CASE("S-158 kinds that callers see when the store fails") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  const auto key = zlink::placement::spot_key("a");
  net.faults(0).set_rule([&](const store_call& call) { return call.touches(key) ? store_fault::refuse : store_fault::none; });
  CHECK(failure(net, ask(net.host(0), "a", "x")) == error_kind::unavailable);
  CHECK(failure(net, rouse(net.host(0), "a", "x")) == error_kind::unavailable); // resolving
  CHECK(failure(net, open_room(net.host(0), "a")) == error_kind::internal_failure);
  CHECK(failure(net, net.host(0).spots().find("a")) == error_kind::unavailable);
  net.faults(0).set_rule([&](const store_call& call) {
    return call.what == store_operation::write && call.touches(key) ? store_fault::refuse : store_fault::none;
  });
  CHECK(failure(net, rouse(net.host(0), "a", "x")) == error_kind::internal_failure); // activation
  net.faults(0).set_rule([&](const store_call& call) { return call.touches(key) ? store_fault::hold_call : store_fault::none; });
  CHECK(failure(net, ask(net.host(0), "a", "x", 1s)) == error_kind::deadline_exceeded);
  net.faults(0).set_rule({});
  net.faults(0).release_all();
  put(net, zlink::placement::spot_key("corrupt"), "no record");
  CHECK(failure(net, open_room(net.host(0), "corrupt")) == error_kind::internal_failure);
  CHECK(on.count("handle") == 0);
}

TEST_CASE("C-72 S-156 whatever write of a creation fails in whatever way, row, slots and answer agree") {
  for (const auto fault : {store_fault::conflict, store_fault::refuse, store_fault::vanish, store_fault::lose_reply,
                           store_fault::late})
    for (int which = 1; which <= 3; ++which) {
      CAPTURE(static_cast<int>(fault));
      CAPTURE(which);
      stage on;
      mesh net{2};
      net.start(serve_beside_client(on));
      int writes = 0;
      for (std::size_t host = 0; host < 2; ++host)
        net.faults(host).set_rule([&](const store_call& call) {
          const bool counted = call.what == store_operation::write && call.touches(zlink::placement::spot_key("a"));
          return counted && ++writes == which ? fault : store_fault::none;
        });
      const auto outcome = net.run(zlink::as_result(open_room(net.host(0), "a", "x", 5s)));
      for (std::size_t host = 0; host < 2; ++host)
        net.faults(host).release_all();
      net.run_until_idle();
      net.advance(5min); // the background pass has looked at what was left
      const auto row = row_of(net, "a");
      if (outcome) {
        CHECK(outcome->state == zlink::spot_create_state::created);
        REQUIRE(row);
        CHECK(row->state == zlink::placement::allocation_state::active);
        CHECK(row->generation.value == outcome->spot.object_generation);
        CHECK(net.run(ask(net.host(0), "a", "there")).word == "there");
      } else if (fault == store_fault::conflict || fault == store_fault::lose_reply) {
        CHECK(which > 2); // both are met and overcome
      }
      const bool active = row && row->state == zlink::placement::allocation_state::active;
      CHECK(spots_on(net, 1).active == (active ? 1U : 0U));
      CHECK(spots_on(net, 1).reserved == (row && !active ? 1U : 0U));
      CHECK(on.alive == (active ? 1 : 0));
    }
}

TEST_CASE("S-158 S-21 a row that cannot be read is internal_failure to everybody, and stays as it is") {
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  const auto made = net.run(open_room(net.host(0), "a")).spot;
  put(net, zlink::placement::spot_key("x"), "no row");
  auto& host = net.host(0);
  CHECK(failure(net, open_room(host, "x")) == error_kind::internal_failure);
  CHECK(failure(net, ask(host, "x", "1")) == error_kind::internal_failure);
  CHECK(failure(net, rouse(host, "x", "1")) == error_kind::internal_failure);
  CHECK(failure(net, host.spots().find("x")) == error_kind::internal_failure);
  CHECK(failure(net, host.spots().close({"x", 1, made.mesh_name, made.node_rid})) == error_kind::internal_failure);
  CHECK(on.count("factory x") == 0);
}

TEST_CASE("S-73 S-127 a caller who waits longer than the mesh's request timeout is not given up before") {
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  net.faults(1).set_rule([](const zlink::testing::store_call& c) {
    return c.what == zlink::testing::store_operation::put ? zlink::testing::store_fault::vanish : zlink::testing::store_fault::none;
  });
  auto call = rouse(net.host(0), "a", "1", 2min);
  net.advance(40s); // the request timeout is 30 s
  net.faults(1).set_rule({});
  CHECK(net.run(std::move(call)).word == "1");
}

} // namespace stores_test
