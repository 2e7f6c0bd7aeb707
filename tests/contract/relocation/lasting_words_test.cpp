// Events and Spot-level timers around a move (06 sections 7 and 13).
#include "tests/contract/relocation/room_scene.hpp"

namespace relocation_test {
namespace {

struct bulletin {
  std::uint64_t number = 0;
};
ZLINK_PACKET(bulletin, "move.bulletin", number)

/// A room that reads the news, and may have a clock of its own.
class reading_room final : public place<zlink::spot<player>> {
public:
  using place::place;
  void configure() override {
    place::configure();
    context().handlers().add_subscribe<&reading_room::on_bulletin>("press", "news").add_packet<&reading_room::on_start>();
  }
  zlink::task<zlink::actor_join_response> on_actor_join(std::string, const zlink::message&) override { co_return zlink::accept(); }

private:
  zlink::task<void> on_bulletin(const bulletin& m, const zlink::message_context&) {
    on.happened("read", "a", std::to_string(m.number));
    co_await on.wait("reading", "a");
  }
  zlink::task<void> on_start(const start_clock& m, const zlink::message_context&) {
    auto adding = context().add_timer<&reading_room::on_tick>(m.name, std::chrono::milliseconds{m.period_ms});
    static_cast<void>(co_await std::move(adding));
  }
  void on_tick(const zlink::timer_tick& tick) { on.happened("tick", std::string{tick.name}, context().node_rid()); }
};

auto serve_readers(stage& on, bool per_actor = false) {
  return [&on, per_actor](zlink::host& host) {
    auto& node = host.add_mesh("m");
    node.add_channel_server("press");
    auto server = node.object_server();
    server.add_entry_spot<hall>([&on](zlink::entry_spot_context context) { return std::make_unique<hall>(std::move(context), on); });
    server.add_spot_factory<reading_room>("reading", [&on, per_actor](auto& factory) {
      factory.recreate_on_relocation().construct_with([&on](zlink::spot_context context) { return std::make_unique<reading_room>(std::move(context), on); });
      if (per_actor)
        factory.per_actor();
    });
    server.add_actor_factory<player>("player", [&on](auto& factory) {
      factory.recreate_on_relocation().construct_with([&on](zlink::actor_context context) { return std::make_unique<player>(std::move(context), on); });
    });
  };
}

void publish(mesh& net, std::size_t from, std::uint64_t number) {
  net.run(net.host(from).channels().publish("press", "news", bulletin{number}).submit());
  net.run_until_idle();
}

void events_around_a_move(bool at_commit) {
  stage on;
  mesh net{3};
  net.start(serve_readers(on));
  const auto from = host_of(net, net.run(net.host(0).spots().get_or_create("a", "reading").submit()).spot.node_rid);
  const auto to = (from + 1) % 3;
  publish(net, (from + 2) % 3, 1);
  bool ready = false;
  net.host(to).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == (at_commit ? move_step::committing : move_step::rebuilt)) {
      ready = true;
      net.faults(to).once(zlink::testing::store_operation::write, zlink::placement::spot_key("a"), zlink::testing::store_fault::hold_call);
    }
  };
  auto moving = start_move(net, "a", from, to);
  net.run_until([&] { return ready && net.faults(to).held() == 1; });
  publish(net, (from + 2) % 3, 2);
  publish(net, from, 3);
  publish(net, to, 4);
  net.faults(to).release_all();
  CHECK(net.run(std::move(moving)).left);
  net.run_until([&] { return lives(net, to, "a") && !lives(net, from, "a"); });
  net.run_until_idle();
  publish(net, (from + 2) % 3, 5);
  for (const auto* one : {"read a 1", "read a 2", "read a 3", "read a 4", "read a 5"})
    CHECK_MESSAGE(on.count(one) == 1, std::string{one} << ": " << on.count(one));
}

TEST_CASE("L-63 L-65 L-133 events for a Spot that moves: none that waits, or is held before the boundary, is lost, none comes twice") {
  events_around_a_move(false);
}

TEST_CASE("L-103 events that come between the cutover and the opening wait in the temporary queue") { events_around_a_move(true); }

