// Rooms with their members, and Joins to other nodes, while source, target, link or store fail: at every step, and at random
// moments (05 section 7, 06 sections 11 to 14, 23 and 24).
#include "tests/contract/relocation/faults.hpp"
#include "tests/contract/relocation/room_scene.hpp"

#include <cstdlib>

namespace relocation_test {
namespace {

using words = std::vector<std::string>;

enum class kind { room, join, spot };
const char* to_string(kind what) { return what == kind::room ? "room" : what == kind::join ? "join" : "spot"; }

std::uint64_t number_of_runs() {
  const char* longer = std::getenv("ZLINK_TEST_LONG");
  return longer != nullptr && *longer != '\0' && *longer != '0' ? 10'000 : 510;
}

/// Something that moves from host `from` to host `to` of three, everybody who talks to it, and what they were told.
class trial {
public:
  trial(kind what, std::uint64_t seed) : what_(what), net({.hosts = 3, .seed = seed, .max_link_delay = 2ms, .max_store_delay = 2ms}) {
    net.start([this](zlink::host& host) {
      serve_rooms(on)(host);
      add_ledgers(host.mesh("m").object_server(), on);
    });
    switch (what_) {
      case kind::room: {
        const table t{net, on, "r", {"ada", "bob"}};
        room = t.room;
        from = t.home;
        players = {"ada", "bob"};
        break;
      }
      case kind::join: {
        const table t{net, on, "r", {}};
        room = t.room;
        from = (t.home + 1) % 3;
        net.run(net.host(0).actors().create("ada", "player").submit());
        if (const auto at = home_of_player(net, "ada"); at != from) {
          REQUIRE(net.run(start_actor_move(net, "ada", at, from)).left);
          net.run_until([&] { return !player_lives(net, at, "ada") && player_lives(net, from, "ada"); });
        }
        players = {"ada"};
        to = t.home;
        break;
      }
      case kind::spot:
        net.run(rouse(net.host(0), "a"));
        from = net.owner_of("a");
        break;
    }
    if (what_ != kind::join)
      to = (from + 1) % 3;
    net.run_until_idle();
    on.trace.clear();
  }

  void begin() {
    for (const auto host : {from, to})
      net.host(host).runtime().moving.on_step = [this](move_step step, const std::string&) {
        reached = reached || (at && step == *at);
        // Before the target is the owner nothing of it runs there, and nothing before its dispatch opens (L-3, L-4).
        if (step == move_step::opened)
          opened = true;
      };
    if (what_ == kind::join)
      net.run(net.host(from).actors().send_to_actor("ada", enter{room}).submit());
    else
      moving.emplace(what_ == kind::room ? start_move(net, room, from, to, 8s) : start_move(net, "a", from, to, 8s));
  }

  void suffer(fault what) { dead = strike(net, what, from, to).value_or(dead); }

