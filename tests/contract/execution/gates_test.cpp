// Who runs when: gates by Spot kind, turns that last across submit, order and acceptance (02 sections 1 to 3).
#include "tests/contract/execution/stage.hpp"
#include "tests/sim/checkers.hpp"
#include "zlink/host/host_runtime.hpp"

namespace gates_test {

using namespace zlink::test;
using zlink::testing::mesh;

const std::vector<std::string> shared_gates{"wide", "room"};

/// A handler that waits in the middle, and is seen by the checker meanwhile.
auto visiting(exclusive_gates& gates) {
  return [&gates](player& p) -> zlink::task<int> {
    const auto inside = gates.enter(p.id());
    auto work = p.spot().run_cpu_worker([](std::stop_token) { return 1; });
    co_return co_await work.submit();
  };
}

TEST_CASE("X-1 two turns of one gate are never active together under 10,000 mixed messages") {
  stage scene;
  exclusive_gates gates;
  scene.acts["short"] = [&gates](player& p) -> zlink::task<int> {
    const auto inside = gates.enter(p.id());
    co_return 0;
  };
  scene.acts["long"] = visiting(gates);
  scene.on_tick = [&gates](player& p, const zlink::timer_tick&) -> zlink::task<void> {
    const auto inside = gates.enter(p.id());
    auto work = p.spot().run_cpu_worker([](std::stop_token) { return 1; });
    co_await work.submit();
  };
  scene.on_initialize = [](player& p) -> zlink::task<void> { co_await p.add_timer("t", 1ms); };
  mesh net{{.hosts = 2, .seed = 5, .max_link_delay = 2ms}};
  net.start(serve(scene));
  for (const auto& type : shared_gates)
    prepare(net, type, type);
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 25; ++i)
      for (const auto& type : shared_gates)
        for (const auto* what : {"short", "long"})
          (void)tell_spot(net.host(static_cast<std::size_t>(i % 2)), type, what);
    net.advance(3ms);
  }
  net.run_until_idle();
  CHECK(scene.count("short ends") + scene.count("long ends") == 10'000);
  CHECK(scene.count("tick") > 100);
  CHECK(gates.broken().empty());
  CHECK(gates.fed() > 10'000);
}

// Multicast payloads (03 section 14) are the third that waits there.
TEST_CASE("X-2 packets and ticks of a Spot wait in its own application lane and run in acceptance order") {
  for (const auto& type : {"wide", "room", "entry"}) {
    CAPTURE(type);
    stage scene;
    scene.acts["hold"] = hold_at("d");
    mesh net{1};
    net.start(serve(scene));
    const std::string id = type == std::string{"entry"} ? net.host(0).mesh("m").entry_spot_id() : type;
    if (type != std::string{"entry"})
      prepare(net, id, type);
    scene.acts["start timer"] = [](player& p) -> zlink::task<int> {
      co_await p.add_timer("t", 100ms);
      co_return 0;
    };
    net.run(ask_spot(net.host(0), id, "start timer", ""));
    (void)tell_spot(net.host(0), id, "hold");
    (void)tell_spot(net.host(0), id, "before");
    net.advance(150ms);
    (void)tell_spot(net.host(0), id, "after");
    net.run_until_idle();
    CHECK(net.host(0).runtime().objects.find(id)->application_word().records() == 4); // the running one, two, a tick
    CHECK_FALSE(scene.has("before"));
    scene.open("d");
    net.run_until_idle();
    CHECK(scene.in_order({"hold ends", "before", "tick", "after"}));
    CHECK(scene.count("tick") == 1);
  }
}

TEST_CASE("X-9 the mode of a Spot comes from its kind and its registration, and is frozen by start") {
  stage scene;
  scene.acts["yield"] = yield_at("d");
  scene.open("d");
  mesh net{1};
  net.start(serve(scene));
  for (const auto& [id, type] : {std::pair{"w", "wide"}, {"r", "room"}, {"s", "split"}})
    prepare(net, id, type);
  CHECK(net.run(ask_spot(net.host(0), "w", "yield", "")).value == 1);
  CHECK(net.run(ask_spot(net.host(0), "r", "yield", "")).value == 1); // SpotWide without a word said
  for (const auto& id : {std::string{"s"}, net.host(0).mesh("m").entry_spot_id()})
    CHECK(failure_of(net.run(zlink::as_result(ask_spot(net.host(0), id, "yield", ""))))
          == zlink::error_kind::internal_failure);
  CHECK_THROWS_AS(net.host(0).mesh("m").object_server().add_spot_factory<room_spot>("later", [](auto& factory) {
    factory.recreate_on_relocation().per_actor();
    factory.construct_with([](zlink::spot_context) -> std::unique_ptr<room_spot> { return nullptr; });
  }),
                  zlink::configuration_error);
}

// What Actors share of these gates is proved with them.
TEST_CASE("X-10 X-12 X-13 handlers, ticks and lifecycle callbacks of SpotWide, Entry and Instance Spots share one gate") {
  for (const std::string type : {"wide", "room", "entry"}) {
    CAPTURE(type);
    stage scene;
    exclusive_gates gates;
    scene.acts["work"] = visiting(gates);
    scene.on_initialize = [&gates, type, held = type != "entry"](player& p) -> zlink::task<void> {
      if (held && p.id() != type)
        co_return;
      const auto inside = gates.enter(p.id());
      co_await p.add_timer("t", 5ms);
      if (!held)
        co_return;
      auto call = knock(p, "initialize");
      co_await call.submit<answer>();
    };
    scene.on_closing = [&gates](player& p, const zlink::spot_closing_context&) -> zlink::task<void> {
      const auto inside = gates.enter(p.id());
      auto work = p.spot().run_cpu_worker([](std::stop_token) { return 1; });
      co_await work.submit();
    };
    scene.on_tick = [&gates](player& p, const zlink::timer_tick&) -> zlink::task<void> {
      const auto inside = gates.enter(p.id());
      auto call = knock(p, "tick");
      co_await call.submit<answer>();
    };
    mesh net{1};
    net.start(serve(scene));
    std::string id = type;
    if (type == "entry")
      id = net.host(0).mesh("m").entry_spot_id();
    else if (type == "wide")
      (void)net.host(0).spots().send_to_spot(id, tell{"work"}).instance_spot(type).submit();
    else
      (void)net.host(0).spots().get_or_create(id, type).submit();
    net.advance(50ms); // the tick falls due while on_initialize holds the gate
    if (type != "entry")
      CHECK_FALSE(scene.has("tick"));
    scene.open("initialize");
    net.advance(50ms);
    CHECK(scene.has("tick"));
    const auto before = scene.count("work starts");
    (void)tell_spot(net.host(0), id, "work");
    net.run_until_idle();
    CHECK(scene.count("work starts") == before); // the tick holds the gate
    scene.open("tick");
    net.advance(20ms);
    CHECK(scene.count("work ends") == before + 1);
    net.finish();
    CHECK(scene.has("closing " + id));
    CHECK(gates.broken().empty());
    CHECK(gates.fed() >= 4);
  }
}

// X-17 for node-direct messages.
TEST_CASE("node dispatches start in acceptance order, each under a gate of its own") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    stage scene;
    for (const std::string what : {"one", "two"})
      scene.node_acts[what] = [&scene, what]() -> zlink::task<int> {
        co_await scene.pass(what);
        co_return 1;
      };
    mesh net{{.hosts = 2, .seed = seed}};
    net.start(serve(scene));
    const auto rid = net.host(1).mesh("m").rid();
    auto first = net.host(0).nodes().request_to_node("m", rid, ask{"one"}).submit<answer>();
    auto second = net.host(0).nodes().request_to_node("m", rid, ask{"two"}).submit<answer>();
    for (int i = 0; i < 20; ++i)
      (void)net.host(0).nodes().send_to_node("m", rid, ask{std::to_string(i)}).submit();
    net.run_until_idle();
    std::vector<std::string> starts;
    for (const auto& what : scene.log)
      if (what.ends_with(" starts"))
        starts.push_back(what);
    REQUIRE(starts.size() == 22);
    CHECK(starts[0] == "one starts");
    CHECK(starts[1] == "two starts"); // the first is not answered yet
    for (std::size_t i = 0; i < 20; ++i)
      CHECK(starts[i + 2] == std::to_string(i) + " starts");
    CHECK_FALSE(scene.has("one ends"));
    scene.open("two");
    CHECK(net.run(std::move(second)).value == 1);
    scene.open("one");
    CHECK(net.run(std::move(first)).value == 1);
  }
}

