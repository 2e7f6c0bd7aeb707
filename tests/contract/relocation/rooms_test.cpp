// Actors, rooms with all their members, and rooms that say when (06 sections 2, 4, 12, 13, 17).
#include "tests/contract/relocation/room_scene.hpp"

namespace relocation_test {
namespace {

using words = std::vector<std::string>;
using zlink::detail::unit_kind;

TEST_CASE("L-10 L-11 L-195 J-107 an Actor of an Entry Spot moves to the target's, with its state, and no Spot hears of it") {
  stage on;
  mesh net{2};
  net.start(serve_rooms(on));
  net.run(net.host(0).actors().create("ada", "player").submit());
  const auto from = home_of_player(net, "ada");
  net.run(say(net.host(0), "ada", "one"));
  const auto before = player_row(net, "ada");
  on.trace.clear();
  CHECK(net.run(start_actor_move(net, "ada", from, 1 - from)).left);
  net.run_until([&] { return player_lives(net, 1 - from, "ada") && !player_lives(net, from, "ada"); });
  const auto answer = net.run(say(net.host(from), "ada", "two"));
  CHECK(answer.heard == words{"one", "two"});
  CHECK(answer.rid == rid_of(net, 1 - from));
  CHECK(answer.room == "hall");
  CHECK(on.count("capture ada") == 1);
  CHECK(on.count("restore ada") == 1);
  CHECK(on.count("joined") == 0);
  CHECK(on.count("left") == 0);
  CHECK(on.count("closing") == 0);
  net.run_until([&] { return on.count("destroy ada") == 1; });
  const auto after = player_row(net, "ada");
  CHECK(after->generation == before->generation);
  CHECK(after->authority > before->authority);
  CHECK(after->member_of->spot_id == net.host(1 - from).runtime().find_node("m")->entry_id);
}

TEST_CASE("L-10 L-110 L-147 L-155 L-196 a SpotWide room moves with all its members as one, and nobody joins or leaves by that") {
  stage on;
  mesh net{3};
  net.start(serve_rooms(on));
  const table t{net, on, "r", {"ada", "bob", "cyd"}};
  for (const auto* who : {"ada", "bob", "cyd", "ada"})
    net.run(say(net.host(0), who, "before"));
  on.trace.clear();
  const auto to = (t.home + 1) % 3;
  auto moving = start_move(net, t.room, t.home, to);
  CHECK(net.run(std::move(moving)).left);
  for (const auto* who : {"cyd", "bob", "ada"}) {
    const auto answer = net.run(say(net.host((to + 1) % 3), who, "after"));
    CHECK(answer.rid == rid_of(net, to));
    CHECK(answer.room == t.room);
    CHECK(answer.heard.back() == "after");
    CHECK(answer.heard.front() == "before");
  }
  const auto view = net.run(call_roll(net.host(0), t.room));
  CHECK(view.members == words{"ada", "bob", "cyd"});
  CHECK(view.words == words{"ada before", "bob before", "cyd before", "ada before", "cyd after", "bob after", "ada after"});
  CHECK(on.count("joined") == 0);
  CHECK(on.count("left") == 0);
  net.run_until([&] { return on.count("closing " + t.room + " relocation_out") == 1; });
  net.run_until_idle();
  for (const auto* who : {"ada", "bob", "cyd"}) {
    const auto row = player_row(net, who);
    CHECK(row->node.node_rid == rid_of(net, to));
    CHECK(row->member_of->spot_id == t.room);
    CHECK(!row->aggregate);
  }
  // It is a room like any other: people leave it, come, and it moves on.
  go_to(net, on, "bob", "");
  CHECK(net.run(call_roll(net.host(0), t.room)).members == words{"ada", "cyd"});
  go_to(net, on, "bob", t.room);
  CHECK(net.run(start_move(net, t.room, to, t.home)).left);
  net.run_until([&] { return lives(net, t.home, t.room) && !lives(net, to, t.room); });
  CHECK(net.run(say(net.host(0), "bob", "home")).rid == rid_of(net, t.home));
}

TEST_CASE("L-41 L-44 L-45 L-46 L-48 a signalled room works on until it says so, and hears of the end before its next message") {
  stage on;
  mesh net{2};
  net.start(serve_rooms(on, {.signalled = true}));
  const table t{net, on, "r", {"ada"}};
  on.trace.clear();
  auto moving = start_move(net, t.room, t.home, 1 - t.home);
  net.advance(2s);
  CHECK(on.count("capture") == 0);
  CHECK(net.run(say(net.host(0), "ada", "while it waits")).rid == rid_of(net, t.home));
  barrier boundary;
  on.hold("boundary", boundary);
  on.trace.clear();
  CHECK(net.run(net.host(0).spots().request_to_spot(t.room, round_end{}).submit<room_view>()).rounds == 1);
  CHECK(net.run(std::move(moving)).left);
  auto later = say(net.host(0), "ada", "behind");
  net.run_until([&] { return boundary.waiting() == 1; });
  net.advance(100ms);
  CHECK(on.count("handle") == 0);
  CHECK(on.count("boundary " + t.room + " relocated") == 1);
  boundary.open();
  CHECK(net.run(std::move(later)).rid == rid_of(net, 1 - t.home));
  CHECK(on.count("boundary") == 1);
}

TEST_CASE("L-44 L-48 a signalled room whose move comes to nothing goes on, and is told so once if it had said so") {
  for (const bool signals : {false, true}) {
    CAPTURE(signals);
    stage on;
    mesh net{2};
    net.start(serve_rooms(on, {.signalled = true}));
    const table t{net, on, "r", {"ada"}};
    on.at = [](const std::string& step, const std::string&) {
      if (step == "restore")
        throw std::runtime_error{"no"};
    };
    auto moving = start_move(net, t.room, t.home, 1 - t.home, 3s);
    net.advance(1s);
    if (signals)
      net.run(net.host(0).spots().request_to_spot(t.room, round_end{}).submit<room_view>());
    const auto end = net.run(std::move(moving));
    CHECK(!end.left);
    CHECK(end.reason == (signals ? relocate_reason::state_incompatible : relocate_reason::deadline_exceeded));
    CHECK(net.run(say(net.host(0), "ada", "on")).rid == rid_of(net, t.home));
    CHECK(on.count("boundary " + t.room + " continued") == (signals ? 1 : 0));
    net.run(net.host(0).spots().request_to_spot(t.room, round_end{}).submit<room_view>());
    net.run_until([&] { return on.count("boundary " + t.room + " continued") == (signals ? 2 : 1); });
    on.at = nullptr;
    go_to(net, on, "ada", ""); // nobody is kept from leaving
    CHECK(net.run(say(net.host(0), "ada", "home")).room == "hall");
  }
}

TEST_CASE("L-111 L-152 L-153 L-154 L-205 a PerActor room moves as a shell, then each member by itself") {
  stage on;
  mesh net{2};
  net.start(serve_rooms(on, {.per_actor = true}));
  const table t{net, on, "r", {"ada", "bob"}};
  net.run(say(net.host(0), "ada", "one"));
  net.run(say(net.host(0), "bob", "one"));
  on.trace.clear();
  const auto to = 1 - t.home;
  CHECK(net.run(start_move(net, t.room, t.home, to)).left);
  net.run_until([&] { return lives(net, to, t.room) && !lives(net, t.home, t.room); });
  CHECK(net.run(call_roll(net.host(t.home), t.room)).rid == rid_of(net, to));
  CHECK(net.run(say(net.host(0), "ada", "two")).rid == rid_of(net, t.home)); // served by the shell that stays for them
  CHECK(on.count("closing") == 0);
  CHECK(net.run(start_actor_move(net, "ada", t.home, to, unit_kind::member_actor)).left);
  net.run_until([&] { return player_lives(net, to, "ada") && !player_lives(net, t.home, "ada"); });
  CHECK(net.run(say(net.host(0), "ada", "three")).heard == words{"one", "two", "three"});
  CHECK(net.run(say(net.host(0), "bob", "two")).rid == rid_of(net, t.home));
  CHECK(on.count("closing") == 0);
  CHECK(net.run(start_actor_move(net, "bob", t.home, to, unit_kind::member_actor)).left);
  net.run_until([&] { return on.count("closing " + t.room + " relocation_out") == 1; });
  const auto answer = net.run(say(net.host(t.home), "bob", "three"));
  CHECK(answer.rid == rid_of(net, to));
  CHECK(answer.room == t.room);
  CHECK(player_row(net, "bob")->member_of->spot_id == t.room);
  CHECK(on.count("joined") == 0);
  CHECK(on.count("left") == 0);
}

TEST_CASE("L-152 L-222 L-224 a member that comes before its PerActor room is open at the target waits for it") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    stage on;
    mesh net{{.hosts = 2, .seed = seed, .max_link_delay = 2ms, .max_store_delay = 20ms}};
    net.start(serve_rooms(on, {.per_actor = true}));
    const table t{net, on, "r", {"ada"}};
    const auto to = 1 - t.home;
    CHECK(net.run(start_move(net, t.room, t.home, to)).left); // nobody has confirmed the commit
    const auto end = net.run(start_actor_move(net, "ada", t.home, to, unit_kind::member_actor));
    CAPTURE(end.why);
    CHECK(end.left);
    net.run_until([&] { return player_lives(net, to, "ada"); });
  }
}

