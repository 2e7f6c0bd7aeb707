// When a unit is taken, and what it still does until then: yields, ticks, timers of its kind, closes, idle times, and sources
// that wake up late (06 sections 4, 7, 13 and 17).
#include "tests/contract/relocation/tampered_wire.hpp"

namespace relocation_test {
namespace {

using words = std::vector<std::string>;

std::string node_name(mesh& net, std::size_t host) { return net.host(host).runtime().find_node("m")->identity.node_rid; }

TEST_CASE("L-50 X-40 a run that has yielded ends at the source before the seal; until then others run") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  net.run(rouse(net.host(0), "b"));
  const auto from = net.owner_of("a");
  barrier slow;
  on.during = [&](const std::string& step, const std::string& id) { return step == "handle" && id == "b" ? slow.passed() : zlink::task<void>::done(); };
  on.acts = [](const zlink::instance_spot_context& context, const std::string& word) -> zlink::task<void> {
    if (word == "closing")
      co_return;
    auto asking = context.outbound().request_to_spot("b", count_up{"y", 1}).yield<count_up>();
    co_await std::move(asking);
  };
  on.trace.clear();
  auto yielded = bid(net.host(0), "a", "yields");
  net.run_until([&] { return slow.waiting() == 1; });
  auto moving = start_move(net, "a", from, 1 - from);
  net.advance(500ms);
  CHECK(on.count("capture") == 0);
  CHECK(net.run(count(net.host(0), "a", "x", 1)).number == 1); // others of the gate run meanwhile
  CHECK(!moving.ready());
  slow.open();
  CHECK(net.run(std::move(yielded)).rid == node_name(net, from));
  CHECK(net.run(std::move(moving)).left);
  CHECK(net.run(count(net.host(0), "a", "x", 2)).number == 2);
  words order;
  for (const auto& one : on.trace)
    if (one == "did a yields" || one.starts_with("capture a") || one.starts_with("handle a"))
      order.push_back(one);
  CHECK(order == words{"handle a yields", "handle a x/1", "did a yields", "capture a", "handle a x/2"});
}

TEST_CASE("L-50 L-48 a run that does not end before the deadline: the unit does not start, and goes on") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  barrier handler;
  on.hold("handle", handler);
  auto running = count(net.host(0), "a", "r", 1);
  net.run_until([&] { return handler.waiting() == 1; });
  const auto end = net.run(start_move(net, "a", from, 1 - from, 2s));
  CHECK(!end.left);
  CHECK(end.reason == relocate_reason::deadline_exceeded);
  CHECK(on.count("capture") == 0);
  handler.open();
  CHECK(net.run(std::move(running)).number == 1);
  CHECK(net.run(count(net.host(1), "a", "r", 2)).number == 2);
  CHECK(net.owner_of("a") == from);
  net.run_until_idle();
  CHECK(!row_of(net, "a")->move);
}

TEST_CASE("L-77 L-82 L-157 a tick that runs ends at the source; what came due meanwhile runs at the target, not before it is open") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  net.run(net.host(0).spots().send_to_spot("a", start_clock{"tick", 100, false}).submit());
  barrier tick;
  barrier commit;
  on.hold("tick", tick);
  net.run_until([&] { return tick.waiting() == 1; });
  auto moving = start_move(net, "a", from, 1 - from);
  net.advance(350ms);
  CHECK(on.count("capture") == 0);
  CHECK(on.count("tick a") == 1);
  net.host(1 - from).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::committing)
      net.faults(1 - from).once(zlink::testing::store_operation::write, zlink::placement::spot_key("a"), zlink::testing::store_fault::hold_call);
  };
  tick.open();
  CHECK(net.run(std::move(moving)).left);
  net.run_until([&] { return net.faults(1 - from).held() == 1; });
  net.advance(350ms);
  CHECK(on.count("tick a") == 1);
  net.faults(1 - from).release_all();
  net.run_until([&] { return on.count("tick a") == 2; });
  CHECK(net.owner_of("a") == 1 - from);
  const auto view = look_at(net, 0, "a");
  CHECK(view.ticks == std::vector<std::uint64_t>{1, 2});
  CHECK(view.scheduled[1] > view.scheduled[0] + 3); // the latest of what was missed
  net.advance(1s);
  CHECK(look_at(net, 0, "a").ticks.size() == 12);
}

