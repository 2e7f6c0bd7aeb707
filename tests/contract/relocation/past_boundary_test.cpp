// What does not come back behind the boundary, what may before it, and Spots that say nothing to a boundary
// (06 sections 4, 11 and 14; 07 section 10).
#include "relocation/host_relocate.hpp"
#include "tests/contract/relocation/room_scene.hpp"

namespace relocation_test {
namespace {

using zlink::testing::store_operation;

/// Signals, and overrides nothing; for members as well.
class quiet_player final : public zlink::actor {
public:
  quiet_player(zlink::actor_context context, stage& on) : actor(std::move(context)), on_(on) {}
  /// As if the layer gave it to members: nobody calls it.
  zlink::task<void> on_relocation_ready_completed(const zlink::spot_relocation_ready_completion&) {
    on_.happened("boundary", context().actor_id());
    co_return;
  }

private:
  stage& on_;
};
template <class Base>
class quiet_place : public Base {
public:
  quiet_place(auto context, stage& on) : Base(std::move(context)), on_(on) { on_.happened("make", "place"); }
  void configure() override {
    auto handlers = this->context().handlers();
    handlers.template add_actor_handler<&quiet_place::on_enter>().template add_actor_handler<&quiet_place::on_play>();
    if constexpr (std::is_same_v<Base, zlink::spot<quiet_player>>)
      handlers.template add_packet<&quiet_place::on_round>();
  }
  zlink::task<void> on_joined_actor(quiet_player&) override { co_return; }
  zlink::task<void> on_leave_actor(quiet_player&) override { co_return; }

private:
  void on_enter(quiet_player& who, const zlink::message_context&, const enter& m) { who.context().join_spot(m.room).timeout(5s).defer(); }
  played on_play(quiet_player&, const zlink::message_context&, const play& m) { return {m.word, {}, {}, this->context().node_rid(), 0}; }
  void on_round(const round_end& m, const zlink::message_context&) {
    if constexpr (std::is_same_v<Base, zlink::spot<quiet_player>>)
      if (m.signal)
        this->context().relocation_ready().defer();
  }
  stage& on_;
};
using quiet_hall = quiet_place<zlink::entry_spot<quiet_player>>;
class quiet_room final : public quiet_place<zlink::spot<quiet_player>> {
public:
  using quiet_place::quiet_place;
  zlink::task<zlink::actor_join_response> on_actor_join(std::string, const zlink::message&) override { co_return zlink::accept(); }
};

TEST_CASE("L-47 a Spot that does not override on_relocation_ready_completed moves, signalled or not, and its members are not told") {
  for (const bool signalled : {false, true}) {
    CAPTURE(signalled);
    stage on;
    std::vector<std::string> faults;
    mesh net{{.hosts = 2, .adjust = [&](std::size_t, zlink::host_options& options) {
                options.on_dispatch_error = [&](const zlink::dispatch_error& what) { faults.push_back(to_string(what)); };
              }}};
    net.start([&](zlink::host& host) {
      auto server = host.add_mesh("m").object_server();
      server.add_entry_spot<quiet_hall>([&](zlink::entry_spot_context context) { return std::make_unique<quiet_hall>(std::move(context), on); });
      server.add_spot_factory<quiet_room>("room", [&](auto& factory) {
        factory.recreate_on_relocation().construct_with([&](zlink::spot_context context) { return std::make_unique<quiet_room>(std::move(context), on); });
        if (signalled)
          factory.application_signaled();
      });
      server.add_actor_factory<quiet_player>("player", [&](auto& factory) {
        factory.recreate_on_relocation().construct_with([&](zlink::actor_context context) { return std::make_unique<quiet_player>(std::move(context), on); });
      });
    });
    const auto from = host_of(net, net.run(net.host(0).spots().get_or_create("r", "room").submit()).spot.node_rid);
    net.run(net.host(0).actors().create("ada", "player").submit());
    net.run(net.host(0).actors().send_to_actor("ada", enter{"r"}).submit());
    net.advance(1s);
    REQUIRE(home_of_player(net, "ada") == from);
    // A round without a move ends with the callback as well (L-44), and the Spot goes on.
    if (signalled)
      net.run(net.host(0).spots().send_to_spot("r", round_end{true}).submit());
    CHECK(net.run(say(net.host(0), "ada", "before")).rid == rid_of(net, from));
    auto moving = start_move(net, "r", from, 1 - from);
    net.advance(10ms);
    if (signalled)
      net.run(net.host(0).spots().send_to_spot("r", round_end{true}).submit());
    CHECK(net.run(std::move(moving)).left);
    CHECK(net.run(say(net.host(0), "ada", "behind")).rid == rid_of(net, 1 - from));
    CHECK(on.count("boundary") == 0);
    CHECK(faults.empty());
  }
}

enum class trouble { lose_link, part, kill_target, shut_down, cut_store };

TEST_CASE("L-49 whatever happens behind relay-ready, the submit failed or not, no Spot hears of continued") {
  for (const auto what : {trouble::lose_link, trouble::part, trouble::kill_target, trouble::shut_down, trouble::cut_store})
    for (const auto at : {move_step::boundary, move_step::cutover_sent}) {
      CAPTURE(static_cast<int>(what));
      CAPTURE(std::string{to_string(at)});
      stage on;
      std::optional<zlink::task<zlink::shutdown_result>> ending;
      mesh net{2};
      net.start(serve_rooms(on, {.signalled = true}));
      const table t{net, on, "r", {"ada"}};
      const auto to = 1 - t.home;
      bool struck = false;
      net.host(t.home).runtime().moving.on_step = [&](move_step step, const std::string&) {
        if (step != at || std::exchange(struck, true))
          return;
        switch (what) {
          case trouble::lose_link: net.lose_links(t.home, to); break;
          case trouble::part: net.partition({t.home}, {to}); break;
          case trouble::kill_target: break; // behind the step: it is in the middle of one here
          case trouble::shut_down: ending = net.host(t.home).shutdown(); break;
          case trouble::cut_store: net.cut_store(t.home); break;
        }
      };
      on.trace.clear();
      auto moving = start_move(net, t.room, t.home, to, 3s);
      net.advance(10ms);
      net.run(net.host(t.home).spots().send_to_spot(t.room, round_end{true}).submit());
      CHECK(net.run(std::move(moving)).left);
      REQUIRE(struck);
      if (what == trouble::kill_target)
        net.kill(to);
      auto late = call_roll(net.host(t.home), t.room);
      net.advance(10s);
      net.heal();
      net.advance(30s);
      CHECK(on.count("boundary " + t.room + " continued") == 0);
      CHECK(on.count("boundary " + t.room + " relocated") <= 1);
      if (what == trouble::lose_link || what == trouble::part)
        CHECK(on.count("boundary " + t.room + " relocated") == 1);
      if (ending)
        net.run(std::move(*ending));
      static_cast<void>(net.run(zlink::as_result(std::move(late))));
    }
}

TEST_CASE("L-135 L-224 a link that is gone before the submit ends the unit as well: the host reaches its result at once") {
  for (const bool for_good : {false, true}) {
    CAPTURE(for_good);
    stage on;
    mesh net{2};
    net.start(serve(on));
    net.run(rouse(net.host(0), "a"));
    const auto from = net.owner_of("a");
    const auto to = 1 - from;
    std::vector<move_step> seen;
    net.host(from).runtime().moving.on_step = [&](move_step step, const std::string&) {
      seen.push_back(step);
      if (step == move_step::boundary)
        for_good ? net.partition({from}, {to}) : net.lose_links(from, to);
    };
    zlink::relocate_options how;
    how.deadline = 20s;
    const auto started = net.elapsed();
    const auto end = net.run(net.host(from).relocate(how));
    CHECK(end.outcome == zlink::relocate_outcome::relocated);
    CHECK(end.reason == relocate_reason::none);
    CHECK(net.elapsed() - started < 1s);
    CHECK(std::ranges::count(seen, move_step::cutover_sent) == 1);
    CHECK(std::ranges::count(seen, move_step::commit_seen) == 0); // and no commit was waited for
    net.heal();
    net.run_until([&] { return lives(net, to, "a") && !lives(net, from, "a"); });
  }
}

// -- before the boundary: the two ways back -------------------------------------------------------------------------------

/// What a host asks the store about "a".
std::size_t calls_about(mesh& net, std::size_t host) {
  return static_cast<std::size_t>(
    std::ranges::count_if(net.faults(host).log(), [](const auto& call) { return call.key.starts_with(zlink::placement::spot_key("a")); }));
}

TEST_CASE("S-99 L-160 a refusal decides by itself: the source goes on while the store is away, and the release is waited for by nobody") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  on.at = [](const std::string& step, const std::string&) {
    if (step == "restore")
      throw std::runtime_error{"no"};
  };
  bool restored = false;
  net.host(from).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::aborting)
      net.cut_store(from);
    restored = restored || step == move_step::restored;
  };
  const auto before = *row_of(net, "a");
  auto q = count(net.host(from), "a", "q", 1);
  net.run(std::move(q));
  auto moving = start_move(net, "a", from, 1 - from);
  net.run_until([&] { return restored; });
  CHECK(net.run(count(net.host(from), "a", "q", 2, 2s)).number == 2); // the store is away
  CHECK(!net.run(std::move(moving)).left);
  CHECK(row_of(net, "a")->owner == before.owner);
  CHECK(row_of(net, "a")->authority == before.authority);
  CHECK(row_of(net, "a")->slots == before.slots);
  CHECK(row_of(net, "a")->move); // it may follow later
  net.heal();
  net.run_until([&] { return !row_of(net, "a")->move; });
  CHECK(on.count("handle a q/1") == 1);
  CHECK(on.count("closing") == 0);
}

