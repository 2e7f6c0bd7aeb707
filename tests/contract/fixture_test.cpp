// The fixture itself: order, replay, time, and who takes part, under hosts that are real.
#include "tests/contract/fixture_spots.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>

#include "zlink/host/host_runtime.hpp"

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <stdexcept>

namespace fixture_test {

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

TEST_CASE("a run with faults replays too, wherever things lie in memory") {
  std::vector<std::unique_ptr<char[]>> litter; // moves the addresses of the next run
  std::uint64_t wanted = 0;
  for (std::size_t round = 0; round < 8; ++round) {
    evidence log;
    mesh net{{.hosts = 4, .seed = 3, .max_link_delay = 40ms, .max_store_delay = 3ms}};
    net.start(serve(log));
    for (int i = 0; i < 20; ++i)
      add_at(net.host(static_cast<std::size_t>(i) % 4), 1, 5s, "c" + std::to_string(i % 7))
        .then([](zlink::result<sum>) {});
    net.advance(30ms);
    net.partition({0, 1}, {2, 3});
    net.advance(3s);
    net.heal();
    net.kill(3);
    net.advance(20s);
    net.restart(3);
    net.advance(5s);
    net.finish();
    if (round == 0)
      wanted = net.trace_hash();
    CHECK(net.trace_hash() == wanted);
    for (std::size_t i = 0; i <= 40 * round; ++i)
      litter.push_back(std::make_unique<char[]>(40 + 24 * (i % 9)));
  }
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

TEST_CASE("a jump passes over the moments in between: what fell due meanwhile is late") {
  evidence log;
  mesh net{{.hosts = 1, .adjust = [](std::size_t, zlink::host_options& options) { options.lease_ttl = 1h; }}};
  net.start(serve(log));
  net.run(add_at(net.host(0), 1));
  const auto began = net.elapsed();
  net.jump(10min);
  CHECK(net.elapsed() == began + 10min);
  CHECK(log.ticks == 0);
  net.advance(0s);
  CHECK(log.ticks == 1); // one for the ten
}

TEST_CASE("calendars may be wrong, which changes nothing but what they show") {
  evidence log;
  mesh net{3};
  net.start(serve(log));
  net.run(add_at(net.host(0), 1));
  net.shift_wall(0, 48h);
  net.shift_wall(1, -48h);
  const auto shown_at = [&net](std::size_t host) { return net.host(host).runtime().time->wall_now(); };
  CHECK(shown_at(0) - shown_at(2) == 48h);
  CHECK(shown_at(1) - shown_at(2) == -48h);
  net.advance(2min);
  CHECK(net.run(add_at(net.host(1), 1)).value == 2);
  CHECK(log.incarnations == 1);
}

TEST_CASE("links and stores take the time that the test gives them") {
  for (const bool slow : {false, true}) {
    evidence log;
    const auto delay = slow ? 40ms : 0ms;
    mesh net{{.hosts = 2, .max_link_delay = delay, .max_store_delay = delay}};
    net.start(serve(log));
    auto began = net.elapsed();
    net.run(add_at(net.host(0), 1));
    CHECK((net.elapsed() > began) == slow);
    const auto other = 1 - net.owner_of("c");
    began = net.elapsed();
    net.run(add_at(net.host(other), 1)); // the row is read, then the links are used both ways
    CHECK((net.elapsed() > began) == slow);
    CHECK(net.elapsed() - began <= 8 * delay);
  }
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

} // namespace fixture_test
