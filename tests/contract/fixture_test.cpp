// The fixture itself: what it promises to tests, under hosts that are real.
#include "tests/sim/checkers.hpp"

#include <doctest/doctest.h>
#include <zlink/testing/mesh.hpp>
#include <zlink/zlink.hpp>

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fixture_test {

using namespace std::chrono_literals;
using zlink::testing::mesh;
using zlink::testing::mesh_options;
using zlink::testing::store_fault;
using zlink::testing::store_operation;

struct add {
  int by = 1;
  std::string from = {};
  std::uint64_t number = 0;
};
struct sum {
  int value = 0;
};
struct compute {
  int of = 0;
};
ZLINK_PACKET(add, "fixture.add", by, from, number)
ZLINK_PACKET(sum, "fixture.sum", value)
ZLINK_PACKET(compute, "fixture.compute", of)

/// What handlers leave behind for the test. Outlives the mesh.
struct evidence {
  std::vector<std::string> runs;
  zlink::test::exclusive_gates gates;
  zlink::test::sender_order order;
  zlink::test::single_owner owner;
  int incarnations = 0;
  int alive = 0;
  int ticks = 0;

  bool clean() const { return gates.broken().empty() && order.broken().empty() && owner.broken().empty(); }
};

class adder final : public zlink::instance_spot {
public:
  adder(zlink::instance_spot_context context, evidence& log)
    : instance_spot(std::move(context)), log_(log), name_("incarnation " + std::to_string(++log.incarnations)) {
    ++log_.alive;
  }
  ~adder() override { --log_.alive; }

  void configure() override { context().handlers().add_packet<&adder::on_add>().add_packet<&adder::on_compute>(); }
  zlink::task<void> on_initialize() override { co_await context().add_timer<&adder::on_tick>("tick", 60s); }

private:
  sum on_add(const add& m, const zlink::message_context&) {
    const auto inside = log_.gates.enter(context().spot_id() + " of " + name_);
    log_.owner.ran(context().spot_id(), name_);
    if (!m.from.empty()) {
      log_.order.ran(m.from, context().spot_id(), m.number);
      log_.runs.push_back(m.from + " " + std::to_string(m.number));
    }
    value_ += m.by;
    return sum{value_};
  }
  zlink::task<sum> on_compute(const compute& m, const zlink::message_context&) {
    const auto inside = log_.gates.enter(context().spot_id() + " of " + name_);
    auto work = context().run_cpu_worker([of = m.of](std::stop_token) { return of * of; });
    const int square = co_await work.submit();
    co_return sum{square};
  }
  void on_tick(const zlink::timer_tick&) { ++log_.ticks; }

  evidence& log_;
  std::string name_;
  int value_ = 0;
};

auto serve(evidence& log) {
  return [&log](zlink::host& host) {
    host.add_mesh("m").object_server().add_instance_spot_factory<adder>("adder", [&log](auto& factory) {
      factory.disable_relocation().construct_with(
        [&log](zlink::instance_spot_context context) { return std::make_unique<adder>(std::move(context), log); });
    });
  };
}

zlink::task<sum> add_at(zlink::host& host, int by, std::chrono::seconds limit = 5s) {
  return host.spots().request_to_spot("c", add{by}).instance_spot("adder").timeout(limit).submit<sum>();
}

zlink::error_kind failure_of(const zlink::result<sum>& outcome) {
  REQUIRE_FALSE(outcome.has_value());
  return outcome.error().kind();
}

/// How a busy minute goes under a seed: the decisions of the fixture, and the order in which messages ran.
struct course {
  std::uint64_t trace = 0;
  std::vector<std::string> runs;
  bool operator==(const course&) const = default;
};

course course_of(std::uint64_t seed) {
  evidence log;
  course seen;
  {
    mesh net{{.hosts = 3, .seed = seed, .max_link_delay = 40ms, .max_store_delay = 5ms}};
    net.start(serve(log));
    net.run(add_at(net.host(0), 0));
    for (std::uint64_t number = 1; number <= 8; ++number)
      for (std::size_t host = 0; host < 3; ++host)
        net.host(host).spots().send_to_spot("c", add{1, "host " + std::to_string(host), number}).submit();
    net.run_until_idle();
    CHECK(net.run(add_at(net.host(2), 0)).value == 24);
    net.finish();
    seen.trace = net.trace_hash();
  }
  CHECK(log.clean());
  CHECK(log.order.fed() == 24);
  seen.runs = std::move(log.runs);
  return seen;
}

class seed_variable {
public:
  explicit seed_variable(const char* value) { ::setenv("ZLINK_TEST_SEED", value, 1); }
  ~seed_variable() { ::unsetenv("ZLINK_TEST_SEED"); }
  seed_variable(const seed_variable&) = delete;
  seed_variable& operator=(const seed_variable&) = delete;
};

std::size_t threads_of_this_process() {
  return static_cast<std::size_t>(
    std::distance(std::filesystem::directory_iterator{"/proc/self/task"}, std::filesystem::directory_iterator{}));
}

// -- order and replay -------------------------------------------------------------------------------------------------

TEST_CASE("a seed replays a run step by step, another seed gives another order") {
  const auto first = course_of(42);
  CHECK(first == course_of(42));
  const auto other = course_of(43);
  CHECK(other.trace != first.trace);
  CHECK(other.runs != first.runs);
}

TEST_CASE("ZLINK_TEST_SEED replays a run whatever the test asked for") {
  const auto wanted = course_of(42);
  const seed_variable replay{"42"};
  CHECK(mesh{{.hosts = 1, .seed = 7}}.seed() == 42);
  CHECK(course_of(7) == wanted);
}

TEST_CASE("every host has random numbers of its own") {
  evidence log;
  mesh net{3};
  net.start(serve(log));
  CHECK(net.host(0).mesh("m").rid() != net.host(1).mesh("m").rid());
  mesh again{3};
  again.start(serve(log));
  CHECK(net.host(0).mesh("m").rid() == again.host(0).mesh("m").rid());
}

// -- time -------------------------------------------------------------------------------------------------------------

TEST_CASE("time passes when asked to and when nothing else can happen, and everything runs on one thread") {
  evidence log;
  const auto threads = threads_of_this_process();
  mesh net{3};
  net.start(serve(log));
  net.run(add_at(net.host(0), 1));
  const auto began = net.elapsed();
  net.advance(59s);
  CHECK(net.elapsed() == began + 59s);
  CHECK(log.ticks == 0);
  net.advance(1s);
  CHECK(log.ticks == 1);
  net.advance(24h);
  CHECK(log.ticks == 1 + 24 * 60);
  CHECK(threads_of_this_process() == threads);
}

TEST_CASE("an awaited timeout comes at its virtual moment") {
  evidence log;
  mesh net{2};
  net.start(serve(log));
  net.run(add_at(net.host(0), 1));
  const auto owner = net.owner_of("c");
  net.freeze(owner);
  const auto began = net.elapsed();
  CHECK(failure_of(net.run(zlink::as_result(add_at(net.host(1 - owner), 1, 3s))))
        == zlink::error_kind::deadline_exceeded);
  CHECK(net.elapsed() - began >= 3s);
  CHECK(net.elapsed() - began < 3s + 100ms);
}

TEST_CASE("a jump makes everything due at once, in one late tick") {
  evidence log;
  mesh net{1};
  net.start(serve(log));
  net.run(add_at(net.host(0), 1));
  net.jump(1h);
  CHECK(log.ticks == 0);
  net.advance(0s);
  CHECK(log.ticks <= 1); // fenced meanwhile, or one tick for all that were missed
}

TEST_CASE("calendars may be wrong, which changes nothing") {
  evidence log;
  mesh net{3};
  net.start(serve(log));
  net.run(add_at(net.host(0), 1));
  net.shift_wall(0, 48h);
  net.shift_wall(1, -48h);
  net.advance(2min);
  CHECK(net.run(add_at(net.host(1), 1)).value == 2);
  CHECK(log.incarnations == 1);
}

// -- what takes part --------------------------------------------------------------------------------------------------

TEST_CASE("worker bodies are part of the run") {
  evidence log;
  mesh net{2};
  net.start(serve(log));
  auto ask = net.host(1).spots().request_to_spot("c", compute{12}).instance_spot("adder");
  CHECK(net.run(ask.submit<sum>()).value == 144);
}

TEST_CASE("CAF actors and their delayed messages follow the same clock") {
  evidence log;
  mesh net{1};
  net.start(serve(log));
  int heard = 0;
  auto listener = net.system().spawn([&heard](caf::event_based_actor* self) -> caf::behavior {
    self->delayed_send(self, 10s, 1);
    return {[&heard, self](int by) {
      heard += by;
      self->quit();
    }};
  });
  net.advance(9s);
  CHECK(heard == 0);
  net.advance(1s);
  CHECK(heard == 1);
}

TEST_CASE("run returns what the task returns and throws what it throws") {
  mesh net{1};
  net.start([](zlink::host& host) { host.add_mesh("m").object_client(); });
  struct own_failure {};
  const auto fails = []() -> zlink::task<int> {
    throw own_failure{};
    co_return 1;
  };
  CHECK_THROWS_AS(net.run(fails()), own_failure);
  CHECK_THROWS_AS(net.run(net.host(0).spots().request_to_spot("nobody", add{}).submit<sum>()), zlink::operation_failed);
  std::stop_source stop;
  auto cancelled = net.host(0).mesh("m").until_peers_ready(1, stop.get_token());
  stop.request_stop();
  CHECK_THROWS_AS(net.run(std::move(cancelled)), zlink::operation_cancelled);
}

TEST_CASE("what cannot end is reported with the seed and what waits") {
  mesh net{{.hosts = 2, .seed = 77, .patience = 30s}};
  net.start([](zlink::host& host) { host.add_mesh("m").object_client(); });
  net.freeze(1);
  const auto began = net.elapsed();
  std::string text;
  try {
    net.run(net.host(0).mesh("m").until_peers_ready(5));
  } catch (const zlink::testing::stalled& what) {
    text = what.what();
  }
  CHECK(text.find("seed 77") != std::string::npos);
  CHECK(text.find("host-1 is frozen") != std::string::npos);
  CHECK(net.elapsed() - began <= 30s);
}

TEST_CASE("mistakes in a registration come out of start as they do in production") {
  mesh net{2};
  CHECK_THROWS_AS(net.start([](zlink::host& host) {
    host.add_mesh("m").object_server().add_instance_spot_factory<adder>("adder", [](auto&) {});
  }),
                  zlink::configuration_error);
}

TEST_CASE("a message that is never released is noticed at the end") {
  evidence log;
  mesh net{1};
  net.start(serve(log));
  auto kept = net.host(0).spots().send_to_spot("c", add{1});
  CHECK_THROWS_WITH_AS(net.finish(), doctest::Contains("1 messages were never released"), std::logic_error);
}

TEST_CASE("the end of the mesh ends every spot") {
  evidence log;
  {
    mesh net{3};
    net.start(serve(log));
    net.run(add_at(net.host(0), 1));
    CHECK(log.alive == 1);
    net.finish();
    CHECK(log.alive == 0);
  }
}

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

TEST_CASE("links that are lost once come back by themselves") {
  evidence log;
  mesh net{2};
  net.start(serve(log));
  net.run(add_at(net.host(0), 1));
  net.lose_links(0, 1);
  net.run_until_idle(); // both have noticed
  net.run(net.host(0).mesh("m").until_peers_ready(1));
  net.run(net.host(1).mesh("m").until_peers_ready(1));
  CHECK(net.run(add_at(net.host(0), 1)).value == 2);
  CHECK(net.run(add_at(net.host(1), 1)).value == 3);
}

// -- machines ---------------------------------------------------------------------------------------------------------

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
