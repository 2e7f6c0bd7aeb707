// What goes along by each policy, how large it may be, and what keeps a unit where it is before anything has stopped
// (06 sections 3, 5, 9 and 10).
#include "tests/contract/relocation/room_scene.hpp"

namespace relocation_test {
namespace {

using words = std::vector<std::string>;

/// Carries so many bytes, whatever the Spot knows.
class raw_adapter final : public zlink::spot_adapter<ledger> {
public:
  explicit raw_adapter(std::size_t size) : size_(size) {}
  zlink::task<zlink::bytes> capture(ledger& from, std::stop_token) const override {
    from.on.happened("capture", from.id());
    zlink::bytes all(size_);
    for (std::size_t i = 0; i < size_; ++i)
      all[i] = static_cast<std::byte>(i * 7 % 251);
    co_return all;
  }
  zlink::task<void> restore(ledger& into, zlink::byte_view state, std::stop_token) const override {
    bool same = state.size() == size_;
    for (std::size_t i = 0; same && i < size_; ++i)
      same = state[i] == static_cast<std::byte>(i * 7 % 251);
    into.on.happened("restore", into.id(), same ? "as it was" : "spoiled");
    co_return;
  }

private:
  std::size_t size_;
};
/// Of Spots as `decide` says.
template <class Decide>
void add(zlink::host& host, stage& on, Decide decide) {
  host.add_mesh("m").object_server().add_instance_spot_factory<ledger>("ledger", [&](auto& factory) {
    decide(factory.construct_with([&on](zlink::instance_spot_context context) { return std::make_unique<ledger>(std::move(context), on); }));
  });
}

TEST_CASE("L-22 L-26 L-69 made anew: the same id and generation, waiting work and timers go along, state does not, and no adapter is asked") {
  stage on;
  mesh net{2};
  net.start([&](zlink::host& host) { add(host, on, [](auto& factory) { factory.recreate_on_relocation(); }); });
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  const auto row = *row_of(net, "a");
  net.run(net.host(0).spots().send_to_spot("a", start_clock{"tick", 100, false}).submit());
  net.advance(250ms);
  barrier handler;
  on.hold("handle", handler);
  auto running = count(net.host(0), "a", "q", 1);
  net.run_until([&] { return handler.waiting() == 1; });
  auto waiting = count(net.host(0), "a", "q", 2);
  auto moving = start_move(net, "a", from, 1 - from);
  net.advance(10ms);
  handler.open();
  CHECK(net.run(std::move(moving)).left);
  CHECK(net.run(std::move(running)).number == 1);
  CHECK(net.run(std::move(waiting)).number == 2);
  const auto view = look_at(net, 0, "a");
  CHECK(view.entries == words{"q/2"});
  CHECK(view.generation == row.generation.value);
  CHECK(view.instance == 2);
  CHECK(on.count("capture") + on.count("restore") == 0);
  const auto ticks = on.count("tick a");
  net.advance(300ms);
  CHECK(on.count("tick a") == ticks + 3);
  CHECK(look_at(net, 0, "a").ticks.back() == static_cast<std::uint64_t>(on.count("tick a")));
}

TEST_CASE("L-27 L-91 no bytes, one chunk, a bit more, and many times what may be under way: the same restore, once, as it was") {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{256 * 1024}, std::size_t{256 * 1024 + 1}, std::size_t{7'000'000}}) {
    CAPTURE(size);
    stage on;
    mesh net{{.hosts = 2, .max_link_delay = 2ms}};
    net.start([&](zlink::host& host) { add(host, on, [&](auto& factory) { factory.preserve_state_with(raw_adapter{size}); }); });
    net.run(rouse(net.host(0), "a"));
    const auto from = net.owner_of("a");
    on.trace.clear();
    CHECK(net.run(start_move(net, "a", from, 1 - from)).left);
    CHECK(net.run(count(net.host(0), "a", "x", 1)).number == 1);
    CHECK(on.count("restore a as it was") == 1);
    CHECK(on.count("restore") == 1);
    CHECK(net.owner_of("a") == 1 - from);
  }
}

TEST_CASE("L-29 L-161 L-165 a capture that throws: nothing was sent, the Spot goes on in order where it is") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  std::set<move_step> seen;
  net.host(from).runtime().moving.on_step = [&](move_step step, const std::string&) { seen.insert(step); };
  barrier handler;
  on.hold("handle", handler);
  auto running = count(net.host(0), "a", "h", 1);
  net.run_until([&] { return handler.waiting() == 1; });
  auto h2 = count(net.host(0), "a", "h", 2);
  on.at = [](const std::string& step, const std::string&) {
    if (step == "capture")
      throw std::runtime_error{"no"};
  };
  auto moving = start_move(net, "a", from, 1 - from);
  net.advance(10ms);
  handler.open();
  auto h3 = count(net.host(0), "a", "h", 3);
  const auto end = net.run(std::move(moving));
  CHECK(!end.left);
  CHECK(end.reason == relocate_reason::state_incompatible);
  CHECK(net.run(std::move(running)).number == 1);
  CHECK(net.run(std::move(h2)).number == 2);
  CHECK(net.run(std::move(h3)).number == 3);
  CHECK(!seen.contains(move_step::restore_sent));
  CHECK(on.count("make") == 1);
  CHECK(on.count("closing") == 0);
  CHECK(look_at(net, 0, "a").entries == words{"first/0", "h/1", "h/2", "h/3"});
}