TEST_CASE("X-17 however often a node handler waits for this and that, later dispatches have their place") {
  stage scene;
  mesh net{{.hosts = 2, .seed = 1}};
  int round = 0;
  scene.node_acts["wait"] = [&]() -> zlink::task<int> {
    auto vain = net.host(1).nodes().request_to_node("m", "nobody", ask{"x"}).submit<answer>();
    const auto refused = co_await zlink::as_result(std::move(vain)); // over at once: its end still waits at the gate
    co_await scene.pass("door " + std::to_string(round));
    co_return refused ? 0 : 1;
  };
  net.start(serve(scene));
  const auto rid = net.host(1).mesh("m").rid();
  for (; round < 20; ++round) {
    CAPTURE(round);
    auto asked = net.host(0).nodes().request_to_node("m", rid, ask{"wait"}).submit<answer>();
    net.run_until_idle();
    scene.open("door " + std::to_string(round));
    const auto answered = net.run(zlink::as_result(std::move(asked)));
    REQUIRE(answered);
    CHECK(answered->value == 1);
  }
}

TEST_CASE("what a node handler has begun and not awaited goes on, whatever the dispatches after it wait for") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    stage scene;
    mesh net{{.hosts = 2, .seed = seed}};
    const auto wait_for = [&scene](std::string what) -> zlink::task<int> {
      co_await scene.pass(what);
      co_return 0;
    };
    scene.node_acts["leaves work"] = [&]() -> zlink::task<int> {
      net.host(1).nodes().request_to_node("m", net.host(0).mesh("m").rid(), ask{"asked"}).submit<answer>().then(
        [&scene](zlink::result<answer>) { scene.note("continued"); });
      co_return 0;
    };
    scene.node_acts["asked"] = [&] { return wait_for("asked"); };
    for (const std::string what : {"a", "b", "c", "d"})
      scene.node_acts[what] = [&, what] { return wait_for(what); };
    net.start(serve(scene));
    for (const auto* what : {"leaves work", "a", "b", "c", "d"})
      (void)net.host(0).nodes().send_to_node("m", net.host(1).mesh("m").rid(), ask{what}).submit();
    net.run_until_idle();
    CHECK_FALSE(scene.has("continued"));
    scene.open("asked");
    net.run_until_idle();
    CAPTURE(seed);
    CHECK(scene.has("continued"));
    for (const auto* what : {"a", "b", "c", "d"}) {
      CHECK_FALSE(scene.has(std::string{what} + " ends"));
      scene.open(what);
    }
    net.run_until_idle();
  }
}

