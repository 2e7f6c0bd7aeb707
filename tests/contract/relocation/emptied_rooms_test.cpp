// A PerActor room whose host is emptied, while source, target, link or store fail at every step of its shell and of its members
// (06 sections 12, 18, 23 and 24).
#include "tests/contract/relocation/faults.hpp"
#include "tests/contract/relocation/room_scene.hpp"

namespace relocation_test {
namespace {

using words = std::vector<std::string>;

/// A room with ada and bob that is told to leave its host, for one of two others, and everybody who talks to them.
class emptied_room {
public:
  explicit emptied_room(std::uint64_t seed) : net({.hosts = 3, .seed = seed, .max_link_delay = 2ms, .max_store_delay = 2ms}) {
    net.start(serve_rooms(on, {.per_actor = true}));
    const table t{net, on, "r", players};
    room = t.room;
    from = t.home;
    to = (from + 1) % 3;
    net.host(3 - from - to).mesh("m").placement_weight(0); // only the other one may be chosen
    net.advance(2s);
    on.trace.clear();
    for (const auto& who : players)
      net.run(say(net.host(0), who, "zero"));
  }

  /// That step, of the room's shell or of one of its members.
  void strike_at(move_step step, bool of_member) {
    for (const auto host : {from, to})
      net.host(host).runtime().moving.on_step = [this, step, of_member](move_step now, const std::string& address) {
        const bool member = address == zlink::detail::actor_address("ada");
        reached = reached || (now == step && (of_member ? member : address == room));
      };
    zlink::relocate_options how;
    how.deadline = 8s;
    leaving.emplace(net.host(from).relocate(how));
  }
  void suffer(fault what) { dead = strike(net, what, from, to).value_or(dead); }
  void talk(std::chrono::milliseconds time) {
    const auto until = net.elapsed() + time;
    for (auto pause = 1ms; net.elapsed() < until; pause = std::min<std::chrono::milliseconds>(pause * 2, 500ms)) {
      for (std::size_t host = 0; host < 3; ++host)
        if (host != dead && !waits[host])
          ask(host);
      net.advance(std::min<std::chrono::nanoseconds>(pause, until - net.elapsed()));
    }
  }
  void finish() {
    talk(3s);
    net.heal();
    talk(45s);
    net.run_until([&] { return std::ranges::all_of(std::array{0, 1, 2}, [&](int host) { return static_cast<std::size_t>(host) == dead || !waits[host]; }); });
    check();
  }

private:
  void ask(std::size_t host) {
    waits[host] = true;
    const auto number = ++sent[host];
    const auto word = "s" + std::to_string(host) + '/' + std::to_string(number);
    say(net.host(host), players[number % players.size()], word, 3s).then([this, host, word](zlink::result<played> end) {
      CHECK_MESSAGE(++ends[word] == 1, word);
      if (end)
        answered.insert(word);
      waits[host] = false;
    });
  }
  void check() {
    const std::size_t asking = dead == 2 ? 0 : 2;
    std::map<std::string, int> ran;
    bool all_there = true;
    for (const auto& who : players) {
      int homes = 0;
      for (std::size_t host = 0; host < 3; ++host)
        homes += host != dead && player_lives(net, host, who) ? 1 : 0;
      const auto seen = net.run(zlink::as_result(say(net.host(asking), who, "last")));
      all_there = all_there && seen.has_value();
      CHECK((seen || seen.error().kind() == error_kind::unavailable));
      CHECK_MESSAGE(homes == (seen ? 1 : 0), who << " is at " << homes << " hosts");
      if (!seen)
        continue;
      CHECK(seen->room == room);
      const auto row = player_row(net, who);
      REQUIRE(row);
      CHECK(row->node.node_rid == seen->rid);
      CHECK(row->member_of->spot_id == room);
      for (const auto& word : seen->heard)
        CHECK_MESSAGE(++ran[who + ' ' + word] == 1, word << " ran twice");
    }
    if (dead == 3)
      CHECK_MESSAGE(all_there, "somebody is gone, and nobody was killed");
    if (all_there)
      for (const auto& word : answered)
        CHECK_MESSAGE(ran["ada " + word] + ran["bob " + word] == 1, word << " was answered, and is not there");
    CHECK(on.count("joined") + on.count("left") + on.count("completed") + on.count("gate") == 0); // L-153
    int rooms = 0;
    for (std::size_t host = 0; host < 3; ++host)
      rooms += host != dead && lives(net, host, room) ? 1 : 0;
    CHECK(rooms <= 1);
    check_counts();
    if (dead == 3)
      go_on(asking);
  }
  /// What shell and shell say of their members, and the members themselves, come to the same (L-153).
  void check_counts() {
    for (std::size_t host = 0; host < 3; ++host) {
      if (host == dead)
        continue;
      std::size_t here = 0;
      std::size_t owned = 0; // one that was lost with its target keeps its row and its slot (L-163)
      for (const auto& who : players) {
        here += player_lives(net, host, who) ? 1 : 0;
        const auto row = player_row(net, who);
        owned += row && row->node.node_rid == rid_of(net, host) ? 1 : 0;
      }
      const auto seen = stored<zlink::placement::capacity_record>(net, zlink::placement::capacity_key("m", rid_of(net, host)));
      const auto bucket = seen.record ? seen.record->actors : zlink::placement::slot_bucket{};
      CHECK(bucket.reserved == 0);
      CHECK(bucket.active == owned);
      if (auto spot = net.host(host).runtime().objects.find(room))
        CHECK(spot->members().count() == here);
    }
  }
  /// Whatever came of it: what is left of the room leaves now, and people leave and come.
  void go_on(std::size_t asking) {
    const auto at = home_of(net, room);
    REQUIRE(at < 3);
    REQUIRE(leaving->ready());
    const auto end = net.run(std::move(*leaving));
    if (end.outcome != zlink::relocate_outcome::relocated) {
      CHECK(net.run(net.host(from).relocate({})).outcome == zlink::relocate_outcome::relocated);
      talk(2s);
    }
    net.advance(3s);
    for (const auto& who : players) {
      const auto told = net.run(say(net.host(asking), who, "moved"));
      CHECK(host_of(net, told.rid) == to);
      CHECK(told.room == room);
    }
    CHECK(home_of(net, room) == to);
    CHECK(on.count("closing " + room + " relocation_out") == 1); // L-154
    net.run(net.host(asking).actors().send_to_actor("ada", enter{""}).submit());
    net.run_until([&] { return on.count("completed ada accepted") == 1; });
  }

public:
  stage on;
  const words players{"ada", "bob"};
  std::string room;
  std::size_t from = 3;
  std::size_t to = 3;
  std::size_t dead = 3;
  bool reached = false;
  bool waits[3] = {};
  std::uint64_t sent[3] = {};
  std::map<std::string, int> ends;
  std::set<std::string> answered;
  std::optional<zlink::task<zlink::relocate_result>> leaving;
  mesh net; ///< last: what is left of it still writes evidence when it ends
};

TEST_CASE("L-3 L-130 L-142 L-152 L-153 L-154 L-160 L-163 a PerActor room, a fault at every step of its shell and of a member: one place each, one outcome each") {
  std::size_t met = 0;
  for (const bool of_member : {false, true})
    for (std::size_t i = 0; i < zlink::detail::move_steps; ++i)
      for (const auto how : all_faults) {
        const auto step = static_cast<move_step>(i);
        if (is_left_out(i, how, of_member ? 1 : 0))
          continue;
        const std::string where = std::string{of_member ? "a member" : "the shell"} + ", step " + zlink::detail::to_string(step) + ", " + to_string(how);
        INFO(where);
        emptied_room r{i * 31 + 7};
        r.strike_at(step, of_member);
        const auto until = r.net.elapsed() + 10s;
        while (!r.reached && r.net.elapsed() < until)
          r.talk(1ms);
        if (!r.reached)
          break; // not on this course
        ++met;
        r.suffer(how);
        r.finish();
      }
  CHECK(met >= (!is_slow_build() ? 2 * 6 * 15 : 2 * 2 * 15)); // of each at least the steps of a move that goes well
}

} // namespace
} // namespace relocation_test