  /// Each host that lives asks, one request after the other.
  void talk(std::chrono::milliseconds time) {
    const auto until = net.elapsed() + time;
    for (auto pause = 1ms; net.elapsed() < until; pause = std::min<std::chrono::milliseconds>(pause * 2, 500ms)) {
      for (std::size_t host = 0; host < 3; ++host)
        if (host != dead && !waits[host])
          ask(host);
      net.advance(std::min<std::chrono::nanoseconds>(pause, until - net.elapsed()));
    }
  }
  void ask(std::size_t host) {
    waits[host] = true;
    const auto number = ++sent[host];
    const auto word = "s" + std::to_string(host) + '/' + std::to_string(number);
    const auto ended = [this, host, word](bool well) {
      CHECK_MESSAGE(++outcomes[word] == 1, word);
      if (well)
        answered.push_back(word);
      waits[host] = false;
    };
    if (what_ == kind::spot)
      count(net.host(host), "a", "s" + std::to_string(host), number, 3s).then([ended](zlink::result<count_up> end) { ended(end.has_value()); });
    else
      say(net.host(host), players[number % players.size()], word, 3s).then([ended](zlink::result<played> end) { ended(end.has_value()); });
  }
  void finish() {
    talk(3s);
    net.heal();
    talk(45s);
    net.run_until([&] {
      for (std::size_t host = 0; host < 3; ++host)
        if (host != dead && waits[host])
          return false;
      return true;
    });
    check();
  }

private:
  void check() {
    const std::size_t asking = dead == 2 ? 0 : 2;
    std::map<std::string, int> ran;
    bool all_there = true;
    const auto take = [&](const words& heard) {
      std::map<std::string, std::uint64_t> last;
      for (const auto& word : heard) {
        CHECK_MESSAGE(++ran[word] == 1, word << " ran twice");
        const auto slash = word.find('/');
        if (word.front() != 's' || !std::ranges::count(answered, word))
          continue; // whose caller had given it up: it may have been anywhere (L-139)
        const auto number = std::stoull(word.substr(slash + 1));
        auto& before = last[word.substr(0, slash)];
        CHECK_MESSAGE(number > before, word << " ran behind " << before);
        before = number;
      }
    };
    if (what_ == kind::spot) {
      const auto seen = net.run(zlink::as_result(net.host(asking).spots().request_to_spot("a", look{}).submit<ledger_view>()));
      all_there = seen.has_value();
      if (seen)
        take(seen->entries);
    }
    std::set<std::string> rids;
    for (const auto& who : players) {
      const auto seen = net.run(zlink::as_result(say(net.host(asking), who, "last")));
      all_there = all_there && seen.has_value();
      if (!seen)
        continue;
      rids.insert(seen->rid);
      auto heard = seen->heard;
      heard.pop_back();
      take(heard);
      int homes = 0;
      for (std::size_t host = 0; host < 3; ++host)
        homes += host != dead && player_lives(net, host, who) ? 1 : 0;
      CHECK_MESSAGE(homes == 1, who << " is at " << homes << " hosts");
    }
    CHECK_MESSAGE(rids.size() <= 1, "a room at two places");
    if (all_there)
      for (const auto& word : answered)
        CHECK_MESSAGE(ran[word] == 1, word << " was answered, and is not there");
    CHECK(on.count("left r") == 0);
    if (dead == 3)
      CHECK_MESSAGE(all_there, "it is gone, and nobody was killed");
    if (what_ == kind::join)
      check_join(asking);
    if (what_ == kind::room && all_there) {
      const auto view = net.run(zlink::as_result(call_roll(net.host(asking), room)));
      REQUIRE(view);
      auto members = view->members;
      std::ranges::sort(members);
      CHECK(members == players);
      go_on(asking);
    }
  }
  /// Where the Actor is, what it was told and what the row says is the same.
  void check_join(std::size_t) {
    const auto accepted = on.count("completed ada accepted");
    const auto failed = on.count("completed ada failed");
    CHECK(accepted + failed <= 1);
    if (dead == 3)
      CHECK(accepted + failed == 1);
    const auto row = player_row(net, "ada");
    if (!row || !row->member_of || dead == from || dead == to)
      return;
    const bool in_room = row->member_of->spot_id == room;
    CHECK(in_room == (accepted == 1));
    CHECK(row->node.node_rid == rid_of(net, in_room ? to : from));
    CHECK(on.count("joined " + room) == (in_room ? 1 : 0));
    net.run_until_idle();
    CHECK(on.count("left hall ada") == (in_room ? 1 : 0));
    const auto view = net.run(call_roll(net.host(2), room));
    CHECK(view.members == (in_room ? words{"ada"} : words{}));
  }
  /// Nothing of the move is in the way of what comes: people leave and come, and the room moves.
  void go_on(std::size_t asking) {
    if (dead != 3)
      return;
    const auto at = home_of(net, room);
    net.run(net.host(asking).actors().send_to_actor("ada", enter{""}).submit());
    net.run_until([&] { return on.count("completed ada accepted") == 1; });
    const auto next = (at + 1) % 3;
    CHECK(net.run(start_move(net, room, at, next)).left);
    net.run_until([&] { return lives(net, next, room) && !lives(net, at, room); });
    CHECK(host_of(net, net.run(say(net.host(asking), "bob", "moved")).rid) == next);
  }

public:
  stage on;
  const kind what_;
  std::string room;
  words players;
  std::size_t from = 3;
  std::size_t to = 3;
  std::size_t dead = 3;
  std::optional<move_step> at;
  bool reached = false;
  bool opened = false;
  bool waits[3] = {};
  std::uint64_t sent[3] = {};
  std::map<std::string, int> outcomes;
  words answered;
  std::optional<zlink::task<zlink::detail::unit_end>> moving;
  mesh net; ///< last: what is left of it still writes evidence when it ends
};

void at_every_step(kind what) {
  for (std::size_t i = 0; i < zlink::detail::move_steps; ++i)
    for (const auto how : all_faults) {
      if (is_left_out(i, how, static_cast<std::size_t>(what)))
        continue;
      const auto step = static_cast<move_step>(i);
      const std::string where = std::string{to_string(what)} + ", step " + zlink::detail::to_string(step) + ", " + to_string(how);
      INFO(where);
      trial t{what, i * 31 + 7};
      t.at = step;
      t.begin();
      const auto until = t.net.elapsed() + 10s;
      while (!t.reached && t.net.elapsed() < until)
        t.talk(1ms);
      if (!t.reached)
        break; // not on this course
      t.suffer(how);
      t.finish();
    }
}

TEST_CASE("L-3 L-130 L-142 L-160 L-161 L-163 L-187 L-196 a room with members, a fault at every step: one place for all of them, order, one outcome each") {
  at_every_step(kind::room);
}

TEST_CASE("J-100 J-103 J-104 L-3 L-130 L-163 a Join to another node, a fault at every step: one membership, one completion, order, one outcome each") {
  at_every_step(kind::join);
}

TEST_CASE("L-3 L-130 L-142 J-104 faults at random moments: a Spot, a room with members and a Join are at one place, in order, once") {
  const auto runs = is_slow_build() ? number_of_runs() / 3 : number_of_runs();
  for (std::uint64_t seed = 1; seed <= runs; ++seed) {
    const auto what = static_cast<kind>(seed % 3);
    std::uint64_t dice = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    const auto draw = [&dice](std::uint64_t below) {
      dice = dice * 6364136223846793005ULL + 1442695040888963407ULL;
      return (dice >> 33) % below;
    };
    const auto how = all_faults[draw(6)];
    const auto first = std::chrono::microseconds{draw(80'000)};
    const std::string where = "seed " + std::to_string(seed) + ", " + to_string(what) + ", " + to_string(how) + " after " + std::to_string(first.count()) + " us";
    INFO(where);
    trial t{what, seed};
    t.begin();
    const auto until = t.net.elapsed() + first;
    while (t.net.elapsed() < until) {
      for (std::size_t host = 0; host < 3; ++host)
        if (!t.waits[host])
          t.ask(host);
      t.net.advance(std::min<std::chrono::nanoseconds>(1ms, until - t.net.elapsed()));
    }
    t.suffer(how);
    if (draw(2) == 0) { // and another one, that kills nobody
      t.talk(std::chrono::milliseconds{draw(1500)});
      t.suffer(all_faults[2 + draw(4)]);
    }
    t.finish();
  }
}

} // namespace
} // namespace relocation_test