/// Adds a timer in `on_initialize`, as if it had none yet.
class ticker final : public zlink::instance_spot {
public:
  ticker(zlink::instance_spot_context context, stage& on) : instance_spot(std::move(context)), on_(on) {}
  void configure() override { context().handlers().add_packet<&ticker::on_count>(); }
  zlink::task<void> on_initialize() override {
    const auto period = 100ms * ++on_.instances;
    auto adding = context().add_timer<&ticker::on_tick>("tick", std::chrono::milliseconds{period});
    static_cast<void>(co_await std::move(adding));
    auto more = context().add_timer<&ticker::on_tick>("of " + std::to_string(on_.instances), 100ms);
    static_cast<void>(co_await std::move(more));
  }

private:
  count_up on_count(const count_up& m, const zlink::message_context&) { return m; }
  void on_tick(const zlink::timer_tick& tick) { on_.happened("tick", std::string{tick.name}, std::to_string(tick.delivery_index)); }
  stage& on_;
};

TEST_CASE("L-80 L-79 a name that on_initialize adds again: the schedule that came along wins; names that did not come along are new") {
  stage on;
  mesh net{2};
  net.start([&](zlink::host& host) {
    host.add_mesh("m").object_server().add_instance_spot_factory<ticker>("ledger", [&](auto& factory) {
      factory.recreate_on_relocation().construct_with([&](zlink::instance_spot_context context) { return std::make_unique<ticker>(std::move(context), on); });
    });
  });
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  net.advance(350ms);
  CHECK(on.count("tick tick") == 3);
  CHECK(on.count("tick of 1") == 3);
  CHECK(net.run(start_move(net, "a", from, 1 - from)).left);
  net.run_until([&] { return lives(net, 1 - from, "a") && !lives(net, from, "a"); });
  on.trace.clear();
  net.advance(1000ms);
  CHECK(on.count("tick tick") == 10); // one schedule, of 100 ms
  CHECK(on.count("tick tick 4") == 1);
  CHECK(on.count("tick of 1") == 10);
  CHECK((on.count("tick of 2 1") >= 1 && on.count("tick of 2") <= 11));
}

TEST_CASE("L-198 whoever closes first is served: a Spot that closes does not move") {
  stage on;
  barrier closing; // before the mesh: what lives at its end closes then
  mesh net{2};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  on.hold("closing", closing);
  on.acts = [](const zlink::instance_spot_context& context, const std::string& word) -> zlink::task<void> {
    if (word != "close")
      co_return;
    auto ending = context.close();
    co_await std::move(ending);
  };
  auto asked = bid(net.host(0), "a", "close");
  net.run_until([&] { return closing.waiting() == 1; });
  const auto end = net.run(start_move(net, "a", from, 1 - from, 2s));
  CHECK(!end.left);
  closing.open();
  net.run_until([&] { return !row_of(net, "a"); });
  CHECK(on.count("closing a explicit_close") == 1);
  CHECK(on.count("capture") == 0);
  static_cast<void>(net.run(zlink::as_result(std::move(asked))));
  CHECK(net.run(rouse(net.host(1), "a")).number == 0);
}

TEST_CASE("L-203 X-173 L-198 a Spot that moves is not idle, however long that takes, and is not evicted on arrival") {
  stage on;
  mesh net{2};
  net.start([&](zlink::host& host) {
    serve(on)(host);
    host.mesh("m").instance_spot_idle_timeout(10s);
  });
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  barrier restore;
  on.hold("restore", restore);
  auto moving = start_move(net, "a", from, 1 - from, 120s);
  net.run_until([&] { return restore.waiting() == 1; });
  net.advance(60s);
  CHECK(on.count("closing") == 0);
  restore.open();
  CHECK(net.run(std::move(moving)).left);
  net.run_until([&] { return lives(net, 1 - from, "a"); });
  net.advance(5s);
  CHECK(lives(net, 1 - from, "a"));
  CHECK(on.count("closing a idle_evicted") == 0);
  net.advance(60s);
  CHECK(on.count("closing a idle_evicted") == 1);
  CHECK(!row_of(net, "a"));
}

