// Submit and yield: what each does with the turn, where yield is allowed,
// cycles, detached code (02 sections 3 to 5).
#include "tests/contract/execution/stage.hpp"

#include "zlink/host/host_runtime.hpp"

namespace yield_test {

using namespace zlink::test;
using zlink::error_kind;
using zlink::testing::mesh;

const std::vector<std::string> shared_gates{"wide", "room"};

TEST_CASE("X-26 X-31 submit and yield return the same; a yielded handler lets others in and resumes at the back") {
  for (const auto& type : shared_gates) {
    CAPTURE(type);
    for (const bool yields : {false, true}) {
      stage scene;
      scene.acts["ask"] = yields ? yield_at("d") : hold_at("d");
      scene.acts["busy"] = hold_at("busy");
      mesh net{1};
      net.start(serve(scene));
      prepare(net, "x", type);
      auto asked = ask_spot(net.host(0), "x", "ask", "");
      net.run_until_idle();
      (void)tell_spot(net.host(0), "x",
                      "busy"); // runs now only if the gate is free
      (void)tell_spot(net.host(0), "x", "probe 1");
      (void)tell_spot(net.host(0), "x", "probe 2");
      net.run_until_idle();
      CHECK(scene.has("busy starts") == yields);
      scene.open("d"); // the reply arrives when both probes have been accepted
      net.run_until_idle();
      scene.open("busy");
      CHECK(net.run(std::move(asked)).value == 1);
      net.run_until_idle();
      if (yields)
        CHECK(scene.in_order({"through d", "busy ends", "probe 1", "probe 2", "ask ends"}));
      else
        CHECK(scene.in_order({"through d", "ask ends", "busy starts", "busy ends", "probe 1", "probe 2"}));
      CHECK(scene.count("ask starts") == 1); // the reply was no packet of the Spot
      CHECK(
        net.host(0).runtime().domain.counters.dropped[static_cast<std::size_t>(zlink::detail::drop_reason::no_handler)]
        == 0);
    }
  }
}

template <class Call>
concept yields_void = requires(Call call) {
  call.yield();
};
template <class Call>
concept yields_reply = requires(Call call) {
  call.template yield<answer>();
};

// For the calls of Spots; those of channels and Actors come with them.
TEST_CASE("X-32 X-33 requests, worker calls and creates offer yield, one-way calls, timers and closes do not") {
  static_assert(yields_reply<zlink::spot_request_call> && yields_reply<zlink::node_request_call>);
  static_assert(yields_void<zlink::worker_call<int>>);
  static_assert(yields_void<zlink::spot_create_call> && yields_void<zlink::spot_get_or_create_call>);
  static_assert(!yields_void<zlink::spot_send_call> && !yields_reply<zlink::spot_send_call>);
  static_assert(!yields_void<zlink::node_send_call> && !yields_reply<zlink::node_send_call>);
  static_assert(!yields_void<decltype(std::declval<zlink::spot_context&>().close())>);
}

// Member Actors yield the same gate.
TEST_CASE("X-34 yield works in packets and ticks of shared gates, submit in every context") {
  stage scene;
  scene.open("d");
  scene.acts["submit"] = hold_at("d");
  scene.acts["yield"] = yield_at("d");
  scene.on_initialize = [](player& p) -> zlink::task<void> {
    if (p.id() == "x")
      co_await p.add_timer("t", 10ms);
  };
  scene.on_tick = [&scene](player& p, const zlink::timer_tick&) -> zlink::task<void> {
    auto call = knock(p, "d");
    co_await call.yield<answer>();
    scene.note("tick yielded");
  };
  mesh net{1};
  net.start(serve(scene));
  scene.node_acts["submit"] = [&net]() -> zlink::task<int> {
    const auto got = co_await ask_spot(net.host(0), "w", "submit");
    co_return got.value;
  };
  const auto lobby = net.host(0).mesh("m").entry_spot_id();
  for (const auto& [id, type] : {std::pair{"w", "wide"}, {"r", "room"}, {"s", "split"}, {"x", "wide"}})
    prepare(net, id, type);
  for (const auto& id : {std::string{"w"}, std::string{"r"}, std::string{"s"}, lobby})
    CHECK(net.run(ask_spot(net.host(0), id, "submit", "")).value == 1); // and from the outside each time
  for (const auto* id : {"w", "r"})
    CHECK(net.run(ask_spot(net.host(0), id, "yield", "")).value == 1);
  auto to_node = net.host(0).nodes().request_to_node("m", net.host(0).mesh("m").rid(), ask{"submit"});
  CHECK(net.run(to_node.submit<answer>()).value == 1);
  net.advance(15ms);
  CHECK(scene.has("tick yielded"));
}

/// Tries to yield in every way, and says whether each was refused with that
/// kind while nothing else of its gate ran.
std::function<zlink::task<int>(player&)> refused_yields(stage& scene, error_kind expected) {
  return [&scene, expected](player& p) -> zlink::task<int> {
    int refused = 0;
    auto call = knock(p, "never");
    auto asked = call.yield<answer>();
    refused += asked.ready();
    const auto by_request = co_await zlink::as_result(std::move(asked));
    refused += !by_request.has_value() && by_request.error().kind() == expected;
    auto work = p.spot().run_cpu_worker([&scene](std::stop_token) {
      scene.note("body");
      return 1;
    });
    const auto by_worker = co_await zlink::as_result(work.yield());
    refused += !by_worker.has_value() && by_worker.error().kind() == expected;
    auto create = p.spot().host().spots().get_or_create("never made", "room");
    const auto by_create = co_await zlink::as_result(create.yield());
    refused += !by_create.has_value() && by_create.error().kind() == expected;
    scene.note("refused");
    co_return refused;
  };
}

// Their Actors are refused in the same place.
TEST_CASE("X-35 X-37 yield on Entry and PerActor Spots is refused before any effect, and the turn is kept") {
  stage scene;
  scene.acts["try"] = refused_yields(scene, error_kind::invalid_configuration);
  bool stored = false;
  mesh net{1};
  net.start(serve(scene));
  prepare(net, "s", "split");
  for (const auto& id : {std::string{"s"}, net.host(0).mesh("m").entry_spot_id()}) {
    scene.log.clear();
    stored = false;
    net.faults(0).set_rule([&stored](const zlink::testing::store_call& call) {
      stored = stored || call.what == zlink::testing::store_operation::write;
      return zlink::testing::store_fault::none;
    });
    auto asked = ask_spot(net.host(0), id, "try", "");
    (void)tell_spot(net.host(0), id, "probe");
    CHECK(net.run(std::move(asked)).value == 4);
    net.run_until_idle();
    CHECK(scene.in_order({"refused", "try ends", "probe"}));
    CHECK_FALSE(scene.knocked("never"));
    CHECK_FALSE(scene.has("body"));
    CHECK_FALSE(stored);
  }
  CHECK_FALSE(net.run(net.host(0).spots().find("never made")).has_value());
  CHECK_FALSE(net.run(net.host(0).spots().find("never")).has_value());
}

// Sessions and channel handlers have no such turn either.
TEST_CASE("X-36 yield without a turn is refused before any effect: outside, in node handlers, in worker bodies") {
  stage scene;
  mesh net{1};
  net.start(serve(scene));
  auto& host = net.host(0);
  const auto kind_of_yield = [&host] {
    auto call = host.spots().request_to_spot("never", ask{"knock"});
    call.instance_spot("door");
    auto asked = call.yield<answer>();
    REQUIRE(asked.ready());
    return failure_of(asked.operation()->outcome());
  };
  CHECK(kind_of_yield() == error_kind::invalid_operation);
  int seen = 0;
  scene.node_acts["yield"] = [&]() -> zlink::task<int> {
    seen += kind_of_yield() == error_kind::invalid_operation;
    co_return 0;
  };
  scene.acts["bodies"] = [&](player& p) -> zlink::task<int> {
    auto cpu =
      p.spot().run_cpu_worker([&](std::stop_token) { seen += kind_of_yield() == error_kind::invalid_operation; });
    co_await cpu.submit();
    auto io = p.spot().run_io_worker([&](std::stop_token) -> zlink::task<void> {
      seen += kind_of_yield() == error_kind::invalid_operation;
      return zlink::task<void>::done();
    });
    co_await io.submit();
    co_return 0;
  };
  auto to_node = host.nodes().request_to_node("m", host.mesh("m").rid(), ask{"yield"});
  net.run(to_node.submit<answer>());
  net.run(ask_spot(host, "x", "bodies"));
  net.run_until_idle();
  CHECK(seen == 3);
  CHECK_FALSE(scene.knocked("never"));
  CHECK_FALSE(net.run(host.spots().find("never")).has_value());
}

TEST_CASE("X-38 X-39 packets and ticks run while a handler is yielded, and may change what it has read") {
  for (const auto& type : shared_gates) {
    CAPTURE(type);
    stage scene;
    int value = 10;
    int read_after = 0;
    scene.acts["yield"] = [&](player& p) -> zlink::task<int> {
      co_await p.add_timer("t", 10ms);
      const int before = value;
      auto call = knock(p, "d");
      co_await call.yield<answer>();
      read_after = value;
      co_return before;
    };
    scene.acts["set"] = [&value](player&) -> zlink::task<int> {
      value = 20;
      co_return 0;
    };
    mesh net{1};
    net.start(serve(scene));
    prepare(net, "x", type);
    auto asked = ask_spot(net.host(0), "x", "yield", "");
    net.advance(15ms);
    net.run(ask_spot(net.host(0), "x", "set", ""));
    CHECK(scene.has("tick"));
    scene.open("d");
    CHECK(net.run(std::move(asked)).value == 10);
    CHECK(read_after == 20);
  }
}

TEST_CASE("X-41 a reply is decided although 100 records wait for the gate its caller holds") {
  stage scene;
  scene.acts["ask"] = hold_at("d");
  mesh net{1};
  net.start(serve(scene));
  prepare(net, "x", "wide");
  auto asked = ask_spot(net.host(0), "x", "ask");
  for (int i = 0; i < 100; ++i)
    (void)tell_spot(net.host(0), "x", "waits");
  net.run_until_idle();
  scene.open("d");
  CHECK(net.run(std::move(asked)).value == 1);
  net.run_until_idle();
  CHECK(scene.in_order({"through d", "ask ends", "waits"}));
  CHECK(scene.count("waits") == 100);
}

TEST_CASE("X-43 a blocking wait inside a handler or a worker body is refused at once") {
  stage scene;
  mesh net{1};
  net.start(serve(scene));
  int refused = 0;
  const auto attempt = [&] {
    try {
      zlink::sync_wait(ask_spot(net.host(0), "other", "work"));
    } catch (const zlink::operation_failed& failure) {
      refused += failure.kind() == error_kind::invalid_operation;
    }
  };
  scene.acts["block"] = [&](player& p) -> zlink::task<int> {
    attempt();
    auto work = p.spot().run_cpu_worker([&](std::stop_token) { attempt(); });
    co_await work.submit();
    attempt(); // in a resumed turn too
    co_return 0;
  };
  scene.node_acts["block"] = [&]() -> zlink::task<int> {
    attempt();
    co_return 0;
  };
  net.run(ask_spot(net.host(0), "x", "block"));
  auto to_node = net.host(0).nodes().request_to_node("m", net.host(0).mesh("m").rid(), ask{"block"});
  net.run(to_node.submit<answer>());
  CHECK(refused == 4);
  CHECK(zlink::sync_wait(zlink::task<int>{[] {
          auto done = zlink::detail::new_counted<zlink::detail::operation<int>>();
          done->set(zlink::result<int>{7});
          return done;
        }()})
        == 7); // an application thread may wait
}

TEST_CASE("X-44 a terminal starts its operation; dropping the task neither cancels nor repeats it") {
  stage scene;
  scene.acts["drop"] = [](player& p) -> zlink::task<int> {
    { auto dropped = p.spot().outbound().send_to_spot("y", tell{"from a turn"}).submit(); }
    { auto dropped = p.spot().outbound().request_to_spot("y", ask{"requested"}).submit<answer>(); }
    co_return 0;
  };
  mesh net{{.hosts = 2, .seed = 9, .max_link_delay = 5ms}};
  net.start(serve(scene));
  for (const auto* id : {"x", "y"})
    prepare(net, id, "wide");
  for (std::size_t from = 0; from < 2; ++from) {
    auto send = net.host(from).spots().send_to_spot("y", tell{"from outside"});
    { auto dropped = send.submit(); }
  }
  net.run(ask_spot(net.host(0), "x", "drop"));
  net.run_until_idle();
  CHECK(scene.count("from outside") == 2);
  CHECK(scene.count("from a turn") == 1);
  CHECK(scene.count("requested") == 1);
}

// X-48 for a Spot that asks itself; the other three pairs have Actors in them.
TEST_CASE("X-49 a submit request to the own Spot is refused before submission, by yield it is answered") {
  for (const auto& type : shared_gates) {
    CAPTURE(type);
    stage scene;
    error_kind refusal{};
    scene.acts["submit and see"] = [&refusal](player& p) -> zlink::task<int> {
      auto call = p.spot().outbound().request_to_spot(p.id(), ask{"inner"});
      const auto outcome = co_await zlink::as_result(call.submit<answer>());
      if (!outcome.has_value())
        refusal = outcome.error().kind();
      co_return 0;
    };
    scene.acts["yield"] = [](player& p) -> zlink::task<int> {
      auto call = p.spot().outbound().request_to_spot(p.id(), ask{"inner"});
      co_await call.yield<answer>();
      co_return 2;
    };
    mesh net{1};
    net.start(serve(scene));
    prepare(net, "x", type);
    const auto began = net.elapsed();
    net.run(ask_spot(net.host(0), "x", "submit and see", ""));
    CHECK(refusal == error_kind::invalid_operation);
    CHECK(net.elapsed() == began);
    CHECK_FALSE(scene.has("inner"));
    CHECK(net.run(ask_spot(net.host(0), "x", "yield", "")).value == 2);
    CHECK(scene.in_order({"yield starts", "inner", "yield ends"}));
  }
}

TEST_CASE("X-52 a longer cycle ends by the request deadline and leaves the gates usable") {
  stage scene;
  scene.acts["ask y"] = [](player& p) -> zlink::task<int> {
    auto call = p.spot().outbound().request_to_spot("y", ask{"ask x"});
    const auto got = co_await call.submit<answer>();
    co_return got.value;
  };
  scene.acts["ask x"] = [](player& p) -> zlink::task<int> {
    auto call = p.spot().outbound().request_to_spot("x", ask{"inner"});
    call.timeout(2s);
    const auto got = co_await zlink::as_result(call.submit<answer>());
    co_return failure_of(got) == error_kind::deadline_exceeded ? 5 : 0;
  };
  mesh net{2};
  net.start(serve(scene));
  for (const auto* id : {"x", "y"})
    prepare(net, id, "wide");
  const auto began = net.elapsed();
  CHECK(net.run(ask_spot(net.host(0), "x", "ask y")).value == 5);
  CHECK(net.elapsed() - began >= 2s);
  CHECK(net.elapsed() - began < 3s);
  net.run(ask_spot(net.host(1), "x", "probe"));
  net.run(ask_spot(net.host(1), "y", "probe"));
}

} // namespace yield_test
