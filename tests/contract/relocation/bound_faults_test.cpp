// A client keeps talking to its Actor while that moves from host to host, and while things break (08 section 12; 06 section 24).
#include "tests/contract/relocation/session_scene.hpp"

namespace relocation_test {
namespace {

/// Says "1", "2", ... and asks, one request after the other.
class talker {
public:
  talker(bound_scene& on) : on_(on) {}
  void go_on(std::chrono::microseconds time, std::chrono::microseconds pause) {
    const auto until = on_.net.elapsed() + time;
    while (on_.net.elapsed() < until) {
      on_.ann->say("ann", std::to_string(++said));
      if (on_.who->ends.size() == asked) {
        ++asked;
        on_.ann->ask("ann", std::to_string(++said), asked, 3s);
      }
      on_.net.advance(pause);
    }
  }
  std::uint64_t said = 0;
  std::uint64_t asked = 0;

private:
  bound_scene& on_;
};

bool in_order(const std::vector<std::string>& heard) {
  std::uint64_t last = 0;
  for (const auto& word : heard) {
    if (word == "?")
      continue;
    const auto number = std::stoull(word);
    if (number <= last)
      return false;
    last = number;
  }
  return true;
}

TEST_CASE("L-172 N-126 N-149 moves without end under a client that does not stop: nothing lost, nothing twice, nothing overtakes") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    bound_scene s{{.seed = seed, .max_link_delay = 3ms, .max_store_delay = 1ms}};
    talker client{s};
    auto at = s.from;
    for (int round = 0; round < 25; ++round) {
      const auto next = (at + 1 + static_cast<std::size_t>(round % 3 == 2)) % 3;
      auto moving = start_actor_move(s.net, "ann", at, next);
      while (!player_lives(s.net, next, "ann") || player_lives(s.net, at, "ann"))
        client.go_on(1ms, 211us);
      REQUIRE(s.net.run(std::move(moving)).left);
      if (round % 3 != 0) // else it moves on at once
        client.go_on(10ms, 377us);
      if (round % 3 == 1)
        CHECK(s.ann->place_of("ann") == rid_of(s.net, next));
      at = next;
    }
    s.net.run_until([&] { return s.who->ends.size() == client.asked; });
    s.net.run_until_idle();
    const auto heard = s.heard();
    CHECK(heard.size() == client.said + 1);
    CHECK(in_order(heard));
    CHECK(s.who->closed.empty());
    CHECK(s.who->repeated == 0);
    for (const auto& one : s.who->ends)
      CHECK_MESSAGE(one.second.find('@') != std::string::npos, one.first << ' ' << one.second);
    CHECK(s.ann->place_of("ann") == rid_of(s.net, at));
  }
}

enum class blow { kill_source, kill_target, lose_source, lose_target, lose_lane };
constexpr blow all_blows[] = {blow::kill_source, blow::kill_target, blow::lose_source, blow::lose_target, blow::lose_lane};

/// Of a move that goes well by itself.
constexpr move_step good_steps[] = {move_step::preparing,       move_step::sealing,          move_step::sealed,     move_step::sessions_sealed,
                                    move_step::captured,        move_step::restore_sent,     move_step::boundary,   move_step::cutover_sent,
                                    move_step::commit_seen,     move_step::source_closed,    move_step::restore_received,
                                    move_step::payload_complete, move_step::row_reserved,    move_step::rebuilt,    move_step::relay_ready_sent,
                                    move_step::cutover_received, move_step::committing,      move_step::committed,  move_step::merged,
                                    move_step::opened,          move_step::sessions_told};

struct outcome {
  bool closed = false;
  bool follows = false;
};

outcome break_at(move_step at, blow what) {
  bool reached = false;
  bound_scene s{{.max_link_delay = 2ms, .max_store_delay = 1ms}};
  std::optional<std::size_t> dead;
  for (const auto host : {s.from, s.to})
    s.net.host(host).runtime().moving.on_step = [&](move_step step, const std::string&) { reached = reached || step == at; };
  talker client{s};
  client.go_on(5ms, 500us);
  auto moving = s.start();
  while (!reached)
    client.go_on(500us, 250us);
  switch (what) {
    case blow::kill_source: s.net.kill(*(dead = s.from)); break;
    case blow::kill_target: s.net.kill(*(dead = s.to)); break;
    case blow::lose_source: s.net.lose_links(s.from, s.owner); break;
    case blow::lose_target: s.net.lose_links(s.to, s.owner); break;
    case blow::lose_lane: s.net.lose_links(s.from, s.to); break;
  }
  client.go_on(2s, 20ms);
  for (int i = 0; i < 40; ++i)
    client.go_on(1s, 500ms); // leases, seals and fences have run out
  static_cast<void>(moving);
  s.net.run_until([&] { return s.who->ends.size() == client.asked; });
  s.net.run_until_idle();
  CHECK(s.who->repeated == 0);
  CHECK(s.who->closed.size() <= 1);
  const bool closed = !s.who->closed.empty();
  CHECK(closed == (s.ann->place_of("ann") == "nowhere"));
  outcome got{closed, false};
  std::optional<std::size_t> home;
  for (std::size_t host = 0; host < 3; ++host)
    if (host != dead && player_lives(s.net, host, "ann") && !s.net.host(host).runtime().objects.find_actor("ann")->fenced()) {
      CHECK(!home); // one owner
      home = host;
    }
  if (home) {
    const auto heard = s.net.run(say(s.net.host(s.owner), "ann", "?")).heard;
    CHECK(in_order(heard));
    got.follows = s.ann->place_of("ann") == rid_of(s.net, *home);
    if (what != blow::lose_source && what != blow::lose_target)
      CHECK((closed || got.follows)); // nobody is left with a route that leads nowhere
  }
  return got;
}

TEST_CASE("L-162 L-173 N-141 N-145 a fault at each step: the session follows its Actor or ends, its requests end once, in order") {
  int closed = 0;
  int followed = 0;
  for (const auto what : all_blows)
    for (const auto at : good_steps) {
      const std::string step = to_string(at);
      CAPTURE(step);
      CAPTURE(static_cast<int>(what));
      const auto got = break_at(at, what);
      closed += got.closed;
      followed += got.follows;
    }
  CHECK(closed > 0);
  CHECK(followed > 20);
}

} // namespace
} // namespace relocation_test
