// What only real threads can show: which are held by suspended and by blocking handlers, and how many there are.
#include <doctest/doctest.h>
#include <zlink/zlink.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace threads_test {

using namespace std::chrono_literals;

struct work {
  int number = 0;
};
struct done {
  int value = 0;
};
ZLINK_PACKET(work, "threads.work", number)
ZLINK_PACKET(done, "threads.done", value)

constexpr auto patience = 60s;

/// A number that threads wait for, never longer than the patience.
class milestone {
public:
  void add(int by = 1) {
    std::lock_guard guard{mutex_};
    reached_ += by;
    changed_.notify_all();
  }
  bool wait_for(int wanted) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, patience, [&] { return reached_ >= wanted; });
  }
  int value() {
    std::lock_guard guard{mutex_};
    return reached_;
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int reached_ = 0;
};

using handler = std::function<zlink::task<int>(const zlink::instance_spot_context&, int)>;

class worker_spot final : public zlink::instance_spot {
public:
  worker_spot(zlink::instance_spot_context context, const handler& act) : instance_spot(std::move(context)), act_(act) {}
  void configure() override { context().handlers().add_packet<&worker_spot::on_work>(); }

private:
  zlink::task<done> on_work(const work& m, const zlink::message_context&) {
    const int value = co_await act_(context(), m.number);
    co_return done{value};
  }
  const handler& act_;
};

class ticker final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;
  void configure() override { context().handlers().add_packet<&ticker::on_work>(); }
  zlink::task<void> on_initialize() override {
    co_await context().add_timer<&ticker::on_tick>("one", 10s);
    co_await context().add_timer<&ticker::on_tick>("two", 20s);
  }

private:
  done on_work(const work&, const zlink::message_context&) { return {}; }
  void on_tick(const zlink::timer_tick&) {}
};

/// A PerActor Spot whose two timers meet inside one of its functions.
class shell final : public zlink::spot<> {
public:
  shell(zlink::spot_context context, milestone& met) : spot(std::move(context)), met_(met) {}
  zlink::task<void> on_initialize() override {
    co_await context().add_timer<&shell::on_tick>("one", 1ms);
    co_await context().add_timer<&shell::on_tick>("two", 1ms);
  }

private:
  void on_tick(const zlink::timer_tick& tick) {
    if (tick.delivery_index != 1)
      return;
    met_.add();
    if (met_.wait_for(2)) // each waits for the other, and blocks its thread
      met_.add(10);
  }
  milestone& met_;
};

struct two_threads : caf::actor_system_config {
  two_threads() {
    set("scheduler.max-threads", 2);
    zlink::configure(*this);
  }
};

/// A host on two scheduler threads, with two CPU worker threads, whose Spots do what the test says.
struct scene {
  handler act;
  two_threads config;
  caf::actor_system system{config};
  zlink::host host{system, options()};

  static zlink::host_options options() {
    zlink::host_options chosen;
    chosen.workers.min_threads = 2;
    chosen.workers.max_threads = 2;
    return chosen;
  }
  explicit scene(handler chosen = nullptr) : act(std::move(chosen)) {
    host.add_mesh("m")
      .object_server()
      .add_instance_spot_factory<worker_spot>("worker",
                                              [this](auto& factory) {
                                                factory.disable_relocation().construct_with(
                                                  [this](zlink::instance_spot_context context) {
                                                    return std::make_unique<worker_spot>(std::move(context), act);
                                                  });
                                              })
      .add_instance_spot_factory<ticker>("ticker", [](auto& factory) { factory.disable_relocation(); });
    host.start();
  }
  zlink::task<done> ask(std::string id, int number, std::chrono::milliseconds limit = patience) {
    return host.spots().request_to_spot(std::move(id), work{number}).instance_spot("worker").timeout(limit).submit<done>();
  }
};

std::size_t threads_of_this_process() {
  return static_cast<std::size_t>(
    std::distance(std::filesystem::directory_iterator{"/proc/self/task"}, std::filesystem::directory_iterator{}));
}