TEST_CASE("S-99 S-100 L-160 without an answer the fence is confirmed first: nothing runs while the store is away") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  barrier never;
  on.hold("restore", never);
  std::vector<move_step> seen;
  net.host(from).runtime().moving.on_step = [&](move_step step, const std::string&) {
    seen.push_back(step);
    if (step == move_step::aborting) {
      net.cut_store(from);
      net.faults(from).clear_log();
    }
    if (step == move_step::fenced) // an answer of the store came before
      CHECK(net.faults(from).count(store_operation::write) >= 1);
  };
  auto moving = start_move(net, "a", from, 1 - from, 1s);
  net.run_until([&] { return std::ranges::count(seen, move_step::aborting) == 1; });
  auto held = count(net.host(from), "a", "h", 1);
  net.advance(4s); // less than the lease
  CHECK(on.count("handle a h") == 0);
  CHECK(std::ranges::count(seen, move_step::fenced) == 0);
  CHECK(calls_about(net, from) > 0);
  net.heal();
  CHECK(!net.run(std::move(moving)).left);
  CHECK(net.run(std::move(held)).number == 1);
  CHECK(std::ranges::find(seen, move_step::fenced) < std::ranges::find(seen, move_step::restored));
  never.open();
  net.run_until_idle();
  CHECK(home_of(net, "a") == from);
}

