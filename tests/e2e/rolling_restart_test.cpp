// All nodes are replaced, one after another, under load.
#include "tests/e2e/scene.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace zlink::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t ids = 30;

} // namespace

TEST_CASE("C-6 C-53 C-119 C-129 S-117 S-118 every node ends cleanly under load, is gone at once, and its replacement is another "
          "node with the same right") {
  scene on;
  on.start_nodes(3);
  on.begin_even_load("r", ids, 400ms, 20s);
  on.watch_memory();
  std::set<std::string> names_so_far;
  for (auto* one : on.running())
    names_so_far.insert({one->rid(), one->entry_spot_id()});

  for (std::size_t i = 0; i < 3; ++i) {
    auto& old = on.node(i);
    CHECK(old.terminate(60s) == 0);
    const auto listed = on.running().front()->ask("nodes"); // not after a lease, but now
    CHECK(listed.find(old.rid()) == std::string::npos);
    for (const auto& one : on.places("r", ids))
      CHECK(one.rid != old.rid());
    auto& fresh = on.start_node();
    CHECK(names_so_far.insert(fresh.rid()).second);
    CHECK(names_so_far.insert(fresh.entry_spot_id()).second);
    on.until_all_are_linked();
    on.until_all_are_candidates();
    const auto plan = "load r " + std::to_string(ids) + " 400 20000 ";
    fresh.ask(plan + "r");
    fresh.ask(plan + "o");
    on.until_all_answer("r", ids, 60s);
  }
  const auto seen = on.check({"ok", "unavailable", "shutting_down"});
  CHECK(count_outcome(seen, "ok") > 20 * ids);
}
