// SIGSTOP of a node that owns Spots, beyond its lease, and SIGCONT.
#include "tests/e2e/scene.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace zlink::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t ids = 30;
constexpr auto liveness = 15s;  // S-64
constexpr auto tolerance = 3s;  // of a busy machine

} // namespace

TEST_CASE("S-38 S-39 S-40 S-44 S-63 S-64 S-79 an owner is frozen beyond its lease: peers drop it in time, others go on with what "
          "is released, and it runs nothing of what it had") {
  scene on;
  on.start_nodes(3);
  auto& frozen = on.node(2);
  on.begin_even_load("z", ids, 400ms, 60s);
  on.watch_memory();
  const auto lost = on.owned_by(frozen, "z", ids);
  REQUIRE(lost.size() > 1);
  const std::vector<std::string> taken{lost.begin(), lost.begin() + static_cast<std::ptrdiff_t>(lost.size() / 2)};
  const std::vector<std::string> left{lost.begin() + static_cast<std::ptrdiff_t>(lost.size() / 2), lost.end()};
  on.node(0).ask("start_holds 60000" + names(lost));
  on.node(1).ask("start_holds 60000" + names(lost));

  const auto stopped = frozen.freeze();
  eventually("what waits for the frozen one ends", liveness + tolerance, [&] {
    return on.ask_all("holds") == std::vector<std::string>{"ok 0", "ok 0"};
  });
  const auto dropped = on.now();
  eventually("its lease is over", 30s, [&] { return on.node(0).ask("release " + taken[0]) == "ok true"; });
  for (const auto& said : on.node(0).list("release" + names({taken.begin() + 1, taken.end()})))
    CHECK(said == "true");
  for (const auto& said : on.node(1).list("ask 10000 intent" + names(taken)))
    CHECK(said.find("@n3#") == std::string::npos);
  wait_until(stopped + 17s);
  const auto woken = frozen.thaw();

  eventually("it holds a lease again", 30s, [&] { return frozen.list("state").at(1) == "open"; });
  on.until_all_are_linked();
  on.until_all_are_candidates();
  for (const auto& said : frozen.list("ask 10000 intent" + names(left)))
    CHECK(said == "unavailable");
  on.spread("y", ids); // new ones, also there
  on.until_all_answer("y", ids, 60s);
  CHECK(!on.owned_by(frozen, "y", ids).empty());
  const auto before_release = on.now();
  for (const auto& said : on.node(0).list("release" + names(left)))
    CHECK(said == "true");
  on.until_all_answer("z", ids, 60s);

  const auto seen = on.check({"ok", "unavailable"});
  const std::set<std::string> were_there{lost.begin(), lost.end()};
  const auto old_ones = [&](const turn& t) {
    const auto& births = seen.at(2).births;
    return t.in.process == frozen.name() && std::any_of(births.begin(), births.end(), [&](const birth& b) {
             return b.id == t.id && b.in == t.in && b.at < stopped;
           });
  };
  on.expect_none(no_turns(seen, old_ones, stopped, on.now()));
  const auto of_others = [&](const call& c) {
    return were_there.contains(c.id) && !c.one_way && !c.sender.starts_with(frozen.name()) && c.start < before_release;
  };
  on.expect_none(end_quickly(seen, of_others, dropped, 5s, usual_outcomes));
  const auto held_ones = [](const call& c) { return c.sender.ends_with(".hold"); };
  on.expect_none(end_quickly(seen, held_ones, stopped, liveness + tolerance, {"unavailable"}));
  CHECK(woken - stopped > 16s);
  CHECK(count_outcome(seen, "ok") > 20 * ids);
}
