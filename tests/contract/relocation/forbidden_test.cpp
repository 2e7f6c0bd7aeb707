// What a move does not do: write for another owner, acknowledge or journal messages, count them, wait for silence (06 section 1,
// L-7); and how the halves of a PerActor room add up (07 section 10).
#include "tests/contract/relocation/room_scene.hpp"
#include "tests/contract/relocation/tampered_wire.hpp"

namespace relocation_test {
namespace {

using zlink::detail::unit_kind;
using zlink::testing::store_call;
using zlink::testing::store_fault;
using zlink::testing::store_operation;

/// Who writes which owner into the store. Outlives the mesh.
struct writers {
  std::vector<std::string> foreign; ///< somebody made another node the owner
  std::map<std::string, std::vector<std::size_t>> owners_named; ///< by key: each host that wrote a row
  void watch(mesh& net) {
    for (std::size_t host = 0; host < net.size(); ++host)
      net.faults(host).set_rule([this, host, own = rid_of(net, host)](const store_call& call) {
        if (call.what == store_operation::write)
          for (const auto& change : call.batch->mutations)
            if (change.put)
              look(host, own, change);
        return store_fault::none;
      });
  }

private:
  std::map<std::string, std::string> last; ///< by key: the owner
  void look(std::size_t host, const std::string& own, const zlink::store_mutation& change) {
    using namespace zlink::placement;
    std::string owner;
    if (change.key.starts_with(aggregate_prefix())) {
      const auto record = decode<aggregate_record>(*change.put);
      if (const auto* aggregate = std::get_if<aggregate_record>(&record))
        owner = aggregate->node.node_rid;
    } else if (change.key.starts_with(spot_key("")) || change.key.starts_with(actor_key(""))) {
      const auto record = decode<object_record>(*change.put);
      if (const auto* object = std::get_if<object_record>(&record))
        if (const auto* row = std::get_if<row_record>(object))
          owner = row->node.node_rid;
    }
    if (owner.empty())
      return;
    owners_named[change.key].push_back(host);
    auto& before = last[change.key];
    if (owner != own && !before.empty() && owner != before)
      foreign.push_back(std::to_string(host) + " named " + owner + " in " + change.key);
    before = owner;
  }
  static std::string aggregate_prefix() { return zlink::placement::aggregate_key({}).substr(0, 1); } // tells the kind of a record
};

TEST_CASE("L-7 L-145 nobody ever names another node as the owner: each owner names himself, in moves of every kind") {
  for (const bool per_actor : {false, true}) {
    CAPTURE(per_actor);
    stage on;
    writers seen;
    mesh net{3};
    net.start([&](zlink::host& host) {
      serve_rooms(on, {.per_actor = per_actor})(host);
      add_ledgers(host.mesh("m").object_server(), on);
    });
    net.run(rouse(net.host(0), "a"));
    net.run(net.host(0).actors().create("eve", "player").submit());
    const table t{net, on, "r", {"ada", "bob"}};
    const auto to = (t.home + 1) % 3;
    seen.watch(net);
    const auto moved = [&](const std::string& who, std::size_t from) {
      net.run_until([&, who, from] { return !player_lives(net, from, who); });
      net.run_until_idle();
    };
    CHECK(net.run(start_move(net, t.room, t.home, to)).left);
    net.run_until([&] { return lives(net, to, t.room) && !lives(net, t.home, t.room); });
    if (per_actor)
      for (const auto* who : {"ada", "bob"}) {
        CHECK(net.run(start_actor_move(net, who, t.home, to, unit_kind::member_actor)).left);
        moved(who, t.home);
      }
    const auto eve = home_of_player(net, "eve");
    CHECK(net.run(start_actor_move(net, "eve", eve, (eve + 1) % 3)).left);
    moved("eve", eve);
    const auto a = net.owner_of("a");
    CHECK(net.run(start_move(net, "a", a, (a + 1) % 3)).left);
    net.run_until([&] { return lives(net, (a + 1) % 3, "a") && !lives(net, a, "a"); });
    net.run_until_idle();
    for (const auto& one : seen.foreign)
      FAIL_CHECK(one);
    const auto& of_a = seen.owners_named[zlink::placement::spot_key("a")];
    CHECK(std::ranges::count(of_a, a) >= 1);           // prepares
    CHECK(std::ranges::count(of_a, (a + 1) % 3) >= 1); // commits
    CHECK(std::ranges::count(of_a, (a + 2) % 3) == 0);
    for (std::size_t host = 0; host < 3; ++host)
      net.faults(host).set_rule({});
  }
}

/// What a move costs besides the messages that it passes on.
struct cost {
  std::size_t answers = 0; ///< records of the target to the source
  std::size_t store_calls = 0;
  friend bool operator==(const cost&, const cost&) = default;
};
cost cost_of_moving(std::uint64_t captured, std::uint64_t held, std::uint64_t late) {
  cost all;
  stage on;
  barrier handler;
  barrier restore;
  tampered_wire wire;
  mesh net{{.hosts = 2, .adjust = wire.taps()}};
  const lane_scene s{net, on};
  on.during = [&](const std::string& step, const std::string&) {
    return step == "handle" ? handler.passed() : step == "restore" ? restore.passed() : zlink::task<void>::done();
  };
  auto running = count(net.host(s.from), "a", "r", 0);
  net.run_until([&] { return handler.waiting() == 1; });
  for (std::uint64_t i = 0; i < captured; ++i)
    net.run(jot(net.host(s.from), "a", "q", i));
  net.run_until_idle();
  for (std::size_t host = 0; host < 2; ++host)
    net.faults(host).clear_log();
  wire.sent.clear();
  auto moving = start_move(net, "a", s.from, s.to);
  net.advance(5ms);
  handler.open();
  net.run_until([&] { return restore.waiting() == 1; });
  for (std::uint64_t i = 0; i < held; ++i)
    net.run(jot(net.host(s.from), "a", "h", i));
  net.host(s.from).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::cutover_sent)
      for (std::uint64_t i = 0; i < late; ++i)
        static_cast<void>(net.host(s.from).spots().send_to_spot("a", note{"l", i}).submit());
  };
  restore.open();
  CHECK(net.run(std::move(moving)).left);
  net.run_until([&] { return lives(net, s.to, "a") && !lives(net, s.from, "a"); });
  net.run_until([&] { return on.count("handle a") == static_cast<int>(1 + captured + held + late); });
  CHECK(net.run(std::move(running)).number == 0);
  for (const auto& record : wire.sent)
    if (record.host == s.to && record.command != control_command::chunks_taken) // of bytes, and about nothing else
      ++all.answers;
  for (std::size_t host = 0; host < 2; ++host)
    all.store_calls += static_cast<std::size_t>(std::ranges::count_if(net.faults(host).log(), [](const auto& call) {
      return call.what == store_operation::put || call.what == store_operation::erase
             || (call.what == store_operation::write && call.key.starts_with(zlink::placement::spot_key("a")));
    }));
  return all;
}

