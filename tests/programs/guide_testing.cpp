// docs/guide/testing.md: own Spots under doctest; hosts on one thread, with a clock and a network that the test owns.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <zlink/testing/mesh.hpp>
#include <zlink/zlink.hpp>

#include <chrono>

using namespace std::chrono_literals;

struct light { bool on = false; };
struct state { bool on = false; };

ZLINK_PACKET(light, "stairs.light", on)
ZLINK_PACKET(state, "stairs.state", on)

// The light in a staircase: it goes out by itself after a minute.
class staircase final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;

  void configure() override { context().handlers().add_packet<&staircase::on_light>(); }

private:
  zlink::task<state> on_light(const light& m, const zlink::message_context&) {
    if (m.on) {
      on_ = true;
      timer_ = co_await context().add_timer<&staircase::on_minute>("minute", 60s);
    }
    co_return state{on_};
  }
  void on_minute(const zlink::timer_tick&) {
    on_ = false;
    timer_.cancel();
  }

  bool on_ = false;
  zlink::timer timer_;
};

// The same registration as in production.
void serve(zlink::host& host) {
  host.add_mesh("house").object_server().add_instance_spot_factory<staircase>(
    "staircase", [](auto& factory) { factory.disable_relocation(); });
}

zlink::task<state> press(zlink::host& host, bool on) {
  return host.spots().request_to_spot("stairs", light{on}).instance_spot("staircase").submit<state>();
}

TEST_CASE("the light goes out after a minute") {
  zlink::testing::mesh net{3};
  net.start(serve);

  CHECK(net.run(press(net.host(0), true)).on); // runs everybody until this task has ended
  net.advance(59s);                            // virtual: no waiting
  CHECK(net.run(press(net.host(1), false)).on);
  net.advance(2s);
  CHECK_FALSE(net.run(press(net.host(2), false)).on);
}

TEST_CASE("a caller beyond a cut is told, and the light is on when the cut has healed") {
  zlink::testing::mesh net{{.hosts = 3, .seed = 7}};
  INFO("seed ", net.seed()); // ZLINK_TEST_SEED=... replays a run
  net.start(serve);
  net.run(press(net.host(0), true));

  const auto owner = net.owner_of("stairs");
  const auto stranger = (owner + 1) % 3;
  net.partition({owner}, {stranger, (owner + 2) % 3});
  auto lost = net.run(zlink::as_result(press(net.host(stranger), false)));
  REQUIRE_FALSE(lost.has_value());
  CHECK(lost.error().kind() == zlink::error_kind::unavailable);

  net.heal();
  net.run(net.host(stranger).mesh("house").until_peers_ready(2));
  CHECK(net.run(press(net.host(stranger), false)).on);
}