TEST_CASE("L-201 L-82 a source that stood still past the commit, and past its lease, says and does nothing when it wakes") {
  for (const auto still : {2s, 40s}) {
    CAPTURE(still.count());
    stage on;
    mesh net{3};
    net.start(serve(on));
    net.run(rouse(net.host(0), "a"));
    net.run(net.host(0).spots().send_to_spot("a", start_clock{"tick", 100, false}).submit());
    net.run_until_idle();
    const auto from = net.owner_of("a");
    const auto to = (from + 1) % 3;
    bool sent = false;
    net.host(from).runtime().moving.on_step = [&](move_step step, const std::string&) { sent = sent || step == move_step::cutover_sent; };
    auto moving = start_move(net, "a", from, to);
    net.run_until([&] { return sent; });
    net.run_until_idle();
    net.freeze(from);
    net.run_until([&] { return lives(net, to, "a"); });
    const auto row = *row_of(net, "a");
    net.advance(still);
    const auto ticks = on.count("tick a");
    CHECK(ticks > 5);
    net.thaw(from);
    net.advance(1s);
    CHECK(on.count("tick a") <= ticks + 11); // of one place only
    CHECK(row_of(net, "a")->owner == row.owner);
    CHECK(row_of(net, "a")->authority == row.authority);
    CHECK(net.run(count(net.host((from + 2) % 3), "a", "x", 1)).number == 1);
    net.advance(60s);
    CHECK(net.run(count(net.host(from), "a", "x", 2)).number == 2);
    CHECK(net.owner_of("a") == to);
    const auto view = look_at(net, to, "a");
    for (std::size_t i = 0; i < view.ticks.size(); ++i)
      CHECK(view.ticks[i] == i + 1);
    static_cast<void>(moving);
  }
}

TEST_CASE("L-158 L-159 what the Spot sends itself while it opens waits like everybody else, and nothing stands still") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  int sent = 0;
  on.during = [&](const std::string& step, const std::string& id) -> zlink::task<void> {
    if (step != "restore")
      return zlink::task<void>::done();
    static_cast<void>(net.host(1 - from).spots().send_to_spot(id, note{"self", static_cast<std::uint64_t>(++sent)}).submit());
    return zlink::task<void>::done();
  };
  barrier handler;
  auto before = count(net.host(0), "a", "x", 1);
  auto moving = start_move(net, "a", from, 1 - from);
  auto behind = count(net.host(0), "a", "x", 2);
  CHECK(net.run(std::move(moving)).left);
  CHECK(net.run(std::move(before)).number == 1);
  CHECK(net.run(std::move(behind)).number == 2);
  net.run_until_idle();
  CHECK(sent == 1);
  const auto view = look_at(net, 0, "a");
  CHECK(std::ranges::count(view.entries, "self/1") == 1);
}

TEST_CASE("L-102 L-133 sends that wait for room when the seal comes are held before all others, and run in order") {
  stage on;
  mesh net{3};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  barrier handler;
  on.hold("handle", handler);
  auto running = count(net.host(from), "a", "r", 0);
  net.run_until([&] { return handler.waiting() == 1; });
  constexpr std::uint64_t many = 2500; // more than the lane takes
  std::vector<zlink::task<void>> sends;
  for (std::uint64_t i = 1; i <= many; ++i)
    sends.push_back(jot(net.host(from), "a", "w", i));
  net.run_until_idle();
  const auto waiting = std::ranges::count_if(sends, [](const auto& one) { return !one.ready(); });
  CHECK(waiting > 0);
  auto moving = start_move(net, "a", from, (from + 1) % 3);
  net.advance(10ms);
  on.during = nullptr;
  handler.open();
  net.run(jot(net.host(from), "a", "w", many + 1));
  CHECK(net.run(std::move(moving)).left);
  CHECK(net.run(std::move(running)).number == 0);
  for (auto& one : sends)
    net.run(std::move(one));
  net.run_until([&] { return on.count("handle a w/" + std::to_string(many + 1)) == 1; });
  std::uint64_t next = 0;
  for (const auto& one : look_at(net, 0, "a").entries)
    if (one.starts_with("w/"))
      CHECK(one == "w/" + std::to_string(++next));
  CHECK(next == many + 1);
}

TEST_CASE("L-63 L-134 what comes while the batch is encoded is added to it: no record is encoded anew for that") {
  stage on;
  tampered_wire wire;
  mesh net{{.hosts = 2, .adjust = wire.taps()}};
  const lane_scene s{net, on};
  barrier restore;
  on.hold("restore", restore);
  auto moving = start_move(net, "a", s.from, s.to);
  net.run_until([&] { return restore.waiting() == 1; });
  std::uint64_t held = 0;
  for (; held < 50; ++held)
    net.run(jot(net.host(s.from), "a", "h", held));
  wire.rule = [&](lane_record& r) { // another one comes with each record that leaves, for a while
    if (r.command == control_command::relay && held < 300)
      static_cast<void>(net.host(s.from).spots().send_to_spot("a", note{"h", held++}).submit());
    return true;
  };
  restore.open();
  CHECK(net.run(std::move(moving)).left);
  net.run_until([&] { return on.count("handle a h/299") == 1; });
  CHECK(wire.count(control_command::relay) == 300);
}

} // namespace
} // namespace relocation_test
