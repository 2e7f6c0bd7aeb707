// People who go from room to room of three hosts while one host after the other is emptied, by seeds (05 section 12, 06 sections 1 and
// 18): nobody is lost or twice there, and each Join and each request ends once.
#include "tests/contract/relocation/room_scene.hpp"

#include <cstdlib>

namespace relocation_test {
namespace {

using words = std::vector<std::string>;

std::uint64_t number_of_hunts() {
  const char* longer = std::getenv("ZLINK_TEST_LONG");
  return longer != nullptr && *longer != '\0' && *longer != '0' ? 3'000 : 300;
}

class wandering {
public:
  explicit wandering(std::uint64_t seed)
    : net({.hosts = 3, .seed = seed, .max_link_delay = 2ms, .max_store_delay = 2ms}), dice_(seed * 6364136223846793005ULL + 17) {
    net.start(serve_rooms(on, {.per_actor = seed % 2 == 0}));
    for (int i = 0; i < 3; ++i) {
      rooms.push_back("r" + std::to_string(i));
      net.run(net.host(0).spots().get_or_create(rooms.back(), "room").submit());
    }
    for (int i = 0; i < 4; ++i) {
      people.push_back("p" + std::to_string(i));
      net.run(net.host(0).actors().create(people.back(), "player").submit());
      go_to(net, on, people.back(), rooms[draw(3)]);
    }
    on.trace.clear();
    on.registered.clear();
  }

