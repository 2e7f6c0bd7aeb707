// A Join and a move want the same Actor at the same time, thousands of times: one of them has it (05 section 12).
#include "tests/contract/relocation/room_scene.hpp"

namespace relocation_test {
namespace {

/// Ada is asked to go into a room, and is moved to another host, at once.
class claims {
public:
  explicit claims(std::uint64_t seed) : net({.hosts = 3, .seed = seed, .max_link_delay = 1ms, .max_store_delay = 1ms}), dice_(seed * 2654435761U + 1) {
    net.start(serve_rooms(on));
    const table t{net, on, "r", {}};
    room = t.room;
    there = t.home;
    net.run(net.host(0).actors().create("ada", "player").submit());
    for (int i = 0; std::ranges::count(friends, "") != 0; ++i) { // one on each host
      const auto who = "p" + std::to_string(i);
      net.run(net.host(0).actors().create(who, "player").submit());
      friends[home_of_player(net, who)] = who;
    }
    on.at = [this](const std::string& step, const std::string& id) { happened(step, id); };
    for (std::size_t host = 0; host < 3; ++host)
      net.host(host).runtime().moving.on_step = [this](move_step step, const std::string& address) {
        if (step == move_step::sealed && address == zlink::detail::actor_address("ada"))
          sealed();
      };
  }

  void race() {
    const auto at = home_of_player(net, "ada");
    const auto to = (at + 1 + draw(2)) % 3;
    friend_at = at;
    joins = false;
    told_so = false;
    auto moving = std::optional<zlink::task<zlink::detail::unit_end>>{};
    auto asking = std::optional<zlink::task<played>>{};
    const auto move = [&] { moving.emplace(start_actor_move(net, "ada", at, to)); };
    const auto who = draw(2) == 0 ? std::string{"ada"} : friends[at]; // she herself, or somebody on the same host
    const auto ask = [&] { asking.emplace(say(net.host(draw(3)), who, "join")); };
    by_friend = who != "ada";
    const bool first = draw(2) == 0;
    first ? move() : ask();
    net.advance(std::chrono::microseconds{draw(9'000)});
    if (!first && player_lives(net, at, "ada"))
      move();
    if (first)
      ask();
    net.run(std::move(*asking));
    const bool moved = moving && net.run(std::move(*moving)).left;
    net.run_until([&] { return !open; });
    net.run_until([&] { return homes() == 1; });
    if (!joins)
      refused += told_so ? 1 : 0;
    else if (accepted)
      ++(moved ? both : joined);
    else
      ++failed;
    const auto told = net.run(say(net.host(draw(3)), "ada", "x"));
    CHECK(told.room == (joins && accepted ? room : "hall"));
    said += by_friend ? 1 : 2;
    CHECK(told.heard.size() == said);
    if (told.room != room)
      return;
    CHECK(host_of(net, told.rid) == there);
    go_to(net, on, "ada", "");
  }

  int refused = 0; ///< the seal came first
  int joined = 0;  ///< the Join came first, and there was nobody left to move
  int both = 0;    ///< one behind the other
  int failed = 0;

private:
  std::uint64_t draw(std::uint64_t below) {
    dice_ = dice_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return (dice_ >> 33) % below;
  }
  int homes() {
    int n = 0;
    for (std::size_t host = 0; host < 3; ++host)
      n += player_lives(net, host, "ada") ? 1 : 0;
    return n;
  }
  void happened(const std::string& step, const std::string& id) {
    if (step == "handle" && on.trace.back().ends_with(" join"))
      begin();
    else if (step == "gate")
      asked = true;
    else if (step == "completed" && id == "ada") {
      accepted = on.trace.back() == "completed ada accepted";
      open = false;
    }
  }
  /// In a handler of hers, or of a friend's.
  void begin() {
    const auto at = by_friend ? friend_at : host_of(net, player_row(net, "ada")->node.node_rid);
    const auto her = net.host(at).runtime().objects.find_actor("ada");
    if (!her)
      return; // the friend does not know her any more
    try {
      her->application()->context().join_spot(room).timeout(5s).defer();
      open = true;
      joins = true;
      asked = false;
      seals = 0;
    } catch (const zlink::operation_failed& refused_now) {
      CHECK(by_friend);
      CHECK(refused_now.kind() == error_kind::unavailable);
      told_so = true;
    }
  }
  /// While a Join has her nobody seals her but the Join itself, once, behind its gate.
  void sealed() {
    if (open)
      CHECK((asked && !owned_there() && ++seals == 1));
  }
  bool owned_there() { return host_of(net, player_row(net, "ada")->node.node_rid) == there; }

public:
  stage on;
  std::string room;
  std::size_t there = 0;
  std::string friends[3];
  std::size_t friend_at = 0;
  bool by_friend = false;
  bool told_so = false;
  bool open = false;     ///< a Join has her
  bool joins = false;
  bool asked = false;
  bool accepted = false;
  int seals = 0;
  std::size_t said = 0;
  mesh net;

private:
  std::uint64_t dice_;
};

TEST_CASE("J-160 J-161 J-163 J-110 ten thousand races: a Join or a seal has the Actor, never both, and whoever comes second waits or is told") {
  int refused = 0;
  int joined = 0;
  int both = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    claims c{seed};
    for (int i = 0; i < 200; ++i)
      c.race();
    CHECK(c.failed == 0);
    refused += c.refused;
    joined += c.joined;
    both += c.both;
  }
  CHECK(refused > 500);
  CHECK(joined > 500);
  CHECK(both > 500);
}

} // namespace
} // namespace relocation_test