TEST_CASE("L-223 L-226 S-88 a room that moves on before its former aggregate is dissolved leaves that by itself, and nothing of it stays") {
  for (const auto go_on_at : {move_step::sessions_sealed, move_step::followed_long_enough}) {
    CAPTURE(static_cast<int>(go_on_at));
    stage on;
    mesh net{2};
    net.start(serve_rooms(on));
    const table t{net, on, "r", {"ada", "bob"}};
    const auto to = 1 - t.home;
    std::string former;
    const auto go_on = [&](move_step step, const std::string&) {
      if (step == move_step::opened) { // its dissolution comes as far as the list, and stands still
        const auto aggregate = row_of(net, t.room)->aggregate;
        former = zlink::placement::aggregate_key(aggregate);
        net.faults(to).once(zlink::testing::store_operation::read, zlink::placement::aggregate_page_key(aggregate, 0), zlink::testing::store_fault::hold_call);
      }
      if (step == go_on_at)
        net.faults(to).release_all();
    };
    net.host(to).runtime().moving.on_step = go_on;
    CHECK(net.run(start_move(net, t.room, t.home, to)).left);
    net.run_until([&] { return lives(net, to, t.room) && !lives(net, t.home, t.room) && net.faults(to).held() == 1; });
    const auto end = net.run(start_move(net, t.room, to, t.home));
    CAPTURE(end.why);
    CHECK(end.left);
    net.advance(40s);
    for (const auto* who : {"ada", "bob"}) {
      CHECK(net.run(say(net.host(0), who, "back")).rid == rid_of(net, t.home));
      CHECK(!player_row(net, who)->aggregate);
    }
    CHECK(!row_of(net, t.room)->aggregate);
    net.faults(to).release_all();
    net.run_until_idle();
    CHECK(!stored<zlink::placement::aggregate_record>(net, former).record);
  }
}

