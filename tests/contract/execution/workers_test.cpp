// Work beside the turn (02 section 14).
#include "tests/contract/execution/stage.hpp"

#include "zlink/host/host_runtime.hpp"

namespace workers_test {

using namespace zlink::test;
using zlink::error_kind;
using zlink::testing::mesh;

/// An I/O body that waits for a door and counts itself.
auto io_body(stage& scene, std::string door) {
  return [&scene, door = std::move(door)](std::stop_token) -> zlink::task<int> {
    scene.note("io body");
    co_await scene.pass(door);
    co_return 2;
  };
}

TEST_CASE("X-115 CPU and I/O workers deliver typed results by both terminals, and start nothing without one") {
  stage scene;
  scene.open("io");
  scene.acts["all"] = [&scene](player& p) -> zlink::task<int> {
    {
      auto cpu = p.spot().run_cpu_worker([&scene](std::stop_token) { scene.note("unstarted"); });
      auto io = p.spot().run_io_worker([&scene](std::stop_token) {
        scene.note("unstarted");
        return zlink::task<void>::done();
      });
    }
    auto cpu = p.spot().run_cpu_worker([](std::stop_token) { return std::string{"by cpu"}; });
    const std::string submitted = co_await cpu.submit();
    auto cpu_again = p.spot().run_cpu_worker([](std::stop_token) { return std::string{"by cpu"}; });
    const std::string yielded = co_await cpu_again.yield();
    auto io = p.spot().run_io_worker(io_body(scene, "io"));
    const int io_submitted = co_await io.submit();
    auto io_again = p.spot().run_io_worker(io_body(scene, "io"));
    const int io_yielded = co_await io_again.yield();
    co_return submitted == "by cpu" && yielded == submitted ? io_submitted + io_yielded : 0;
  };
  mesh net{1};
  net.start(serve(scene));
  for (const auto& [id, type] : {std::pair{"w", "wide"}, {"r", "room"}}) {
    prepare(net, id, type);
    CHECK(net.run(ask_spot(net.host(0), id, "all", "")).value == 4);
  }
  CHECK(scene.count("io body") == 4);
  CHECK_FALSE(scene.has("unstarted"));
}

TEST_CASE("X-116 X-124 the terminal decides about the turn, and the continuation runs in one") {
  for (const bool cpu : {false, true})
    for (const bool yields : {false, true}) {
      CAPTURE(cpu);
      CAPTURE(yields);
      stage scene;
      int inside = 0;
      int most = 0;
      scene.acts["work"] = [&](player& p) -> zlink::task<int> {
        const auto use = [yields](auto call) { return yields ? call.yield() : call.submit(); };
        // A CPU body of the simulation is one job: what is to run before it has been accepted already.
        if (cpu)
          co_await use(p.spot().run_cpu_worker([&scene](std::stop_token) {
            scene.note("body");
            return 1;
          }));
        else
          co_await use(p.spot().run_io_worker(io_body(scene, "io")));
        most = std::max(most, ++inside);
        scene.note(zlink::detail::current_turn() != nullptr ? "continued in a turn" : "continued elsewhere");
        auto call = knock(p, "d");
        co_await call.submit<answer>();
        --inside;
        co_return 0;
      };
      mesh net{1};
      net.start(serve(scene));
      prepare(net, "x", "wide");
      (void)tell_spot(net.host(0), "x", "work");
      (void)tell_spot(net.host(0), "x", "probe");
      net.run_until_idle();
      if (!cpu)
        CHECK(scene.has("probe") == yields);
      scene.open("io");
      net.run_until_idle();
      CHECK(scene.has("continued in a turn"));
      CHECK(scene.has("probe") == yields);
      (void)tell_spot(net.host(0), "x", "behind");
      net.run_until_idle();
      CHECK_FALSE(scene.has("behind")); // the continuation holds the gate by its submit
      scene.open("d");
      net.run_until_idle();
      CHECK(scene.in_order({"continued in a turn", "work ends", "behind"}));
      CHECK(most == 1);
    }
}

TEST_CASE("X-120 how a worker call ends: late, thrown, at shutdown, and refused without a body") {
  stage scene;
  error_kind thrown{};
  error_kind io_thrown{};
  error_kind late{};
  error_kind at_shutdown{};
  error_kind refused{};
  scene.acts["throw"] = [&](player& p) -> zlink::task<int> {
    auto cpu = p.spot().run_cpu_worker([](std::stop_token) -> int { throw std::runtime_error{"body"}; });
    thrown = failure_of(co_await zlink::as_result(cpu.submit()));
    auto io = p.spot().run_io_worker([](std::stop_token) -> zlink::task<int> {
      throw std::runtime_error{"body"};
      co_return 0;
    });
    io_thrown = failure_of(co_await zlink::as_result(io.submit()));
    co_return 0;
  };
  scene.acts["late"] = [&](player& p) -> zlink::task<int> {
    auto io = p.spot().run_io_worker(io_body(scene, "late"));
    io.timeout(2s);
    late = failure_of(co_await zlink::as_result(io.submit()));
    co_return 0;
  };
  scene.acts["stay"] = [&](player& p) -> zlink::task<int> {
    auto io = p.spot().run_io_worker(io_body(scene, "stay"));
    io.timeout(10min);
    at_shutdown = failure_of(co_await zlink::as_result(io.submit()));
    co_return 0;
  };
  scene.acts["yield"] = [&](player& p) -> zlink::task<int> {
    auto cpu = p.spot().run_cpu_worker([&scene](std::stop_token) {
      scene.note("refused body");
      return 1;
    });
    refused = failure_of(co_await zlink::as_result(cpu.yield()));
    co_return 0;
  };
  mesh net{1};
  net.start(serve(scene));
  net.run(ask_spot(net.host(0), "x", "throw"));
  CHECK(thrown == error_kind::internal_failure);
  CHECK(io_thrown == error_kind::internal_failure);
  const auto began = net.elapsed();
  net.run(ask_spot(net.host(0), "x", "late"));
  CHECK(late == error_kind::deadline_exceeded);
  CHECK(net.elapsed() - began >= 2s);
  CHECK(net.elapsed() - began < 2100ms);
  scene.open("late");
  net.run_until_idle();
  prepare(net, "s", "split");
  net.run(ask_spot(net.host(0), "s", "yield", ""));
  CHECK(refused == error_kind::invalid_configuration);
  CHECK_FALSE(scene.has("refused body"));
  (void)tell_spot(net.host(0), "x", "stay");
  net.run_until_idle();
  net.run(net.host(0).shutdown());
  CHECK(at_shutdown == error_kind::shutting_down);
  scene.open("stay");
  net.run_until_idle();
}

TEST_CASE("X-121 X-122 the body is asked to stop once when its call ends first; its late end is no second result") {
  for (const bool by_caller : {false, true}) {
    CAPTURE(by_caller);
    stage scene;
    std::stop_source caller;
    int stops = 0;
    int results = 0;
    std::vector<std::unique_ptr<std::stop_callback<std::function<void()>>>> watches;
    scene.acts["work"] = [&](player& p) -> zlink::task<int> {
      auto io = p.spot().run_io_worker([&](std::stop_token stop) -> zlink::task<int> {
        watches.push_back(std::make_unique<std::stop_callback<std::function<void()>>>(stop, [&stops] { ++stops; }));
        co_await scene.pass("io");
        scene.note("body ends");
        co_return 2;
      });
      io.timeout(1s);
      const auto outcome = co_await zlink::as_result(io.submit(caller.get_token()));
      ++results;
      co_return outcome.is_cancelled() ? 7 : failure_of(outcome) == error_kind::deadline_exceeded ? 8 : 0;
    };
    mesh net{1};
    net.start(serve(scene));
    auto asked = ask_spot(net.host(0), "x", "work");
    net.run_until_idle();
    CHECK(stops == 0);
    if (by_caller)
      caller.request_stop();
    CHECK(net.run(std::move(asked)).value == (by_caller ? 7 : 8));
    CHECK(stops == 1);
    scene.open("io");
    net.advance(5s);
    CHECK(scene.has("body ends"));
    CHECK(stops == 1);
    CHECK(results == 1);
    net.run(ask_spot(net.host(0), "x", "probe"));
  }
}

TEST_CASE("X-120 whatever a body throws is internal_failure, operation_cancelled too") {
  stage scene;
  std::vector<error_kind> ends;
  scene.acts["work"] = [&ends](player& p) -> zlink::task<int> {
    auto cpu = p.spot().run_cpu_worker([](std::stop_token) -> int { throw zlink::operation_cancelled{}; });
    auto cpu_end = as_result(cpu.submit());
    ends.push_back(failure_of(co_await std::move(cpu_end)));
    auto io = p.spot().run_io_worker([](std::stop_token) -> zlink::task<int> { throw zlink::operation_cancelled{}; });
    auto io_end = as_result(io.submit());
    ends.push_back(failure_of(co_await std::move(io_end)));
    co_return 0;
  };
  mesh net{1};
  net.start(serve(scene));
  net.run(ask_spot(net.host(0), "x", "work"));
  CHECK(ends == std::vector<error_kind>(2, error_kind::internal_failure));
}

} // namespace workers_test