TEST_CASE("X-21 a thousand suspended turns on two scheduler threads let another Spot answer") {
  milestone suspended;
  zlink::detail::counted_ptr<zlink::detail::operation<void>> gate_opens[1000];
  for (auto& one : gate_opens)
    one = zlink::detail::new_counted<zlink::detail::operation<void>>();
  scene s{[&](const zlink::instance_spot_context& spot, int number) -> zlink::task<int> {
    if (number < 1000) {
      auto io = spot.run_io_worker([&, number](std::stop_token) {
        suspended.add();
        return zlink::task<void>{gate_opens[number]};
      });
      co_await io.submit();
    }
    co_return number;
  }};
  std::vector<zlink::task<done>> asked;
  for (int i = 0; i < 1000; ++i)
    asked.push_back(s.ask("spot " + std::to_string(i), i));
  REQUIRE(suspended.wait_for(1000));
  CHECK(zlink::sync_wait(s.ask("another", 1000)).value == 1000);
  for (auto& one : gate_opens)
    one->set(zlink::result<void>{});
  for (auto& one : asked)
    zlink::sync_wait(std::move(one));
}

TEST_CASE("X-110 a timeout fires while handlers block all scheduler threads") {
  milestone blocked;
  milestone release;
  scene s{[&](const zlink::instance_spot_context&, int number) -> zlink::task<int> {
    if (number == 1) {
      blocked.add();
      release.wait_for(1);
    }
    co_return number;
  }};
  for (const auto* id : {"a", "b", "c"})
    zlink::sync_wait(s.ask(id, 0));
  auto first = s.ask("a", 1);
  auto second = s.ask("b", 1);
  REQUIRE(blocked.wait_for(2));
  const auto outcome = zlink::sync_wait(zlink::as_result(s.ask("c", 0, 50ms)));
  REQUIRE_FALSE(outcome.has_value());
  CHECK(outcome.error().kind() == zlink::error_kind::deadline_exceeded);
  CHECK(release.value() == 0);
  release.add();
  zlink::sync_wait(std::move(first));
  zlink::sync_wait(std::move(second));
}

