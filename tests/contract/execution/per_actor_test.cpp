// PerActor User Spots: the Spot's own work and each timer name have gates of their own (02 sections 2 and 15). The gates
// of their Actors are proved with Actors.
#include "tests/contract/execution/stage.hpp"
#include "tests/sim/checkers.hpp"
#include "zlink/host/host_runtime.hpp"

namespace per_actor_test {

using namespace zlink::test;
using zlink::error_kind;
using zlink::testing::mesh;

/// Spot "x" of that type with timers "a" and "b", whose handlers wait at the doors of their names.
void start_two_timers(mesh& net, stage& scene, const std::string& type) {
  scene.on_initialize = [](player& p) -> zlink::task<void> {
    if (p.id() != "x")
      co_return;
    co_await p.add_timer("a", 100ms);
    co_await p.add_timer("b", 100ms);
  };
  if (!scene.on_tick)
    scene.on_tick = [&scene](player& p, const zlink::timer_tick& tick) -> zlink::task<void> {
      const std::string name{tick.name};
      scene.note(name + " starts");
      auto call = knock(p, name);
      co_await call.submit<answer>();
      scene.note(name + " ends");
    };
  net.start(serve(scene));
  prepare(net, "x", type);
}

std::uint64_t records_of(mesh& net, const std::string& id) {
  const auto object = net.host(0).runtime().objects.find(id);
  return object ? object->application_word().records() : 0;
}

TEST_CASE("X-11 X-14 a PerActor Spot's handler and its timers are active at once, two of one gate are not") {
  for (const std::string type : {"split", "room"}) {
    CAPTURE(type);
    const bool split = type == "split";
    stage scene;
    scene.acts["hold"] = hold_at("spot");
    mesh net{1};
    start_two_timers(net, scene, type);
    (void)tell_spot(net.host(0), "x", "hold");
    (void)tell_spot(net.host(0), "x", "second packet");
    net.advance(150ms);
    CHECK(scene.has("hold starts"));
    CHECK(scene.has("a starts") == split);
    CHECK(scene.has("b starts") == split);
    CHECK_FALSE(scene.has("second packet"));
    CHECK(records_of(net, "x") == 4); // all count against the Spot's queue
    net.advance(1s);
    CHECK(scene.count("a starts") == (split ? 1 : 0)); // its own next tick waits
    CHECK(records_of(net, "x") == 4);
    scene.open("b");
    net.advance(250ms);
    CHECK(scene.count("a starts") <= 1);
    CHECK((scene.count("b starts") >= 3) == split); // the slow timer "a" does not delay it
    scene.open("spot");
    net.run_until_idle();
    if (split) {
      CHECK(scene.has("second packet"));
    } else {
      CHECK(scene.count("a starts") == 1); // the shared gate is held again
      CHECK_FALSE(scene.has("b starts"));
    }
    scene.open("a");
    net.advance(250ms);
    CHECK(scene.count("a ends") >= 2);
  }
}

TEST_CASE("ticks of a PerActor Spot find no room in the lane that packets have filled, and wait in it unrefused") {
  stage scene;
  scene.open("b");
  zlink::testing::mesh_options options;
  options.adjust = [](std::size_t, zlink::host_options& o) { o.application_lane_records = 2; };
  mesh net{options};
  start_two_timers(net, scene, "split");
  net.advance(150ms); // "a" runs, and occupies one of the two places
  net.run(tell_spot(net.host(0), "x", "fits"));
  scene.acts["hold"] = hold_at("spot");
  net.run(tell_spot(net.host(0), "x", "hold"));
  net.run_until_idle();
  CHECK(records_of(net, "x") == 2);
  auto waits = tell_spot(net.host(0), "x", "waits");
  net.run_until_idle();
  CHECK_FALSE(waits.ready());
  scene.open("a"); // its record gives the place back
  net.run(std::move(waits));
  scene.open("spot");
  net.run_until_idle();
  CHECK(scene.has("waits"));
}

TEST_CASE("X-126 X-127 a timer of a PerActor Spot is replaced and cancelled inside its own tick, without overlapping") {
  stage scene;
  exclusive_gates gates;
  scene.on_tick = [&](player& p, const zlink::timer_tick& tick) -> zlink::task<void> {
    const auto inside = gates.enter(std::string{tick.name});
    if (tick.name == "a" && tick.delivery_index == 2)
      co_await p.add_other_timer("a", 50ms);
    auto call = knock(p, "tick");
    co_await call.submit<answer>();
    scene.note("a tick ended");
  };
  mesh net{1};
  start_two_timers(net, scene, "split");
  scene.open("tick");
  net.advance(1s);
  CHECK(scene.in_order({"other tick 1", "other tick 2"}));
  CHECK(scene.count("other tick") >= 15);
  CHECK(gates.broken().empty());
}

TEST_CASE("X-35 X-37 yield in a tick of a PerActor Spot is refused, and its context serves the tick") {
  stage scene;
  std::optional<error_kind> refused;
  int got = 0;
  bool self_refused = false;
  scene.on_tick = [&](player& p, const zlink::timer_tick&) -> zlink::task<void> {
    auto call = knock(p, "never");
    const auto outcome = co_await zlink::as_result(call.yield<answer>());
    refused = failure_of(outcome);
    auto work = p.spot().run_cpu_worker([](std::stop_token) { return 7; });
    got = co_await work.submit();
    auto own = p.spot().outbound().request_to_spot("x", ask{"asked by its timer"}); // another gate: allowed
    co_await own.submit<answer>();
    try {
      dynamic_cast<room_spot&>(p).face();
    } catch (const zlink::operation_failed& failure) {
      self_refused = failure.kind() == error_kind::invalid_operation;
    }
  };
  mesh net{1};
  start_two_timers(net, scene, "split");
  net.advance(150ms);
  CHECK(refused == error_kind::invalid_configuration);
  CHECK_FALSE(scene.knocked("never"));
  CHECK(got == 7);
  CHECK(scene.has("asked by its timer"));
  CHECK(self_refused);
}

TEST_CASE("X-141 X-169 a PerActor Spot is closed when its ticks under way have ended, and by their deadline at last") {
  for (const bool in_time : {true, false}) {
    CAPTURE(in_time);
    stage scene;
    std::optional<error_kind> failed;
    scene.on_tick = [&](player& p, const zlink::timer_tick& tick) -> zlink::task<void> {
      if (tick.name == "b")
        co_return;
      scene.note("tick starts");
      auto call = knock(p, "tick", 10min);
      const auto outcome = co_await zlink::as_result(call.submit<answer>());
      if (!outcome.has_value())
        failed = failure_of(outcome);
      scene.note("tick ends");
    };
    mesh net{1};
    start_two_timers(net, scene, "split");
    net.advance(150ms);
    REQUIRE(scene.has("tick starts"));
    auto found = net.run(net.host(0).spots().find("x"));
    REQUIRE(found.has_value());
    auto closing = net.host(0).spots().close(*found);
    net.advance(5s);
    CHECK_FALSE(closing.ready());
    CHECK_FALSE(scene.has("closing x"));
    if (in_time)
      scene.open("tick");
    net.advance(30s);
    const auto closed = net.run(zlink::as_result(std::move(closing)));
    CHECK((closed.has_value() || failure_of(closed) == error_kind::deadline_exceeded)); // the same moment
    CHECK(scene.in_order({"tick starts", "tick ends", "closing x"}));
    CHECK(scene.count("tick starts") == 1);
    if (in_time)
      CHECK_FALSE(failed.has_value());
    else
      CHECK(failed == error_kind::unavailable);
    scene.open("tick");
    net.run_until_idle();
  }
}

TEST_CASE("X-161 a tick of a PerActor Spot closes it: answered at the seal, gone when the tick has ended") {
  stage scene;
  scene.on_tick = [&scene](player& p, const zlink::timer_tick& tick) -> zlink::task<void> {
    if (tick.name == "b")
      co_return;
    const bool sealed = co_await p.close();
    scene.note(sealed ? "sealed" : "refused");
    auto call = knock(p, "d");
    co_await call.submit<answer>();
    scene.note("tick ends");
  };
  mesh net{1};
  start_two_timers(net, scene, "split");
  net.advance(2s);
  CHECK(scene.has("sealed"));
  CHECK_FALSE(scene.has("closing x"));
  scene.open("d");
  net.run_until_idle();
  CHECK(scene.in_order({"sealed", "tick ends", "closing x"}));
  CHECK_FALSE(net.run(net.host(0).spots().find("x")).has_value());
}

} // namespace per_actor_test
