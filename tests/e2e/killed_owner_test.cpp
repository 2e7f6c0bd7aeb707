// SIGKILL of a node that owns Spots, while first messages are under way.
#include "tests/e2e/scene.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace zlink::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t ids = 30;
constexpr std::size_t fresh_ids = 60;

bool has(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

/// Those that were alive when their owner died; of the others nobody knows how far they had come.
bool is_settled(const std::string& id) { return id[0] == 'k'; }

} // namespace

TEST_CASE("S-63 S-64 S-79 S-115 C-98 C-106 S-74 an owner is killed: its peers know at once, nobody takes over what it had, "
          "an explicit release begins anew") {
  scene on;
  on.start_nodes(3);
  auto& victim = on.node(2);
  on.begin_even_load("k", ids, 500ms, 60s);
  on.watch_memory();
  const auto lost = on.owned_by(victim, "k", ids);
  REQUIRE(lost.size() > 1);
  on.node(0).ask("start_holds 60000" + names(lost));
  on.node(1).ask("start_holds 60000" + names(lost));
  for (auto* one : on.running())
    one->tell("ask 3000 intent" + names("f", fresh_ids));
  victim.kill();
  const auto killed = on.now();
  for (auto* one : on.running())
    CHECK(one->hear().starts_with("ok"));
  CHECK(on.ask_all("holds") == std::vector<std::string>{"ok 0", "ok 0"});

  CHECK(on.node(0).ask("release " + lost[0]) == "ok unavailable"); // its lease still lives
  eventually("the lease of the dead is over", 30s, [&] {
    return on.node(0).ask("release " + lost[0]) == "ok true";
  });
  CHECK(on.now() - killed > 8s);
  const auto released = on.now();
  const std::vector<std::string> kept{lost.begin() + 1, lost.end()};
  for (const auto& said : on.node(1).list("ask 10000 intent" + names(kept)))
    CHECK(said == "unavailable"); // still nobody's (S-115)
  for (const auto& said : on.node(1).list("release" + names(kept)))
    CHECK(said == "true");
  for (const auto& one : on.places("f", fresh_ids))
    if (one.state == "unavailable")
      CHECK(on.node(0).ask("release " + one.id) == "ok true");
  auto& replacement = on.start_node();
  CHECK(replacement.rid() != victim.rid());
  CHECK(replacement.entry_spot_id() != victim.entry_spot_id());
  on.until_all_are_linked();
  on.until_all_answer("k", ids, 60s);
  on.until_all_answer("f", fresh_ids, 60s);

  const auto seen = on.check({"ok", "unavailable", "deadline_exceeded"});
  const auto to_the_dead = [&](const call& c) { return has(lost, c.id) && !c.one_way && c.start < released; };
  on.expect_none(end_quickly(seen, to_the_dead, killed, 5s, usual_outcomes));
  const auto known_dead = [&](const call& c) {
    return to_the_dead(c) && (c.start > killed || c.sender.ends_with(".hold")) && c.id != lost[0];
  };
  on.expect_none(end_quickly(seen, known_dead, killed, 5s, {"unavailable"}));
  const auto settled = [](const call& c) { return is_settled(c.id); };
  on.expect_none(end_quickly(seen, settled, killed, 5s, usual_outcomes));
  const auto of_the_dead = [&](const turn& t) { return has(kept, t.id); };
  on.expect_none(no_turns(seen, of_the_dead, killed, released));
  CHECK(count_outcome(seen, "ok") > 20 * ids);
}