TEST_CASE("X-111 ten thousand Spots with two timers each need no more threads") {
  scene s;
  const auto wake = [&s](int number) {
    return s.host.spots()
      .request_to_spot("ticker " + std::to_string(number), work{})
      .instance_spot("ticker")
      .timeout(5min)
      .submit<done>();
  };
  for (int i = 0; i < 10; ++i)
    zlink::sync_wait(wake(i));
  const auto before = threads_of_this_process();
  std::vector<zlink::task<done>> asked;
  for (int i = 10; i < 10'000; ++i)
    asked.push_back(wake(i));
  for (auto& one : asked)
    zlink::sync_wait(std::move(one));
  CHECK(s.host.status().spots == 10'000);
  CHECK(threads_of_this_process() == before);
}

// That those who wait begin in order is proved at the pool itself.
TEST_CASE("X-94 X-117 a CPU call beyond the pool begins when another ends, or its call ends by its own deadline") {
  milestone begun;
  milestone release;
  scene s{[&](const zlink::instance_spot_context& spot, int number) -> zlink::task<int> {
    auto cpu = spot.run_cpu_worker([&, number](std::stop_token) {
      begun.add();
      if (number < 2)
        release.wait_for(number + 1);
      return number;
    });
    if (number == 2)
      cpu.timeout(100ms);
    const auto outcome = co_await zlink::as_result(cpu.submit());
    co_return outcome.has_value() ? *outcome : 100 + static_cast<int>(outcome.error().kind());
  }};
  std::vector<zlink::task<done>> asked;
  for (int i = 0; i < 2; ++i)
    asked.push_back(s.ask("spot " + std::to_string(i), i));
  REQUIRE(begun.wait_for(2));
  const auto late = zlink::sync_wait(s.ask("spot 2", 2));
  CHECK(late.value == 100 + static_cast<int>(zlink::error_kind::deadline_exceeded));
  CHECK(begun.value() == 2);
  asked.push_back(s.ask("spot 3", 3));
  release.add();
  zlink::sync_wait(std::move(asked.back()));
  asked.pop_back();
  CHECK(release.value() == 1); // the other body is still blocked
  release.add();
  for (auto& one : asked)
    zlink::sync_wait(std::move(one));
  CHECK(begun.value() == 3); // the body of the ended call never began
}

TEST_CASE("X-118 more I/O calls than CPU threads end while the CPU pool is blocked") {
  milestone begun;
  milestone release;
  scene s{[&](const zlink::instance_spot_context& spot, int number) -> zlink::task<int> {
    if (number < 2) {
      auto cpu = spot.run_cpu_worker([&](std::stop_token) {
        begun.add();
        release.wait_for(1);
      });
      co_await cpu.submit();
      co_return number;
    }
    auto io = spot.run_io_worker([&](std::stop_token) -> zlink::task<int> {
      auto echo = spot.host().spots().request_to_spot("echo", work{100});
      echo.instance_spot("worker");
      if (number >= 100)
        co_return number;
      const auto got = co_await echo.submit<done>();
      co_return got.value;
    });
    co_return co_await io.submit();
  }};
  auto first = s.ask("a", 0);
  auto second = s.ask("b", 1);
  REQUIRE(begun.wait_for(2));
  std::vector<zlink::task<done>> asked;
  for (int i = 0; i < 8; ++i)
    asked.push_back(s.ask("io " + std::to_string(i), 2 + i));
  for (auto& one : asked)
    CHECK(zlink::sync_wait(std::move(one)).value == 100);
  CHECK(release.value() == 0);
  release.add();
  zlink::sync_wait(std::move(first));
  zlink::sync_wait(std::move(second));
}

TEST_CASE("X-15 the layer adds no lock to a PerActor Spot: two of its gates are in its function at once") {
  milestone met;
  two_threads config;
  caf::actor_system system{config};
  zlink::host host{system};
  host.add_mesh("m").object_server().add_spot_factory<shell>("shell", [&met](auto& factory) {
    factory.recreate_on_relocation().per_actor().construct_with(
      [&met](zlink::spot_context context) { return std::make_unique<shell>(std::move(context), met); });
  });
  host.start();
  zlink::sync_wait(host.spots().get_or_create("x", "shell").submit());
  CHECK(met.wait_for(22));
}

TEST_CASE("a handler that outlives its host goes on with a host that refuses, and harms nobody") {
  milestone blocked;
  milestone release;
  milestone ended;
  std::vector<zlink::error_kind> seen;
  {
    zlink::host_options options;
    options.shutdown_deadline = 100ms;
    handler act = [&](const zlink::instance_spot_context& spot, int number) -> zlink::task<int> {
      if (number != 1)
        co_return number;
      blocked.add();
      release.wait_for(1);
      auto outside = spot.host().spots().request_to_spot("other", work{0});
      outside.instance_spot("worker");
      const auto asked = co_await zlink::as_result(outside.submit<done>());
      auto inside = spot.outbound().send_to_spot("x", work{0});
      const auto sent = co_await zlink::as_result(inside.submit());
      auto cpu = spot.run_cpu_worker([](std::stop_token) {});
      const auto computed = co_await zlink::as_result(cpu.submit());
      for (const auto* failed : {asked.has_value() ? nullptr : &asked.error(), sent.has_value() ? nullptr : &sent.error(),
                                 computed.has_value() ? nullptr : &computed.error()})
        seen.push_back(failed == nullptr ? zlink::error_kind::not_found : failed->kind());
      ended.add();
      co_return number;
    };
    static handler lasting; // like the host's parts, it stays for the handler
    lasting = std::move(act);
    zlink::host host{options};
    host.add_mesh("m").object_server().add_instance_spot_factory<worker_spot>("worker", [](auto& factory) {
      factory.disable_relocation().construct_with(
        [](zlink::instance_spot_context context) { return std::make_unique<worker_spot>(std::move(context), lasting); });
    });
    host.start();
    host.spots().request_to_spot("x", work{1}).instance_spot("worker").submit<done>().then([](zlink::result<done>) {});
    REQUIRE(blocked.wait_for(1));
  } // within its bound, although the handler still runs
  CHECK(ended.value() == 0);
  release.add();
  REQUIRE(ended.wait_for(1));
  CHECK(seen == std::vector<zlink::error_kind>(3, zlink::error_kind::shutting_down));
}

} // namespace threads_test