TEST_CASE("S-101 L-163 a fence that is won behind relay-ready settles the record, and starts nothing, whatever became of the submit") {
  for (const bool submitted : {true, false}) {
    CAPTURE(submitted);
    stage on;
    barrier handler;
    mesh net{3};
    net.start(serve(on));
    net.run(rouse(net.host(0), "a"));
    const auto from = net.owner_of("a");
    const auto to = (from + 1) % 3;
    net.run(net.host(0).spots().send_to_spot("a", start_clock{"tick", 100, false}).submit());
    on.hold("handle", handler);
    auto running = count(net.host(from), "a", "r", 0);
    net.run_until([&] { return handler.waiting() == 1; });
    auto captured = count(net.host(from), "a", "q", 1, 60s);
    net.run_until_idle();
    net.host(to).runtime().moving.on_step = [&](move_step step, const std::string&) {
      if (step == move_step::relay_ready_sent)
        net.cut_store(to);
    };
    std::vector<move_step> seen;
    net.host(from).runtime().moving.on_step = [&](move_step step, const std::string&) {
      seen.push_back(step);
      if (step == move_step::boundary && !submitted)
        net.partition({from}, {to});
    };
    auto moving = start_move(net, "a", from, to, 3s);
    net.advance(10ms);
    handler.open();
    CHECK(net.run(std::move(moving)).left);
    on.trace.clear();
    auto held = count(net.host(from), "a", "h", 2, 60s);
    const auto before = *row_of(net, "a");
    net.run_until([&] { return std::ranges::count(seen, move_step::settled_lost) == 1; });
    CHECK(!row_of(net, "a")->move); // the fence was won: the row is the source's, of a later version
    CHECK(row_of(net, "a")->owner == before.owner);
    net.heal();
    net.advance(60s);
    CHECK(failure(net, std::move(captured)) == error_kind::unavailable);
    CHECK(failure(net, std::move(held)) == error_kind::unavailable);
    CHECK(on.count("handle") + on.count("tick") + on.count("closing") == 0);
    CHECK(std::ranges::count(seen, move_step::restored) == 0);
    CHECK(home_of(net, "a") == net.size());
    static_cast<void>(net.run(zlink::as_result(std::move(running))));
  }
}

} // namespace
} // namespace relocation_test