/// The steps of the moves of a mesh, by host. Outlives the mesh.
struct steps_seen {
  void watch(mesh& net) {
    for (std::size_t host = 0; host < net.size(); ++host)
      net.host(host).runtime().moving.on_step = [this, host](move_step step, const std::string&) { of[host].push_back(step); };
  }
  std::map<std::size_t, std::vector<move_step>> of;
};

TEST_CASE("L-1 all kinds of units and Joins go the same way, step by step") {
  std::vector<move_step> out;
  std::vector<move_step> in;
  const auto same_way = [&](mesh& net, steps_seen& seen, std::size_t from, std::size_t to) {
    net.run_until([&] { return !seen.of[from].empty() && seen.of[from].back() == move_step::source_closed && !seen.of[to].empty() && seen.of[to].back() == move_step::sessions_told; });
    if (out.empty()) {
      out = seen.of[from];
      in = seen.of[to];
      CHECK(out.size() == 10);
      CHECK(in.size() == 11);
    }
    CHECK(seen.of[from] == out);
    CHECK(seen.of[to] == in);
    seen.of.clear();
  };
  {
    stage on;
    steps_seen seen;
    mesh net{2};
    net.start(serve(on));
    net.run(rouse(net.host(0), "a"));
    net.run_until_idle();
    const auto from = net.owner_of("a");
    seen.watch(net);
    CHECK(net.run(start_move(net, "a", from, 1 - from)).left);
    same_way(net, seen, from, 1 - from);
  }
  for (const bool per_actor : {false, true}) {
    stage on;
    steps_seen seen;
    mesh net{2};
    net.start(serve_rooms(on, {.per_actor = per_actor}));
    const table t{net, on, "r", {"ada"}};
    const auto to = 1 - t.home;
    seen.watch(net);
    CHECK(net.run(start_move(net, t.room, t.home, to)).left);
    if (!per_actor) {
      same_way(net, seen, t.home, to);
      continue;
    }
    net.run_until([&] { return lives(net, to, t.room) && !lives(net, t.home, t.room); });
    seen.of.clear();
    CHECK(net.run(start_actor_move(net, "ada", t.home, to, unit_kind::member_actor)).left);
    net.run_until([&] { return on.count("closing " + t.room + " relocation_out") == 1; });
    std::erase(seen.of[t.home], move_step::source_closed); // of the shell, which ends with its last member
    seen.of[t.home].push_back(move_step::source_closed);
    same_way(net, seen, t.home, to);
  }
  {
    stage on;
    steps_seen seen;
    mesh net{2};
    net.start(serve_rooms(on));
    const auto room = net.run(net.host(0).spots().get_or_create("r", "room").submit()).spot;
    const auto there = host_of(net, room.node_rid);
    net.run(net.host(0).actors().create("ada", "player").submit());
    net.run_until_idle();
    seen.watch(net);
    if (const auto at = home_of_player(net, "ada"); at == there) {
      CHECK(net.run(start_actor_move(net, "ada", there, 1 - there)).left);
      same_way(net, seen, there, 1 - there);
    }
    seen.of.clear();
    go_to(net, on, "ada", "r");
    same_way(net, seen, 1 - there, there);
  }
}

} // namespace
} // namespace relocation_test