TEST_CASE("L-7 L-65 no acknowledgement and no journal: a thousand messages cost what none cost, in answers and in the store") {
  const auto none = cost_of_moving(0, 0, 0);
  CHECK(none.answers == 1); // relay-ready
  CHECK(none.store_calls >= 3); // prepared, reserved, committed
  CHECK(cost_of_moving(1000, 0, 0) == none);
  CHECK(cost_of_moving(0, 1000, 0) == none);
  CHECK(cost_of_moving(0, 0, 1000) == none);
}

TEST_CASE("L-7 L-63 a mailbox that is never empty, and messages without an end, stop no move") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  std::uint64_t number = 0;
  bool go_on = true;
  on.at = [&](const std::string& step, const std::string&) { // each makes another one before it ends: one always waits
    if (step == "handle" && go_on)
      static_cast<void>(net.host(lives(net, 1 - from, "a") ? 1 - from : from).spots().send_to_spot("a", note{"n", ++number}).submit());
  };
  std::size_t waiting_at_seal = 0;
  net.host(from).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::sealed)
      waiting_at_seal = number - static_cast<std::size_t>(on.count("handle a n/"));
  };
  net.host(1 - from).runtime().moving.on_step = [&](move_step step, const std::string&) { go_on = go_on && step != move_step::opened; };
  auto moving = start_move(net, "a", from, 1 - from, 5s);
  for (int i = 0; i < 3; ++i)
    static_cast<void>(net.host(from).spots().send_to_spot("a", note{"n", ++number}).submit());
  CHECK(net.run(std::move(moving)).left);
  net.run_until([&] { return lives(net, 1 - from, "a") && !lives(net, from, "a"); });
  CHECK(waiting_at_seal == 3);
  CHECK(number > 3);
  net.run_until([&] { return on.count("handle a n/") == static_cast<int>(number); });
}

