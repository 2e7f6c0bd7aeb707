// How a user tests own Spots: three hosts on one thread, a clock and a network the test owns, a seed that replays a run.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <zlink/testing/mesh.hpp>
#include <zlink/zlink.hpp>

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <utility>

using namespace std::chrono_literals;

struct hit { int by = 1; };
struct count { int value = 0; };
ZLINK_PACKET(hit, "counter.hit", by)
ZLINK_PACKET(count, "counter.count", value)

class counter final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;

  void configure() override { context().handlers().add_packet<&counter::on_hit>(); }
  zlink::task<void> on_initialize() override { co_await context().add_timer<&counter::on_decay>("decay", 60s); }

private:
  friend class counter_adapter;

  count on_hit(const hit& m, const zlink::message_context&) {
    now_.value += m.by;
    return now_;
  }
  void on_decay(const zlink::timer_tick&) { now_.value /= 2; }

  count now_;
};

class counter_adapter final : public zlink::spot_adapter<counter> {
public:
  zlink::task<zlink::bytes> capture(counter& from, std::stop_token) const override {
    co_return zlink::encode(from.now_);
  }
  zlink::task<void> restore(counter& into, zlink::byte_view state, std::stop_token) const override {
    into.now_ = zlink::decode<count>(state);
    co_return;
  }
};

// The same registration as in production: a host is a host.
void serve_counters(zlink::host& host) {
  host.add_mesh("test").object_server().add_instance_spot_factory<counter>(
    "counter", [](auto& factory) { factory.preserve_state_with(counter_adapter{}); });
}

zlink::task<count> hit_at(zlink::host& host, int by) {
  return host.spots().request_to_spot("c", hit{by}).instance_spot("counter").timeout(5s).submit<count>();
}

TEST_CASE("a counter halves every minute") {
  zlink::testing::mesh net{3};
  net.start(serve_counters);

  net.run(hit_at(net.host(0), 8)); // runs everybody until this task has ended
  net.advance(60s);                // a minute passes at once
  CHECK(net.run(hit_at(net.host(1), 0)).value == 4);
}

TEST_CASE("callers beyond a cut get an answer, and the counter is there when it heals") {
  zlink::testing::mesh net{{.hosts = 3, .seed = 20}};
  INFO("seed ", net.seed()); // printed when a check fails; ZLINK_TEST_SEED=… replays it
  net.start(serve_counters);

  net.run(hit_at(net.host(0), 1));
  auto owner = net.owner_of("c");
  auto stranger = (owner + 1) % 3;

  net.partition({owner}, {stranger, (owner + 2) % 3}); // all links between the groups are lost until heal()
  auto lost = net.run(zlink::as_result(hit_at(net.host(stranger), 1)));
  REQUIRE_FALSE(lost.has_value());
  CHECK(lost.error().kind() == zlink::error_kind::unavailable);

  net.heal();
  net.run(net.host(stranger).mesh("test").until_peers_ready(2));
  CHECK(net.run(hit_at(net.host(stranger), 0)).value == 1); // the lost one ran nowhere
}

TEST_CASE("any order of things gives the same sum") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) { // other seeds, other interleavings
    zlink::testing::mesh net{{.hosts = 3, .seed = seed, .max_link_delay = 40ms}};
    INFO("seed ", net.seed());
    net.start(serve_counters);
    net.run(hit_at(net.host(0), 0)); // alive first: of competing first messages only one is sure to run

    for (int i = 0; i < 9; ++i)
      net.host(i % 3).spots().send_to_spot("c", hit{1}).instance_spot("counter").submit();
    net.run_until_idle(); // nothing left to do but wait for timers
    CHECK(net.run(hit_at(net.host(0), 0)).value == 9);
  }
}