TEST_CASE("L-103 L-148 a target that did not become the owner takes no events any more") {
  stage on;
  mesh net{3};
  net.start(serve_readers(on));
  const auto from = host_of(net, net.run(net.host(0).spots().get_or_create("a", "reading").submit()).spot.node_rid);
  const auto to = (from + 1) % 3;
  const auto taken_at = [&](std::size_t host) { return net.host(host).runtime().find_node("m")->subscribed.match("press", "news").size(); };
  net.host(to).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::committing) { // from the mark on they wait there, but the source settles it first
      CHECK(taken_at(to) == 1);
      net.cut_store(to);
    }
  };
  static_cast<void>(net.run(start_move(net, "a", from, to, 8s)));
  CHECK(taken_at(from) == 0);
  net.advance(30s);
  net.heal();
  net.advance(30s);
  CHECK(taken_at(to) == 0);
  publish(net, (from + 2) % 3, 1);
  CHECK(on.count("read a") == 0);
}

TEST_CASE("L-65 an event that waits when the seal comes goes along") {
  stage on;
  mesh net{2};
  net.start(serve_readers(on));
  const auto from = host_of(net, net.run(net.host(0).spots().get_or_create("a", "reading").submit()).spot.node_rid);
  barrier reading;
  on.hold("reading", reading);
  publish(net, 0, 1); // it is at that
  publish(net, 0, 2);
  publish(net, 1, 3);
  auto moving = start_move(net, "a", from, 1 - from);
  net.advance(10ms);
  reading.open();
  CHECK(net.run(std::move(moving)).left);
  net.run_until([&] { return lives(net, 1 - from, "a") && !lives(net, from, "a"); });
  net.run_until_idle();
  for (const auto* one : {"read a 1", "read a 2", "read a 3"})
    CHECK_MESSAGE(on.count(one) == 1, std::string{one} << ": " << on.count(one));
}

TEST_CASE("L-79 a Spot-level timer moves with a SpotWide room, and not with a PerActor one") {
  for (const bool per_actor : {false, true}) {
    CAPTURE(per_actor);
    stage on;
    mesh net{2};
    net.start(serve_readers(on, per_actor));
    const auto from = host_of(net, net.run(net.host(0).spots().get_or_create("a", "reading").submit()).spot.node_rid);
    net.run(net.host(0).spots().send_to_spot("a", start_clock{"clock", 100, false}).submit());
    net.advance(350ms);
    CHECK(on.count("tick clock " + rid_of(net, from)) == 3);
    CHECK(net.run(start_move(net, "a", from, 1 - from)).left);
    net.run_until([&] { return lives(net, 1 - from, "a") && !lives(net, from, "a"); });
    on.trace.clear();
    net.advance(1s);
    CHECK(on.count("tick clock " + rid_of(net, 1 - from)) == (per_actor ? 0 : 10));
    CHECK(on.count("tick clock " + rid_of(net, from)) == 0);
  }
}

/// What the clock of "a" said when a handler that had held the gate past two ticks ended, and some time later. `moves`: a move
/// that comes to nothing at its capture falls in between.
std::vector<ledger_view> ticks_around_a_handler(bool moves) {
  stage on;
  mesh net{2};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  net.run(net.host(0).spots().send_to_spot("a", start_clock{"clock", 100, false}).submit());
  net.advance(150ms);
  barrier handler;
  on.hold("handle", handler);
  auto running = count(net.host(0), "a", "x", 1);
  net.advance(200ms);
  on.at = [&](const std::string& step, const std::string&) {
    if (step == "capture")
      throw std::runtime_error{"not now"};
  };
  std::optional<zlink::task<zlink::detail::unit_end>> moving;
  if (moves)
    moving.emplace(start_move(net, "a", from, 1 - from));
  net.advance(10ms);
  handler.open();
  CHECK(net.run(std::move(running)).number == 1);
  if (moves) {
    CHECK(net.run(std::move(*moving)).reason == relocate_reason::state_incompatible);
    CHECK(on.count("capture a") == 1);
  }
  net.advance(5ms);
  std::vector<ledger_view> seen{look_at(net, from, "a")};
  net.advance(1s);
  seen.push_back(look_at(net, from, "a"));
  return seen;
}

TEST_CASE("L-78 L-161 X-128 X-129 a tick that waits when a move goes back before its capture is the only one: it runs once, the next when it is due") {
  const auto undisturbed = ticks_around_a_handler(false);
  const auto moved = ticks_around_a_handler(true);
  CHECK(undisturbed[0].scheduled == std::vector<std::uint64_t>{1, 3});
  for (std::size_t i = 0; i < undisturbed.size(); ++i) {
    CHECK(moved[i].ticks == undisturbed[i].ticks);
    CHECK(moved[i].scheduled == undisturbed[i].scheduled);
  }
}

} // namespace
} // namespace relocation_test