TEST_CASE("L-32 a callback that outlasts the deadline is told to stop; the move ends as too late, and the source goes on") {
  for (const std::string step : {"capture", "restore", "initialize"}) {
    CAPTURE(step);
    stage on;
    mesh net{2};
    net.start(serve(on));
    net.run(rouse(net.host(0), "a"));
    const auto from = net.owner_of("a");
    barrier never;
    on.hold(step, never);
    auto moving = start_move(net, "a", from, 1 - from, 2s);
    if (step == "capture") { // which has to come back: its Spot is here
      net.advance(2500ms);
      never.open();
    }
    const auto end = net.run(std::move(moving));
    if (step != "capture")
      CHECK(!end.left);
    if (!end.left) {
      CHECK(end.reason == relocate_reason::deadline_exceeded);
      CHECK(net.run(count(net.host(0), "a", "x", 1)).number == 1);
      CHECK(net.owner_of("a") == from);
    }
    never.open();
    net.run_until_idle();
    CHECK(net.run(count(net.host(1), "a", "x", 2)).number == 2);
  }
}

TEST_CASE("L-123 L-30 a factory at the target that gives its Spot another context: nothing of it is seen, the source goes on") {
  stage on;
  mesh net{2};
  std::optional<zlink::instance_spot_context> stolen;
  bool steal = false;
  net.start([&](zlink::host& host) {
    host.add_mesh("m").object_server().add_instance_spot_factory<ledger>("ledger", [&](auto& factory) {
      factory.preserve_state_with(ledger_adapter{}).construct_with([&](zlink::instance_spot_context context) {
        if (!steal)
          return std::make_unique<ledger>(std::move(context), on);
        if (!stolen) {
          stolen.emplace(std::move(context));
          throw std::runtime_error{"stolen"};
        }
        auto made = std::make_unique<ledger>(std::move(*stolen), on);
        stolen.emplace(std::move(context));
        return made;
      });
    });
  });
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  steal = true;
  on.trace.clear();
  const auto end = net.run(start_move(net, "a", from, 1 - from));
  CHECK(!end.left);
  CHECK(end.reason == relocate_reason::state_incompatible);
  CHECK(on.count("initialize") == 0);
  CHECK(on.count("restore") == 0);
  CHECK(net.run(count(net.host(1 - from), "a", "x", 1)).number == 1);
  CHECK(net.owner_of("a") == from);
  stolen.reset();
}

TEST_CASE("L-58 L-104 the target's last place is taken between the choice and the Restore: refused with a name, the source goes on in order") {
  stage on;
  mesh net{2};
  net.start([&](zlink::host& host) { add_ledgers(host.add_mesh("m").object_server(), on, 1); });
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  net.run(rouse(net.host(0), "b"));
  REQUIRE(net.owner_of("b") == 1 - from);
  on.trace.clear();
  auto moving = start_move(net, "a", from, 1 - from);
  auto q = count(net.host(0), "a", "q", 1);
  const auto end = net.run(std::move(moving));
  CHECK(!end.left);
  CHECK(end.reason == relocate_reason::target_unavailable);
  CHECK(net.run(std::move(q)).number == 1);
  CHECK(net.owner_of("a") == from);
  CHECK(on.count("restore") == 0);
  CHECK(creation_test::spots_on(net, 1 - from).active == 1);
  CHECK(creation_test::spots_on(net, 1 - from).reserved == 0);
}

TEST_CASE("L-58 the slot is taken in the store before readiness is told, and given back when the move comes to nothing") {
  stage on;
  mesh net{3};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  const auto to = (from + 1) % 3;
  std::optional<zlink::placement::slot_bucket> at_ready;
  net.host(to).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::relay_ready_sent) {
      at_ready = creation_test::spots_on(net, to);
      net.mute(to, from); // it does not get there
      REQUIRE(row_of(net, "a")->move);
      CHECK(row_of(net, "a")->move->reservation);
    }
  };
  net.host(from).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::restore_sent)
      net.faults(to).set_rule([&](const zlink::testing::store_call& call) { // and it cannot commit for a while
        return at_ready && call.what == zlink::testing::store_operation::write && call.touches(zlink::placement::spot_key("a"))
                 ? zlink::testing::store_fault::vanish
                 : zlink::testing::store_fault::none;
      });
  };
  const auto end = net.run(start_move(net, "a", from, to, 3s));
  CHECK(!end.left);
  REQUIRE(at_ready);
  CHECK(at_ready->reserved + at_ready->active == 1);
  net.faults(to).set_rule({});
  net.heal();
  net.advance(15s);
  CHECK(creation_test::spots_on(net, to) == zlink::placement::slot_bucket{});
  CHECK(net.owner_of("a") == from);
}

