// Cancellation, deadlines and late results (02 section 16).
#include "tests/contract/execution/stage.hpp"

#include "zlink/host/host_runtime.hpp"

namespace deadlines_test {

using namespace zlink::test;
using zlink::error_kind;
using zlink::testing::mesh;

std::uint64_t dropped(mesh& net, std::size_t host, zlink::detail::drop_reason why) {
  return net.host(host).runtime().domain.counters.dropped[static_cast<std::size_t>(why)];
}

TEST_CASE("X-144 cancelling undoes no result, recalls no accepted message, aborts no handler") {
  stage scene;
  scene.acts["hold"] = hold_at("d");
  mesh net{1};
  net.start(serve(scene));
  prepare(net, "x", "wide");
  std::stop_source stop;
  auto call = net.host(0).spots().request_to_spot("x", ask{"quick"});
  auto finished = call.submit<answer>(stop.get_token());
  net.run_until_idle();
  auto send = net.host(0).spots().send_to_spot("x", tell{"accepted"});
  auto accepted = send.submit(stop.get_token());
  auto long_call = net.host(0).spots().request_to_spot("x", ask{"hold"});
  auto running = long_call.submit<answer>(stop.get_token());
  auto start = ask_spot(net.host(0), "y", "unrelated");
  net.run(std::move(start));
  net.run_until_idle();
  REQUIRE(scene.knocked("d"));
  stop.request_stop();
  CHECK(net.run(zlink::as_result(std::move(finished))).has_value());
  CHECK(net.run(zlink::as_result(std::move(accepted))).has_value());
  CHECK(net.run(zlink::as_result(std::move(running))).is_cancelled());
  scene.open("d");
  net.run_until_idle();
  CHECK(scene.count("accepted") == 1);
  CHECK(scene.has("hold ends"));
}

TEST_CASE("X-145 X-146 a cancelled call ends with operation_cancelled; mistakes come first, nothing is admitted") {
  stage scene;
  mesh net{1};
  net.start(serve(scene));
  prepare(net, "x", "wide");
  std::stop_source stop;
  stop.request_stop();
  const auto cancelled = stop.get_token();
  auto send = net.host(0).spots().send_to_spot("x", tell{"sent"});
  CHECK_THROWS_AS(net.run(send.submit(cancelled)), zlink::operation_cancelled);
  auto request = net.host(0).spots().request_to_spot("x", ask{"asked"});
  CHECK_THROWS_AS(net.run(request.submit<answer>(cancelled)), zlink::operation_cancelled);
  auto to_node = net.host(0).nodes().request_to_node("m", net.host(0).mesh("m").rid(), ask{"asked"});
  CHECK_THROWS_AS(net.run(to_node.submit<answer>(cancelled)), zlink::operation_cancelled);
  auto create = net.host(0).spots().get_or_create("r", "room");
  CHECK_THROWS_AS(net.run(create.submit(cancelled)), zlink::operation_cancelled);
  static_assert(!std::is_base_of_v<zlink::operation_failed, zlink::operation_cancelled>);
  net.run_until_idle();
  CHECK_FALSE(scene.has("sent"));
  CHECK_FALSE(scene.has("asked"));
  CHECK_FALSE(net.run(net.host(0).spots().find("r")).has_value());
  // Used twice beats cancelled; so does a bad option.
  auto used = net.host(0).spots().request_to_spot("x", ask{"used"});
  net.run(used.submit<answer>());
  CHECK(failure_of(net.run(zlink::as_result(used.submit<answer>(cancelled)))) == error_kind::invalid_operation);
  auto bad = net.host(0).spots().request_to_spot("x", ask{"bad"});
  bad.in_mesh("m");
  CHECK(failure_of(net.run(zlink::as_result(bad.submit<answer>(cancelled)))) == error_kind::invalid_operation);
  CHECK(scene.count("used") == 1);
}

TEST_CASE("X-147 among room, cancellation, deadline and the end of the Spot one wins, and each call ends once") {
  int admitted = 0;
  int cancelled = 0;
  int late = 0;
  int ended = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    stage scene;
    scene.acts["hold"] = hold_at("d");
    scene.acts["fill"] = [&scene](player&) -> zlink::task<int> {
      scene.note("one more");
      co_return 0;
    };
    zlink::testing::mesh_options options;
    options.seed = seed;
    options.adjust = [](std::size_t, zlink::host_options& o) { o.application_lane_records = 1; };
    mesh net{options};
    net.start(serve(scene));
    prepare(net, "x", "wide");
    (void)tell_spot(net.host(0), "x", "hold");
    net.run_until_idle();
    std::stop_source stop;
    std::vector<int> ends(100, 0);
    int admitted_here = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      auto send = net.host(0).spots().send_to_spot("x", tell{"fill"});
      send.submit(i % 2 == 0 ? stop.get_token() : std::stop_token{}).then([&, i](zlink::result<void> outcome) {
        ++ends[i];
        if (outcome.has_value())
          ++admitted_here;
        else if (outcome.is_cancelled())
          ++cancelled;
        else
          ++late;
      });
    }
    net.advance(999ms);
    // Everything at the same instant: the seed decides what comes first.
    scene.open("d");
    stop.request_stop();
    net.advance(seed % 2 == 0 ? 1ms : 0ms);
    net.advance(2s);
    for (const int n : ends)
      ended += n == 1;
    CHECK(scene.count("one more") == admitted_here);
    admitted += admitted_here;
    net.finish(); // finds what leaked
  }
  CHECK(ended == 10'000);
  CHECK(admitted + cancelled + late == 10'000);
  CHECK(admitted > 0);
  CHECK(cancelled > 0);
}

TEST_CASE("X-148 X-150 one deadline covers finding, waking, handling and answering") {
  stage scene;
  scene.acts["hold"] = hold_at("d");
  mesh net{1};
  net.start(serve(scene));
  auto began = net.elapsed();
  // The store stands still: resolving takes all the time there is.
  net.faults(0).set_rule([](const zlink::testing::store_call& call) {
    return call.what == zlink::testing::store_operation::write ? zlink::testing::store_fault::none
                                                               : zlink::testing::store_fault::hold_call;
  });
  auto unresolved = net.run(zlink::as_result(ask_spot(net.host(0), "x", "asked", "wide", 100ms)));
  CHECK(failure_of(unresolved) == error_kind::deadline_exceeded);
  CHECK(net.elapsed() - began >= 100ms);
  CHECK(net.elapsed() - began < 110ms);
  net.faults(0).set_rule(nullptr);
  net.faults(0).release_all();
  net.run_until_idle();
  // Resolving takes 60 of 100 ms; the handler, which never ends, gets the other 40.
  bool slow_store = true;
  net.faults(0).set_rule([&slow_store](const zlink::testing::store_call&) {
    return slow_store ? zlink::testing::store_fault::hold_call : zlink::testing::store_fault::none;
  });
  began = net.elapsed();
  auto slow = zlink::as_result(ask_spot(net.host(0), "y", "hold", "wide", 100ms));
  net.advance(60ms);
  slow_store = false;
  net.faults(0).release_all();
  CHECK(failure_of(net.run(std::move(slow))) == error_kind::deadline_exceeded);
  CHECK(net.elapsed() - began >= 100ms);
  CHECK(net.elapsed() - began < 110ms);
  scene.open("d");
  net.run_until_idle();
}

TEST_CASE("X-150 a call without a timeout has that of the node, and that is thirty seconds unless it is set") {
  for (const bool set : {false, true}) {
    stage scene;
    scene.acts["hold"] = hold_at("d");
    mesh net{1};
    net.start(serve(scene, [set](zlink::mesh_node& node) {
      if (set)
        node.request_timeout(2s);
    }));
    prepare(net, "x", "wide");
    const auto began = net.elapsed();
    auto call = net.host(0).spots().request_to_spot("x", ask{"hold"});
    CHECK(failure_of(net.run(zlink::as_result(call.submit<answer>()))) == error_kind::deadline_exceeded);
    const auto took = net.elapsed() - began;
    CHECK(took >= (set ? 2s : 30s));
    CHECK(took < (set ? 2100ms : 30100ms));
    scene.open("d");
    net.run_until_idle();
  }
}

// X-149 for the values that calls and setters take.
TEST_CASE("timeouts are rounded up to milliseconds and refused outside 1..INT_MAX") {
  stage scene;
  mesh net{1};
  net.start(serve(scene));
  prepare(net, "x", "wide");
  using nanoseconds = std::chrono::nanoseconds;
  for (const nanoseconds bad : {0ns, -1ns, nanoseconds{-5s}, nanoseconds{2147483648ms}}) {
    auto call = net.host(0).spots().request_to_spot("x", ask{"asked"});
    CHECK_THROWS_AS(call.timeout(bad), std::invalid_argument);
  }
  for (const nanoseconds good : {nanoseconds{200us}, nanoseconds{2147483647ms}}) {
    auto call = net.host(0).spots().request_to_spot("x", ask{"asked"});
    call.timeout(good);
    CHECK(net.run(call.submit<answer>()).value == 0);
  }
}

TEST_CASE("X-151 after a timeout by submit or yield the gate is free") {
  for (const std::string type : {"wide", "room"})
    for (const bool yields : {false, true}) {
      stage scene;
      scene.acts["ask"] = [yields](player& p) -> zlink::task<int> {
        auto call = knock(p, "d", 100ms);
        auto asked = yields ? call.yield<answer>() : call.submit<answer>();
        co_return failure_of(co_await zlink::as_result(std::move(asked))) == error_kind::deadline_exceeded;
      };
      mesh net{1};
      net.start(serve(scene));
      prepare(net, "x", type);
      CHECK(net.run(ask_spot(net.host(0), "x", "ask", "")).value == 1);
      net.run(ask_spot(net.host(0), "x", "probe", ""));
      scene.open("d");
      net.run_until_idle();
    }
}

TEST_CASE("X-152 a late reply is dropped: it completes no other call and is no packet") {
  stage scene;
  scene.acts["ask"] = [](player& p) -> zlink::task<int> {
    auto late = knock(p, "d", 100ms);
    [[maybe_unused]] const auto given_up = co_await zlink::as_result(late.submit<answer>());
    auto next = knock(p, "other", 10s);
    const auto got = co_await next.submit<answer>();
    co_return got.value;
  };
  mesh net{2};
  net.start(serve(scene));
  prepare(net, "x", "wide");
  const auto owner = net.owner_of("x");
  auto asked = ask_spot(net.host(owner), "x", "ask");
  net.advance(200ms);
  CHECK(scene.knocked("other"));
  scene.open("d"); // its caller gave up 100 ms ago and waits for something else now
  net.run_until_idle();
  CHECK(scene.has("through d"));
  CHECK_FALSE(asked.ready());
  CHECK(dropped(net, owner, zlink::detail::drop_reason::late_reply) == 1);
  CHECK(dropped(net, owner, zlink::detail::drop_reason::no_handler) == 0);
  scene.open("other");
  CHECK(net.run(std::move(asked)).value == 1);
}

TEST_CASE("X-153 a reply to a closed activation does not reach the next one") {
  stage scene;
  scene.acts["ask"] = [&scene](player& p) -> zlink::task<int> {
    p.spot().outbound().request_to_spot("d", ask{"knock"}).instance_spot("door").submit<answer>().then(
      [&scene](zlink::result<answer> outcome) { scene.note(outcome.has_value() ? "answered" : "failed"); });
    co_await p.close();
    co_return 0;
  };
  scene.acts["ask again"] = hold_at("other");
  mesh net{1};
  net.start(serve(scene));
  net.run(ask_spot(net.host(0), "x", "ask"));
  net.advance(40s); // past the closing deadline: the pending request is failed
  CHECK(scene.count("failed") == 1);
  auto again = ask_spot(net.host(0), "x", "ask again");
  net.run_until_idle();
  CHECK(scene.made == 3); // with the Entry Spot
  scene.open("d");
  net.run_until_idle();
  CHECK_FALSE(again.ready());
  CHECK_FALSE(scene.has("answered"));
  scene.open("other");
  CHECK(net.run(std::move(again)).value == 1);
}

TEST_CASE("X-154 completions run in a step of their own, and one that throws stops no other") {
  stage scene;
  mesh net{1};
  net.start(serve(scene));
  prepare(net, "x", "wide");
  int ran = 0;
  bool inside = false;
  for (int i = 0; i < 3; ++i)
    ask_spot(net.host(0), "x", "asked").then([&](zlink::result<answer>) {
      CHECK_FALSE(inside);
      inside = true;
      ++ran;
      // Completing a call from inside a callback, whose own callback must not run on this stack.
      std::stop_source stop;
      auto call = net.host(0).spots().request_to_spot("x", ask{"inner"});
      call.submit<answer>(stop.get_token()).then([&](zlink::result<answer>) {
        CHECK_FALSE(inside);
        ++ran;
      });
      stop.request_stop();
      inside = false;
      throw std::runtime_error{"callback"};
    });
  CHECK(ran == 0);
  net.run_until_idle();
  CHECK(ran == 6);
}

} // namespace deadlines_test