TEST_CASE("L-7 L-64 L-107 no count of records, bytes or members makes a move fail") {
  stage on;
  mesh net{2};
  net.start(serve_rooms(on));
  const table t{net, on, "r", {"ada"}};
  constexpr int many = 300;
  for (int i = 0; i < many; ++i) {
    const auto who = "p" + std::to_string(i);
    net.run(net.host(0).actors().create(who, "player").submit());
    go_to(net, on, who, t.room);
  }
  barrier handler;
  on.hold("handle", handler);
  auto running = say(net.host(t.home), "ada", "now", 60s);
  net.run_until([&] { return handler.waiting() == 1; });
  auto moving = start_move(net, t.room, t.home, 1 - t.home);
  net.advance(10ms);
  bool sealed = false;
  std::vector<zlink::task<void>> sends;
  net.host(t.home).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step != move_step::captured || std::exchange(sealed, true))
      return;
    for (int i = 0; i < 50'000; ++i)
      sends.push_back(net.host(t.home).actors().send_to_actor("p" + std::to_string(i % many), play{"h" + std::to_string(i)}).submit());
  };
  on.during = nullptr;
  handler.open();
  CHECK(net.run(std::move(moving)).left);
  net.run_until([&] { return on.count("handle p") == 50'000; });
  for (auto& one : sends)
    CHECK(one.ready());
  const auto view = net.run(call_roll(net.host(0), t.room));
  CHECK(view.members.size() == many + 1);
  CHECK(view.rid == rid_of(net, 1 - t.home));
  static_cast<void>(net.run(zlink::as_result(std::move(running))));
}

/// Members by the node that owns them, as the store shows it.
std::pair<std::size_t, std::size_t> halves_of(mesh& net, const std::vector<std::string>& members, const std::string& room, std::size_t from, std::size_t to) {
  std::pair<std::size_t, std::size_t> halves;
  for (const auto& who : members) {
    const auto row = player_row(net, who);
    REQUIRE(row);
    CHECK(row->member_of->spot_id == room);
    halves.first += row->node.node_rid == rid_of(net, from) ? 1 : 0;
    halves.second += row->node.node_rid == rid_of(net, to) ? 1 : 0;
  }
  return halves;
}
std::uint32_t actors_active_on(mesh& net, std::size_t host) {
  const auto seen = stored<zlink::placement::capacity_record>(net, zlink::placement::capacity_key("m", rid_of(net, host)));
  return seen.record ? seen.record->actors.active : 0;
}

TEST_CASE("S-92 L-153 a PerActor room moves its Spot first, then each member by itself; both halves add up at every step") {
  stage on;
  mesh net{2};
  net.start(serve_rooms(on, {.per_actor = true}));
  const std::vector<std::string> members{"ada", "bob", "cyd", "dan"};
  const table t{net, on, "r", members};
  const auto to = 1 - t.home;
  using pair = std::pair<std::size_t, std::size_t>;
  const auto check_sum = [&](pair expected) {
    CHECK(halves_of(net, members, t.room, t.home, to) == expected);
    CHECK(actors_active_on(net, t.home) + actors_active_on(net, to) == members.size());
  };
  std::size_t looks = 0;
  const auto look = [&](move_step, const std::string&) { // at every step of either side
    const auto halves = halves_of(net, members, t.room, t.home, to);
    CHECK(halves.first + halves.second == members.size());
    CHECK(actors_active_on(net, t.home) + actors_active_on(net, to) == members.size());
    if (halves.second != 0)
      CHECK(row_of(net, t.room)->node.node_rid == rid_of(net, to)); // never before the Spot
    ++looks;
  };
  for (std::size_t host = 0; host < 2; ++host)
    net.host(host).runtime().moving.on_step = look;
  check_sum({4, 0});
  CHECK(net.run(start_move(net, t.room, t.home, to)).left);
  net.run_until([&] { return lives(net, to, t.room) && !lives(net, t.home, t.room); });
  check_sum({4, 0});
  for (std::size_t i = 0; i < members.size(); ++i) {
    CHECK(on.count("closing " + t.room) == 0); // it serves who is left
    const auto& who = members[i];
    CHECK(net.run(start_actor_move(net, who, t.home, to, unit_kind::member_actor)).left);
    net.run_until([&, who] { return player_lives(net, to, who) && !player_lives(net, t.home, who); });
    check_sum({3 - i, i + 1});
    for (std::size_t j = 0; j < members.size(); ++j)
      CHECK(net.run(say(net.host(to), members[j], "x")).rid == rid_of(net, j <= i ? to : t.home));
  }
  net.run_until([&] { return on.count("closing " + t.room + " relocation_out") == 1; }); // over with the last one only
  CHECK(looks > 50);
}

} // namespace
} // namespace relocation_test
