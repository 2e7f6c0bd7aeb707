// Lifetime of handlers, exceptions, and the ends of Spot and host as handlers see them (02 sections 4 and 17 to 19).
#include "tests/contract/execution/stage.hpp"

#include "zlink/host/host_runtime.hpp"

#include <set>

namespace endings_test {

using namespace zlink::test;
using zlink::error_kind;
using zlink::testing::mesh;

std::uint64_t dropped(mesh& net, std::size_t host, zlink::detail::drop_reason why) {
  return net.host(host).runtime().domain.counters.dropped[static_cast<std::size_t>(why)];
}

TEST_CASE("X-155 one application instance serves everything of an activation, the next activation gets its own") {
  stage scene;
  std::set<const player*> instances;
  scene.acts["see"] = [&instances](player& p) -> zlink::task<int> {
    instances.insert(&p);
    co_return 0;
  };
  scene.on_initialize = [&instances](player& p) -> zlink::task<void> {
    if (p.id() != "x")
      co_return;
    instances.insert(&p);
    co_await p.add_timer("t", 100ms);
  };
  scene.on_tick = [&instances](player& p, const zlink::timer_tick&) -> zlink::task<void> {
    instances.insert(&p);
    co_return;
  };
  scene.acts["close"] = [](player& p) -> zlink::task<int> {
    co_await p.close();
    co_return 0;
  };
  mesh net{1};
  net.start(serve(scene));
  const auto before = scene.made; // the Entry Spot
  for (int i = 0; i < 10; ++i) {
    net.run(ask_spot(net.host(0), "x", "see"));
    net.run(tell_spot(net.host(0), "x", "see"));
    net.advance(100ms);
  }
  CHECK(scene.made == before + 1);
  CHECK(instances.size() == 1);
  net.run(ask_spot(net.host(0), "x", "close"));
  net.run(ask_spot(net.host(0), "x", "see"));
  CHECK(scene.made == before + 2);
}

TEST_CASE("X-161 a handler may end its own Spot: answered at the seal, disposed once when all has ended") {
  for (const std::string type : {"wide", "room"}) {
    stage scene;
    scene.acts["close"] = [&scene](player& p) -> zlink::task<int> {
      const bool closed = co_await p.close();
      scene.note(closed ? "sealed" : "refused");
      CHECK(scene.alive == 2);
      auto call = knock(p, "d");
      co_await call.submit<answer>();
      co_return p.id() == "x";
    };
    mesh net{1};
    net.start(serve(scene));
    prepare(net, "x", type);
    auto asked = ask_spot(net.host(0), "x", "close", "");
    (void)tell_spot(net.host(0), "x", "accepted");
    net.run_until([&] { return scene.has("sealed"); });
    CHECK(scene.alive == 2); // with the Entry Spot
    scene.open("d");
    CHECK(net.run(std::move(asked)).value == 1);
    net.run_until_idle();
    CHECK(scene.in_order({"sealed", "close ends", "accepted", "closing x"}));
    CHECK(scene.alive == 1);
  }
}

TEST_CASE("X-163 X-164 a throwing handler ends its record only") {
  stage scene;
  scene.acts["throw"] = [](player&) -> zlink::task<int> {
    throw std::runtime_error{"handler"};
    co_return 0;
  };
  scene.acts["wait and throw"] = [](player& p) -> zlink::task<int> {
    auto work = p.spot().run_cpu_worker([](std::stop_token) { return 1; });
    co_await work.submit();
    throw 7;
  };
  mesh net{2};
  net.start(serve(scene));
  prepare(net, "x", "wide");
  const auto owner = net.owner_of("x");
  for (std::size_t from = 0; from < 2; ++from)
    for (const auto* what : {"throw", "wait and throw"})
      for (int i = 0; i < 25; ++i) {
        CHECK(failure_of(net.run(zlink::as_result(ask_spot(net.host(from), "x", what)))) == error_kind::internal_failure);
        net.run(tell_spot(net.host(from), "x", what));
      }
  net.run(ask_spot(net.host(0), "x", "normal"));
  net.run_until_idle();
  auto& runtime = net.host(owner).runtime();
  CHECK(scene.made == 3); // two Entry Spots, and "x" once
  CHECK(runtime.domain.counters.handler_exceptions.load() == 200);
  CHECK(dropped(net, owner, zlink::detail::drop_reason::handler_failed) == 100); // the sends
  CHECK(runtime.objects.find("x")->application_word().records() == 0);
  CHECK(runtime.permits->in_use() == 0);
}

TEST_CASE("X-168 after the shutdown seal nothing new starts; what was accepted goes on to the drain deadline") {
  for (const bool in_time : {true, false}) {
    CAPTURE(in_time);
    stage scene;
    error_kind inside{};
    scene.acts["hold"] = [&](player& p) -> zlink::task<int> {
      auto call = knock(p, "d", 10min);
      const auto outcome = co_await zlink::as_result(call.submit<answer>());
      if (!outcome.has_value())
        inside = outcome.error().kind();
      co_return 3;
    };
    mesh net{1};
    net.start(serve(scene));
    prepare(net, "x", "wide");
    auto running = net.host(0).spots().request_to_spot("x", ask{"hold"}).timeout(10min).submit<answer>();
    (void)tell_spot(net.host(0), "x", "accepted");
    auto waiting = zlink::as_result(ask_spot(net.host(0), "x", "waiting", "", 10min));
    net.run_until_idle();
    REQUIRE(scene.knocked("d"));
    auto ending = net.host(0).shutdown();
    net.run_until_idle();
    CHECK(failure_of(net.run(zlink::as_result(ask_spot(net.host(0), "x", "new")))) == error_kind::shutting_down);
    CHECK(failure_of(net.run(zlink::as_result(tell_spot(net.host(0), "x", "new")))) == error_kind::shutting_down);
    net.advance(10s);
    CHECK_FALSE(ending.ready());
    if (in_time) {
      scene.open("d");
      CHECK(net.run(std::move(running)).value == 3);
      CHECK(net.run(std::move(waiting)).has_value());
      net.run(std::move(ending));
      CHECK(scene.in_order({"hold ends", "accepted", "closing x"}));
    } else {
      net.advance(25s);
      CHECK(inside == error_kind::shutting_down);
      CHECK(failure_of(net.run(std::move(waiting))) == error_kind::shutting_down);
      CHECK_FALSE(scene.has("accepted"));
      scene.open("d"); // the door has a handler of its own, which is waited for
      net.run(std::move(ending));
    }
    CHECK_FALSE(scene.has("new"));
    scene.open("d");
    net.run_until_idle();
  }
}

TEST_CASE("X-169 a closed Spot finishes what it accepted, yielded runs included, and takes nothing more") {
  stage scene;
  scene.acts["yield"] = yield_at("y");
  scene.acts["close"] = [&scene](player& p) -> zlink::task<int> {
    co_await p.close();
    scene.note("sealed");
    auto call = knock(p, "d");
    co_await call.submit<answer>();
    co_return 0;
  };
  mesh net{1};
  net.start(serve(scene));
  prepare(net, "x", "room");
  auto yielded = ask_spot(net.host(0), "x", "yield", "");
  net.run_until_idle();
  (void)tell_spot(net.host(0), "x", "close");
  (void)tell_spot(net.host(0), "x", "before");
  net.run_until_idle();
  REQUIRE(scene.has("sealed"));
  CHECK(failure_of(net.run(zlink::as_result(ask_spot(net.host(0), "x", "after", "")))) == error_kind::not_found); // M-64
  scene.open("d");
  net.run_until_idle();
  CHECK(scene.has("before"));
  CHECK_FALSE(scene.has("closing x"));
  scene.open("y");
  CHECK(net.run(std::move(yielded)).value == 1);
  net.run_until_idle();
  CHECK(scene.in_order({"sealed", "close ends", "before", "yield ends", "closing x"}));
  CHECK_FALSE(scene.has("after"));
}

// What relocations do to it is proved with them.
TEST_CASE("X-40 a yielded handler is resumed before on_closing, or fails at the deadline or with the lease") {
  for (const std::string what : {"close in time", "close late", "shutdown late", "lease lost"}) {
    CAPTURE(what);
    stage scene;
    error_kind failed{};
    scene.acts["yield"] = [&](player& p) -> zlink::task<int> {
      auto call = knock(p, "y", 10min);
      const auto outcome = co_await zlink::as_result(call.yield<answer>());
      if (!outcome.has_value())
        failed = outcome.error().kind();
      co_return 0;
    };
    scene.acts["close"] = [](player& p) -> zlink::task<int> {
      co_await p.close();
      co_return 0;
    };
    mesh net{1};
    net.start(serve(scene));
    prepare(net, "x", "wide");
    (void)tell_spot(net.host(0), "x", "yield");
    net.run_until_idle();
    if (what == "shutdown late")
      (void)net.host(0).shutdown();
    else if (what == "lease lost")
      net.cut_store(0);
    else
      (void)tell_spot(net.host(0), "x", "close");
    net.advance(5s);
    CHECK_FALSE(scene.has("yield ends"));
    CHECK_FALSE(scene.has("closing x"));
    if (what == "close in time")
      scene.open("y");
    net.advance(40s);
    if (what == "lease lost") {
      net.heal(); // the store tells that the lease is over
      net.advance(10s);
    }
    CHECK(scene.count("yield ends") == 1);
    if (what == "lease lost")
      CHECK_FALSE(scene.has("closing x")); // S-44
    else
      CHECK(scene.in_order({"yield ends", "closing x"}));
    if (what == "close in time")
      CHECK(failed == error_kind{});
    else
      CHECK(failed == (what == "shutdown late" ? error_kind::shutting_down : error_kind::unavailable));
    scene.open("y");
    net.run_until_idle();
  }
}

TEST_CASE("X-173 a Spot with a tick, a yielded run or a call under way is not idle") {
  for (const std::string what : {"ticks", "yield", "request", "nothing"}) {
    CAPTURE(what);
    stage scene;
    scene.acts["ticks"] = [](player& p) -> zlink::task<int> {
      co_await p.add_timer("t", 24h);
      co_return 0;
    };
    scene.acts["yield"] = [](player& p) -> zlink::task<int> {
      auto call = knock(p, "y", 10min);
      co_await call.yield<answer>();
      co_return 0;
    };
    scene.acts["request"] = [](player& p) -> zlink::task<int> {
      auto call = knock(p, "y", 10min);
      call.submit<answer>().then([](zlink::result<answer>) {});
      co_return 0;
    };
    mesh net{1};
    net.start(serve(scene, [](zlink::mesh_node& node) { node.instance_spot_idle_timeout(30s); }));
    prepare(net, "x", "wide");
    (void)tell_spot(net.host(0), "x", what);
    net.advance(3min);
    CHECK(scene.has("closing x") == (what == "nothing"));
    scene.open("y");
    net.advance(3min);
    CHECK(scene.has("closing x") == (what != "ticks"));
  }
}

} // namespace endings_test