  void run() {
    // The host that is emptied now; the others take what it has. Then it starts anew, and the next one is emptied.
    for (int round = 0; round < 2; ++round) {
      const auto emptied = draw(3);
      const auto until = net.elapsed() + std::chrono::milliseconds{40 + draw(60)};
      const auto start = net.elapsed() + std::chrono::microseconds{draw(30'000)};
      std::optional<zlink::task<zlink::relocate_result>> leaving;
      while (net.elapsed() < until || !leaving || !leaving->ready()) {
        if (!leaving && net.elapsed() >= start)
          leaving.emplace(net.host(emptied).relocate({}));
        if (net.elapsed() < until)
          act();
        net.advance(std::chrono::microseconds{200 + draw(3'000)});
      }
      const auto end = net.run(std::move(*leaving));
      CHECK_MESSAGE(end.outcome == zlink::relocate_outcome::relocated, to_string(end.reason));
      settle();
      check(emptied);
      net.run_until([&] { return net.host(emptied).status().safe_to_shutdown; }); // nobody is followed there any more (L-231)
      net.run(net.host(emptied).shutdown());
      net.kill(emptied);
      net.restart(emptied);
      for (std::size_t host = 0; host < 3; ++host)
        net.host(host).mesh("m").placement_weight(100);
      net.advance(2s);
    }
  }

private:
  std::uint64_t draw(std::uint64_t below) {
    dice_ = dice_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return (dice_ >> 33) % below;
  }

  void act() {
    const auto who = people[draw(people.size())];
    if (draw(3) == 0) {
      const auto where = draw(4) == 3 ? std::string{} : rooms[draw(3)];
      net.host(draw(3)).actors().send_to_actor(who, enter{where}).submit().then([](zlink::result<void>) {});
      return;
    }
    const auto word = "w" + std::to_string(++words_sent);
    say(net.host(draw(3)), who, word, 10s).then([this, who, word](zlink::result<played> end) {
      CHECK_MESSAGE(++ends[word] == 1, word);
      // What came straight to a node that then took nobody is told so (L-148, L-161); nothing else fails.
      CHECK_MESSAGE((end || end.error().kind() == error_kind::unavailable), who << ' ' << word);
      failed += end ? 0 : 1;
      if (end)
        answered[who].push_back(word);
    });
  }
  void settle() {
    net.run_until([&] {
      return ends.size() == words_sent && std::ranges::all_of(people, [&](const auto& who) { return on.count("completed " + who) >= on.registered[who] && homes(who) == 1; });
    });
    net.advance(1s);
  }
  int homes(const std::string& who) {
    int n = 0;
    for (std::size_t host = 0; host < 3; ++host)
      n += player_lives(net, host, who) ? 1 : 0;
    return n;
  }

  void check(std::size_t emptied) {
    std::map<std::string, std::size_t> in;
    for (const auto& who : people) {
      CHECK_MESSAGE(on.count("completed " + who) == on.registered[who], who); // each Join ends once
      CHECK_MESSAGE(homes(who) == 1, who);
      CHECK_FALSE(player_lives(net, emptied, who));
      const auto told = net.run(say(net.host(draw(3)), who, "last"));
      const auto row = *player_row(net, who);
      CHECK(!is_moving(row));
      CHECK(row.node.node_rid == told.rid);
      CHECK(player_lives(net, host_of(net, told.rid), who));
      std::map<std::string, int> times;
      for (const auto& word : told.heard)
        ++times[word];
      for (const auto& word : answered[who])
        CHECK_MESSAGE(times[word] == 1, who << ' ' << word);
      for (const auto& one : times)
        CHECK_MESSAGE((one.first == "last" || one.second == 1), who << ' ' << one.first);
      if (told.room == "hall") {
        CHECK(row.member_of->spot_id == net.host(host_of(net, told.rid)).mesh("m").entry_spot_id());
        continue;
      }
      CHECK(row.member_of->spot_id == told.room);
      CHECK(told.room == in_room_of(who));
      ++in[told.room];
      CHECK_MESSAGE(host_of(net, told.rid) == home_of(net, told.room), who << " is not where its room is"); // J-9
    }
    std::size_t places[3] = {};
    for (const auto& id : rooms) {
      const auto at = home_of(net, id);
      REQUIRE(at < 3);
      CHECK(at != emptied);
      CHECK(net.run(call_roll(net.host(0), id)).rid == rid_of(net, at));
      auto& spot = *net.host(at).runtime().objects.find(id);
      CHECK_MESSAGE(spot.members().count() == in[id], id);
    }
    for (const auto& who : people)
      for (std::size_t host = 0; host < 3; ++host)
        places[host] += player_lives(net, host, who) ? 1 : 0;
    for (std::size_t host = 0; host < 3; ++host) {
      const auto seen = stored<zlink::placement::capacity_record>(net, zlink::placement::capacity_key("m", rid_of(net, host)));
      const auto bucket = seen.record ? seen.record->actors : zlink::placement::slot_bucket{};
      CHECK(bucket == zlink::placement::slot_bucket{static_cast<std::uint32_t>(places[host]), 0});
    }
  }
  std::string in_room_of(const std::string& who) {
    const auto at = home_of_player(net, who);
    const auto spot = net.host(at).runtime().objects.find_actor(who)->spot();
    return std::string{spot->spot_id()};
  }

public:
  stage on;
  words rooms;
  words people;
  std::map<std::string, int> ends;  ///< of requests
  std::map<std::string, words> answered;
  std::size_t words_sent = 0;
  std::size_t failed = 0;
  mesh net;

private:
  std::uint64_t dice_;
};

TEST_CASE("L-2 L-3 J-9 J-100 J-110 J-160 J-164 L-152 by seeds: Joins between rooms of hosts that are emptied lose nobody and nothing") {
  const auto hunts = number_of_hunts();
  std::size_t sent = 0;
  std::size_t failed = 0;
  std::size_t joined = 0;
  for (std::uint64_t seed = 1; seed <= hunts; ++seed) {
    CAPTURE(seed);
    wandering w{seed};
    w.run();
    sent += w.words_sent;
    failed += w.failed;
    joined += static_cast<std::size_t>(w.on.count("joined"));
  }
  CHECK(joined > hunts);
  CHECK(failed * 200 < sent);
}

} // namespace
} // namespace relocation_test
