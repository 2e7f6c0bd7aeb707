// Timers of Spots: registration, replacement, cancelling, coalescing, and when
// no tick may run (02 section 15).
#include "tests/contract/execution/stage.hpp"

#include "zlink/host/host_runtime.hpp"

namespace timers_test {

using namespace zlink::test;
using zlink::error_kind;
using zlink::testing::mesh;

/// Spot "x" of that type, whose timer "t" of that period starts with it.
void start_ticking(mesh& net, stage& scene, std::chrono::milliseconds period, const std::string& type = "wide",
                   zlink::timer_options options = {}) {
  scene.on_initialize = [period, options](player& p) -> zlink::task<void> {
    if (p.id() == "x")
      co_await p.add_timer("t", period, options);
  };
  net.start(serve(scene));
  prepare(net, "x", type);
}

TEST_CASE("X-125 a timer ticks; invalid arguments throw, a cancelled token and a closed Spot register nothing") {
  for (const auto& type : {"wide", "room", "split"}) {
    CAPTURE(type);
    stage scene;
    int refused = 0;
    bool cancelled = false;
    scene.acts["register"] = [&](player& p) -> zlink::task<int> {
      const auto attempt = [&](std::string name, zlink::time_span period) {
        try {
          auto registered = p.add_timer(std::move(name), period);
        } catch (const std::invalid_argument&) {
          ++refused;
        }
      };
      attempt("", 1s);
      attempt("n", 0ms);
      attempt("n", -1s);
      attempt("n", 1500us);
      attempt("n", std::chrono::hours::max());
      attempt("n", std::chrono::hours::min());
      std::stop_source stop;
      stop.request_stop();
      const auto outcome = co_await zlink::as_result(p.add_timer("n", 1s, {}, stop.get_token()));
      cancelled = outcome.is_cancelled();
      co_return 0;
    };
    mesh net{1};
    start_ticking(net, scene, 100ms, type);
    net.advance(250ms);
    CHECK(scene.count("tick") == 2);
    net.run(ask_spot(net.host(0), "x", "register", ""));
    CHECK(refused == 6);
    CHECK(cancelled);
    scene.log.clear();
    net.advance(2s);
    CHECK(scene.count("tick") == 20); // that of "t", and no other
    std::optional<error_kind> closed;
    scene.acts["close"] = [&closed](player& p) -> zlink::task<int> {
      co_await p.close();
      closed = failure_of(co_await zlink::as_result(p.add_timer("late", 1s)));
      co_return 0;
    };
    net.run(ask_spot(net.host(0), "x", "close", ""));
    CHECK(closed == error_kind::unavailable);
  }
}

TEST_CASE("outside of a turn no timer is added; a Spot that ends says so first") { // X-125, M-24
  stage scene;
  player* seen = nullptr;
  scene.acts["show"] = [&seen](player& p) -> zlink::task<int> {
    seen = &p;
    co_return 0;
  };
  scene.on_closing = [](player& p, const zlink::spot_closing_context&) -> zlink::task<void> {
    if (p.id() != "x")
      co_return;
    auto call = knock(p, "closing");
    co_await call.submit<answer>();
  };
  mesh net{1};
  net.start(serve(scene));
  prepare(net, "x", "room");
  net.run(ask_spot(net.host(0), "x", "show", ""));
  const auto attempt = [&] { return failure_of(net.run(zlink::as_result(seen->add_timer("t", 1s)))); };
  CHECK(attempt() == error_kind::invalid_operation);
  const auto spot = net.run(net.host(0).spots().find("x"));
  auto closing = net.host(0).spots().close(*spot);
  net.run_until_idle();
  REQUIRE(scene.knocked("closing"));
  CHECK(attempt() == error_kind::unavailable);
  scene.open("closing");
  CHECK(net.run(std::move(closing)));
}

TEST_CASE("X-126 a name registered again replaces the former registration, its queued tick too") {
  stage scene;
  scene.acts["hold"] = hold_at("d");
  scene.acts["replace"] = [](player& p) -> zlink::task<int> {
    auto call = knock(p, "d");
    co_await call.submit<answer>();
    co_await p.add_other_timer("t", 100ms);
    co_return 0;
  };
  mesh net{1};
  start_ticking(net, scene, 100ms);
  net.advance(150ms);
  CHECK(scene.count("tick") == 1);
  (void)tell_spot(net.host(0), "x", "replace");
  net.advance(200ms); // a tick is queued behind the handler
  CHECK(net.host(0).runtime().objects.find("x")->application_word().records() == 2);
  scene.open("d");
  net.run_until_idle();
  CHECK(scene.has("replace ends"));
  net.advance(1s);
  CHECK(scene.count("tick") == 1);
  CHECK(scene.count("other tick") == 10);
  CHECK(scene.in_order({"replace ends", "other tick 1", "other tick 2"}));
}

TEST_CASE("X-127 cancelling ends the callbacks to come, not the one that runs; any number of times, also from inside") {
  stage scene;
  zlink::timer handle;
  mesh net{1};
  scene.on_initialize = [&handle](player& p) -> zlink::task<void> {
    if (p.id() == "x")
      handle = co_await p.add_timer("t", 100ms);
  };
  scene.on_tick = [&](player& p, const zlink::timer_tick& tick) -> zlink::task<void> {
    if (tick.delivery_index != 3)
      co_return;
    handle.cancel();
    handle.cancel();
    auto call = knock(p, "d");
    co_await call.submit<answer>();
    scene.note("third ended");
  };
  net.start(serve(scene));
  prepare(net, "x", "wide");
  net.advance(350ms);
  CHECK(scene.count("tick") == 3);
  scene.open("d");
  net.advance(5s);
  CHECK(scene.has("third ended"));
  CHECK(scene.count("tick") == 3);
  handle.cancel();
}

// X-127, cancelled between queue and start.
TEST_CASE("a queued tick of a cancelled timer does not run") {
  stage scene;
  zlink::timer handle;
  scene.acts["hold"] = hold_at("d");
  scene.on_initialize = [&handle](player& p) -> zlink::task<void> {
    if (p.id() == "x")
      handle = co_await p.add_timer("t", 100ms);
  };
  mesh net{1};
  net.start(serve(scene));
  prepare(net, "x", "wide");
  (void)tell_spot(net.host(0), "x", "hold");
  net.advance(150ms);
  handle.cancel();
  scene.open("d");
  net.advance(1s);
  CHECK(scene.has("hold ends"));
  CHECK_FALSE(scene.has("tick"));
}

TEST_CASE("X-128 a callback longer than the period is never inside twice") {
  for (const auto& type : {"wide", "room", "split"}) {
    CAPTURE(type);
    stage scene;
    int inside = 0;
    int most = 0;
    scene.on_tick = [&](player& p, const zlink::timer_tick& tick) -> zlink::task<void> {
      most = std::max(most, ++inside);
      auto call = knock(p, "tick " + std::to_string(tick.delivery_index));
      co_await call.submit<answer>();
      --inside;
    };
    mesh net{1};
    start_ticking(net, scene, 1ms, type);
    for (int i = 1; i <= 20; ++i) {
      net.advance(20ms);
      scene.open("tick " + std::to_string(i));
    }
    net.advance(5ms);
    CHECK(scene.count("tick") >= 20);
    CHECK(most == 1);
    for (int i = 21; i <= 30; ++i)
      scene.open("tick " + std::to_string(i));
  }
}

// The same across a yield.
TEST_CASE("while a yielded callback waits no other of the same timer starts") {
  stage scene;
  scene.on_tick = [](player& p, const zlink::timer_tick&) -> zlink::task<void> {
    auto call = knock(p, "d");
    co_await call.yield<answer>();
  };
  mesh net{1};
  start_ticking(net, scene, 10ms);
  net.advance(200ms);
  CHECK(scene.count("tick") == 1);
  scene.open("d");
  net.advance(25ms);
  CHECK(scene.count("tick") >= 2);
}

TEST_CASE("X-135 a timer goes on after its handler threw, unless it is to stop") {
  for (const bool stops : {false, true}) {
    stage scene;
    scene.on_tick = [](player&, const zlink::timer_tick&) -> zlink::task<void> {
      throw std::runtime_error{"tick"};
      co_return;
    };
    std::vector<std::string> logged;
    zlink::testing::mesh_options wanted;
    wanted.adjust = [&logged](std::size_t, zlink::host_options& o) {
      o.on_dispatch_error = [&logged](const zlink::dispatch_error& e) { logged.push_back(to_string(e)); };
    };
    mesh net{wanted};
    zlink::timer_options options;
    options.stop_on_unhandled_exception = stops;
    start_ticking(net, scene, 100ms, "wide", options);
    net.advance(450ms);
    CHECK(scene.count("tick") == (stops ? 1 : 4));
    REQUIRE(logged.size() == (stops ? 1 : 4));
    CHECK(logged[0]
          == std::string{"zlink: handler_exception drop instance_spot control mesh=m spot=x what=timer \"t\", callback 1"}
               + (stops ? ", its last: tick" : ": tick"));
    CHECK(net.host(0).runtime().domain.counters.handler_exceptions.load() == (stops ? 1 : 4));
    net.run(ask_spot(net.host(0), "x", "still there"));
  }
}

TEST_CASE("X-136 no tick is queued or started without the lease, and none comes in a burst when it is back") {
  stage scene;
  zlink::testing::mesh_options options;
  options.adjust = [](std::size_t,
                      zlink::host_options& o) { // so that the lease is renewed in time after all
    o.lease_renew_interval = 1s;
    o.lease_renew_timeout = 500ms;
  };
  mesh net{options};
  zlink::timer_options stops;
  stops.stop_on_unhandled_exception = true; // a refused tick is no exception
  start_ticking(net, scene, 100ms, "wide", stops);
  net.advance(1s);
  CHECK(scene.count("tick") == 10);
  const auto admits = [&net] { return net.host(0).runtime().domain.admits(net.host(0).runtime().time->now()); };
  net.cut_store(0);
  for (int i = 0; i < 200 && admits(); ++i)
    net.advance(100ms);
  REQUIRE_FALSE(admits());
  const auto at_the_end = scene.count("tick");
  CHECK(at_the_end > 10);
  net.advance(1s);
  CHECK(scene.count("tick") == at_the_end);
  CHECK(net.host(0).runtime().objects.find("x")->application_word().records() <= 1);
  net.heal();
  net.run_until(admits);
  CHECK(scene.count("tick") <= at_the_end + 1);
  net.advance(1s);
  CHECK(scene.count("tick") >= at_the_end + 9);
  CHECK(scene.count("tick") <= at_the_end + 11);
  const auto before_the_jump = scene.count("tick");
  net.jump(1h); // as after a suspension: the lease is over before anything runs
  net.run_until_idle();
  CHECK(scene.count("tick") <= before_the_jump + 1);
}

TEST_CASE("X-137 a Spot that was made again gets no tick of the former one") {
  stage scene;
  scene.acts["hold and close"] = [](player& p) -> zlink::task<int> {
    co_await p.close();
    co_return 0;
  };
  int incarnation = 0;
  scene.on_initialize = [&incarnation](player& p) -> zlink::task<void> {
    if (p.id() == "x" && ++incarnation == 1)
      co_await p.add_timer("t", 100ms);
  };
  mesh net{1};
  net.start(serve(scene));
  prepare(net, "x", "wide");
  net.advance(250ms);
  CHECK(scene.count("tick") == 2);
  net.run(ask_spot(net.host(0), "x", "hold and close"));
  net.run(ask_spot(net.host(0), "x", "again"));
  CHECK(incarnation == 2);
  scene.log.clear();
  net.advance(5s);
  CHECK_FALSE(scene.has("tick"));
}

TEST_CASE("X-141 a tick accepted before the closing seal runs before on_closing, none is admitted after it") {
  for (const auto& type : {"wide", "room"}) {
    CAPTURE(type);
    stage scene;
    scene.acts["close"] = [&scene](player& p) -> zlink::task<int> {
      auto first = knock(p, "before the seal");
      co_await first.submit<answer>();
      co_await p.close(); // answered when the seal is set
      scene.note("sealed");
      auto second = knock(p, "after the seal");
      co_await second.submit<answer>();
      co_return 0;
    };
    mesh net{1};
    start_ticking(net, scene, 100ms, type);
    (void)tell_spot(net.host(0), "x", "close");
    net.advance(150ms); // one tick waits now
    scene.open("before the seal");
    net.run_until_idle();
    CHECK(scene.has("sealed"));
    net.advance(1s); // nothing is admitted any more
    scene.open("after the seal");
    net.advance(1s);
    CHECK(scene.in_order({"sealed", "close ends", "tick", "closing x"}));
    CHECK(scene.count("tick") == 1);
  }
}

} // namespace timers_test