TEST_CASE("L-59 L-104 L-196 short of one slot of any kind, the whole room stays, with all its members") {
  for (const int shortage : {0, 1, 2}) { // Spots, of the type, Actors
    CAPTURE(shortage);
    stage on;
    mesh net{2};
    net.start([&](zlink::host& host) {
      serve_rooms(on, {.room_limit = shortage == 1 ? 1U : 0U})(host);
      if (shortage == 0)
        host.mesh("m").spot_limit(1);
      if (shortage == 2)
        host.mesh("m").actor_limit(3);
    });
    const table t{net, on, "r", {"ada", "bob"}};
    // The other host has one room, or two people, of its own.
    for (int i = 0; shortage < 2 && creation_test::spots_on(net, 1 - t.home).active == 0; ++i)
      net.run(net.host(0).spots().get_or_create("other" + std::to_string(i), "room").submit());
    for (int i = 0, there = 0; shortage == 2 && there < 2; ++i) {
      const auto who = "p" + std::to_string(i);
      const auto made = net.run(zlink::as_result(net.host(0).actors().create(who, "player").submit()));
      REQUIRE(made);
      there += home_of_player(net, who) == 1 - t.home ? 1 : 0;
    }
    on.trace.clear();
    const auto end = net.run(start_move(net, t.room, t.home, 1 - t.home));
    CHECK(!end.left);
    CHECK(end.reason == relocate_reason::target_unavailable);
    for (const auto* who : {"ada", "bob"})
      CHECK(net.run(say(net.host(0), who, "on")).rid == rid_of(net, t.home));
    CHECK(net.run(call_roll(net.host(0), t.room)).members == words{"ada", "bob"});
    CHECK(on.count("closing") == 0);
    CHECK(on.count("left") == 0);
  }
}

TEST_CASE("L-59 L-21 one member that may not leave its node: the room is not even captured") {
  stage on;
  mesh net{2};
  net.start(serve_rooms(on, {.fixed_players = true}));
  std::string room;
  std::size_t home = 0;
  for (int i = 0; room.empty(); ++i) { // a room where somebody is
    const auto who = "p" + std::to_string(i);
    net.run(net.host(0).actors().create(who, "player").submit());
    const auto made = net.run(net.host(0).spots().get_or_create("r" + std::to_string(i), "room").submit());
    if (host_of(net, made.spot.node_rid) != home_of_player(net, who))
      continue;
    room = made.spot.spot_id;
    home = home_of_player(net, who);
    go_to(net, on, who, room);
  }
  on.trace.clear();
  const auto end = net.run(start_move(net, room, home, 1 - home));
  CHECK(!end.left);
  CHECK(end.reason == relocate_reason::relocation_disabled);
  CHECK(on.count("capture") == 0);
  CHECK(on.count("make") == 0);
  CHECK(net.run(call_roll(net.host(0), room)).members.size() == 1);
}

TEST_CASE("L-55 no way to the target: nothing stops, nothing is captured") {
  stage on;
  mesh net{3};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  net.partition({from}, {(from + 1) % 3});
  net.run_until_idle();
  std::set<move_step> seen;
  net.host(from).runtime().moving.on_step = [&](move_step step, const std::string&) { seen.insert(step); };
  on.trace.clear();
  const auto end = net.run(start_move(net, "a", from, (from + 1) % 3, 2s));
  CHECK(!end.left);
  CHECK(end.reason == relocate_reason::target_unavailable);
  CHECK(!seen.contains(move_step::sealed));
  CHECK(on.count("capture") == 0);
  CHECK(net.run(count(net.host(from), "a", "x", 1)).number == 1);
  CHECK(!row_of(net, "a")->move);
}

TEST_CASE("L-124 L-127 while it is prepared, whoever looks finds it where it was, and the row names the source") {
  stage on;
  mesh net{3};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  const auto to = (from + 1) % 3;
  barrier restore;
  on.hold("restore", restore);
  bool asked = false;
  net.host(to).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::relay_ready_sent) {
      asked = true;
      CHECK(row_of(net, "a")->node.node_rid == rid_of(net, from));
      CHECK(!lives(net, to, "a"));
    }
  };
  auto moving = start_move(net, "a", from, to);
  net.run_until([&] { return restore.waiting() == 1; });
  for (std::size_t host = 0; host < 3; ++host) {
    const auto found = net.run(net.host(host).spots().find("a"));
    CHECK((!found || found->node_rid == rid_of(net, from)));
  }
  CHECK(!lives(net, to, "a"));
  restore.open();
  CHECK(net.run(std::move(moving)).left);
  CHECK(asked);
}

} // namespace
} // namespace relocation_test