TEST_CASE("X-19 X-22 a turn lasts until the last continuation has ended; what is due meanwhile waits") {
  for (const auto& type : shared_gates) {
    CAPTURE(type);
    stage scene;
    scene.acts["two waits"] = [&scene](player& p) -> zlink::task<int> {
      auto first = knock(p, "first");
      co_await first.submit<answer>();
      scene.note("resumed");
      auto second = knock(p, "second");
      co_await second.submit<answer>();
      scene.note("completed");
      co_return 0;
    };
    scene.on_initialize = [](player& p) -> zlink::task<void> {
      if (p.id() == "x")
        co_await p.add_timer("t", 1s);
    };
    mesh net{1};
    net.start(serve(scene));
    prepare(net, "x", type);
    (void)tell_spot(net.host(0), "x", "two waits");
    (void)tell_spot(net.host(0), "x", "probe");
    net.advance(1500ms);
    CHECK_FALSE(scene.has("probe"));
    scene.open("first");
    net.run_until_idle();
    CHECK(scene.has("resumed"));
    CHECK_FALSE(scene.has("probe"));
    CHECK_FALSE(scene.has("tick"));
    scene.open("second");
    net.run_until_idle();
    CHECK(scene.in_order({"two waits starts", "resumed", "completed", "probe", "tick"}));
  }
}

// The third of its objects is an Actor.
TEST_CASE("X-20 read, submit, write back: 200 requests to a Spot count to 200") {
  for (const auto& type : shared_gates) {
    CAPTURE(type);
    stage scene;
    int counter = 0;
    scene.acts["count"] = [&counter](player& p) -> zlink::task<int> {
      const int seen = counter;
      auto call = knock(p, "open door");
      co_await call.submit<answer>();
      counter = seen + 1;
      co_return counter;
    };
    scene.open("open door");
    mesh net{{.hosts = 2, .seed = 3, .max_link_delay = 3ms}};
    net.start(serve(scene));
    prepare(net, "x", type);
    std::vector<zlink::task<answer>> asked;
    for (std::size_t i = 0; i < 200; ++i)
      asked.push_back(ask_spot(net.host(i % 2), "x", "count", ""));
    for (auto& one : asked)
      net.run(std::move(one));
    CHECK(counter == 200);
  }
}

TEST_CASE("X-23 X-24 X-25 X-50 work submitted from a turn to its own gate runs behind all accepted before") {
  for (const auto& type : shared_gates) {
    CAPTURE(type);
    stage scene;
    scene.acts["sender"] = [&scene](player& p) -> zlink::task<int> {
      auto to_self = p.spot().outbound().send_to_spot(p.id(), tell{"to self"});
      co_await to_self.submit();
      scene.note("sent");
      auto call = knock(p, "d");
      co_await call.submit<answer>();
      co_return 0;
    };
    mesh net{1};
    net.start(serve(scene));
    prepare(net, "x", type);
    (void)tell_spot(net.host(0), "x", "sender");
    for (int i = 0; i < 5; ++i)
      (void)tell_spot(net.host(0), "x", std::to_string(i)); // nothing has run yet: all accepted before the turn
    CHECK_FALSE(scene.has("sender starts")); // never on the stack of the submitter
    net.run_until_idle();
    (void)tell_spot(net.host(0), "x", "last");
    scene.open("d");
    net.run_until_idle();
    CHECK(scene.in_order({"sender starts", "sent", "sender ends", "0", "1", "2", "3", "4", "to self", "last"}));
    CHECK(scene.count("to self") == 1);
  }
}

} // namespace gates_test
