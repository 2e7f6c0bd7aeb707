// Source, target, link and store fail at every step of a move (06 sections 11 to 14, 23 and 24).
#include "tests/contract/relocation/faults.hpp"

namespace relocation_test {
namespace {

/// How the move would go by itself.
enum class course {
  well,
  refused, ///< the target cannot restore the state
  silent,  ///< nothing comes back from the target
  stuck,   ///< the target does not come to an end with it
  lost,    ///< the target is ready, and does not reach the store any more
};
constexpr course all_courses[] = {course::well, course::refused, course::silent, course::stuck, course::lost};
const char* to_string(course c) {
  switch (c) {
    case course::well: return "well";
    case course::refused: return "refused";
    case course::silent: return "silent";
    case course::stuck: return "stuck";
    case course::lost: return "lost";
  }
  return "?";
}

/// One Spot "a" that moves from host 0 or 1 to the other one, and senders on the other two.
class scene {
public:
  scene(std::uint64_t seed, course how) : how_(how), net({.hosts = 3, .seed = seed, .max_link_delay = 2ms, .max_store_delay = 2ms}) {
    net.start(serve(on));
    for (int i = 0; from == 3; ++i) { // a Spot that lives on host 0 or 1
      id = "a" + std::to_string(i);
      net.run(rouse(net.host(2), id));
      if (const auto home = net.owner_of(id); home < 2)
        from = home;
    }
    to = 1 - from;
    if (how_ == course::refused)
      on.at = [](const std::string& step, const std::string&) {
        if (step == "restore")
          throw std::runtime_error{"no"};
      };
    if (how_ == course::stuck)
      on.hold("restore", never);
  }

  /// Moves, and does that when the step is reached; false: it never was.
  bool run(move_step at, fault what) {
    reached = false;
    for (std::size_t host = 0; host < 2; ++host)
      net.host(host).runtime().moving.on_step = [this, at](move_step step, const std::string&) {
        reached = reached || step == at;
        seen.insert(step);
        if (how_ == course::silent && step == move_step::rebuilt)
          net.mute(to, from);
        if (how_ == course::lost && step == move_step::relay_ready_sent)
          net.cut_store(to);
      };
    auto moving = start_move(net, id, from, to, 8s);
    const auto until = net.elapsed() + (at == move_step::followed_long_enough ? 60s : 25s);
    while (!reached && net.elapsed() < until)
      send_on(1ms);
    const bool met = reached;
    if (met)
      dead = strike(net, what, from, to).value_or(dead);
    send_on(3s);
    if (how_ == course::lost && met)
      send_on(8s); // until its source has settled it
    never.open();
    net.heal();
    send_on(30s);
    stopped = true;
    net.run_until([&] { return idle(); });
    static_cast<void>(moving);
    return met;
  }

  /// Each host that lives asks, one request after the other; a note goes before each.
  void send_on(std::chrono::milliseconds time) {
    const auto until = net.elapsed() + time;
    for (auto pause = 1ms; net.elapsed() < until; pause = std::min<std::chrono::milliseconds>(pause * 2, 200ms)) {
      for (std::size_t host = 0; host < 3; ++host)
        if (host != dead && !waits[host]) {
          waits[host] = true;
          const auto number = ++sent[host];
          count(net.host(host), id, sender(host), number, 3s).then([this, host, number](zlink::result<count_up> answer) {
            outcomes[host][number] += 1;
            if (answer)
              answered[host].insert(number);
            waits[host] = false;
          });
        }
      net.advance(std::min<std::chrono::nanoseconds>(pause, until - net.elapsed()));
    }
  }

  /// Nothing twice, nothing out of order, no answer to what never ran, one outcome each.
  void check() {
    std::optional<ledger_view> view;
    const std::size_t asking = dead == 2 ? 0 : 2;
    auto asked = net.run(zlink::as_result(net.host(asking).spots().request_to_spot(id, look{}).submit<ledger_view>()));
    if (asked)
      view = *asked;
    if (dead == 3 && how_ != course::lost)
      CHECK_MESSAGE(view.has_value(), "it is gone, and nobody was killed");
    for (std::size_t host = 0; host < 3; ++host)
      if (host != dead) {
        CHECK(outcomes[host].size() == sent[host]);
        CHECK(std::ranges::all_of(outcomes[host], [](const auto& one) { return one.second == 1; }));
      }
    if (!view)
      return;
    std::map<std::string, std::uint64_t> last;
    std::map<std::string, std::set<std::uint64_t>> ran;
    for (const auto& one : view->entries) {
      const auto slash = one.find('/');
      const auto who = one.substr(0, slash);
      const auto number = std::stoull(one.substr(slash + 1));
      if (!ran[who].insert(number).second)
        FAIL_CHECK(one << " ran twice");
      if (who == "first" || !answered[who[1] - '0'].contains(number))
        continue; // whose caller had given it up: it may have been anywhere (L-139)
      if (number < last[who])
        FAIL_CHECK(one << " ran behind " << last[who]);
      last[who] = number;
    }
    for (std::size_t host = 0; host < 3; ++host)
      for (const auto number : answered[host])
        if (!ran[sender(host)].contains(number))
          FAIL_CHECK(sender(host) << '/' << number << " was answered, and is not there");
  }

  bool idle() const { return (dead == 0 || !waits[0]) && (dead == 1 || !waits[1]) && !waits[2]; }
  static std::string sender(std::size_t host) { return "s" + std::to_string(host); }

  stage on;
  barrier never;
  const course how_;
  std::string id;
  std::size_t from = 3;
  std::size_t to = 3;
  std::size_t dead = 3;
  std::set<move_step> seen;
  bool stopped = false;
  bool reached = false;
  bool waits[3] = {};
  std::uint64_t sent[3] = {};
  std::map<std::uint64_t, int> outcomes[3];
  std::set<std::uint64_t> answered[3];
  mesh net; ///< last: what is left of it still writes evidence when it ends
};

TEST_CASE("L-3 L-5 L-130 L-131 L-137 L-141 L-149 L-160 L-161 L-163 a fault at every step: one owner, order, one outcome each, and nothing left") {
  std::set<move_step> met;
  for (std::size_t i = 0; i < zlink::detail::move_steps; ++i)
    for (const auto how : all_courses)
      for (const auto what : all_faults) {
        if (is_left_out(i, what, static_cast<std::size_t>(how)))
          continue;
        const auto at = static_cast<move_step>(i);
        const std::string where = std::string{"step "} + to_string(at) + ", " + to_string(how) + ", " + to_string(what);
        INFO(where);
        scene s{i * 31 + 7, how};
        if (s.run(at, what))
          met.insert(at);
        else
          break; // it is not on that course
        s.check();
      }
  for (std::size_t i = 0; i < zlink::detail::move_steps; ++i)
    CHECK_MESSAGE(met.contains(static_cast<move_step>(i)), std::string{to_string(static_cast<move_step>(i))} << " is met by no test");
}

} // namespace
} // namespace relocation_test
