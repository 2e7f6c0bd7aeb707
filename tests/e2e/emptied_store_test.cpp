// FLUSHALL under load.
#include "tests/e2e/scene.hpp"

#include <doctest/doctest.h>

using namespace zlink::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t ids = 30;

bool none_open(scene& on) {
  for (auto* one : on.running())
    if (one->list("state").at(1) == "open")
      return false;
  return true;
}

} // namespace

TEST_CASE("S-2 S-32 S-142 FLUSHALL under load: no id ever has two owners, generations grow, the mesh serves again") {
  scene on;
  on.start_node();
  for (int i = 0; i < 2; ++i) { // hosts look after their leases at different times, so they learn of it one by one
    const auto before = on.now();
    on.until_all_are_candidates();
    wait_until(before + 1700ms);
    on.start_node();
  }
  on.until_all_are_linked();
  on.until_all_are_candidates();
  on.begin_even_load("e", ids, 200ms, 20s);
  on.watch_memory();
  const auto before = on.places("e", ids);
  on.redis.command({"FLUSHALL"});
  const auto emptied = on.now();
  eventually("all know that their leases are gone", 30s, [&] { return none_open(on); });
  for (auto* from : on.running())
    for (auto* to : on.running())
      CHECK(from->ask("hail " + to->rid() + " 5000") == "ok"); // links stay
  eventually("every id lives again, in a new incarnation", 60s, [&] {
    const auto now = on.places("e", ids);
    for (std::size_t i = 0; i < ids; ++i)
      if (now[i].state != "ready" || now[i].generation <= before[i].generation)
        return false;
    return true;
  });
  on.until_all_answer("e", ids, 60s);
  const auto seen = on.check({"ok", "unavailable", "not_found", "internal_failure"});
  const auto all = [](const turn&) { return true; };
  CHECK(!no_turns(seen, all, emptied, on.now()).empty());
  CHECK(count_outcome(seen, "ok") > 20 * ids);
}
