// The Redis server is away for longer than a lease, and comes back with its data.
#include "tests/e2e/scene.hpp"

#include <doctest/doctest.h>

using namespace zlink::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t ids = 30;
constexpr auto longest_admission = 10s; // TTL less the fencing margin (S-38)
constexpr auto tolerance = 500ms;       // between a turn's admission and its first line, on a busy machine

} // namespace

TEST_CASE("S-40 S-41 S-44 S-68 S-79 S-140 S-141 the store is away for 20 s: all objects stop at the deadline, hosts come back "
          "with new leases, an explicit release begins anew") {
  scene on;
  on.start_nodes(3);
  on.begin_even_load("p", ids, 400ms, 20s);
  on.watch_memory();
  on.redis.kill();
  const auto gone = on.now();
  wait_until(gone + longest_admission + 2s);
  for (auto* from : on.running()) {
    CHECK(from->list("state").at(1) == "closed");
    for (auto* to : on.running()) // what needs no object goes on, over the same links
      CHECK(from->ask("hail " + to->rid() + " 5000") == "ok");
  }
  wait_until(gone + 20s);
  const auto back = on.now();
  on.redis.start();
  eventually("all hold a lease again", 30s, [&] {
    for (auto* one : on.running())
      if (one->list("state").at(1) != "open")
        return false;
    return true;
  });
  on.until_all_answer("n", ids, 60s); // new ones
  for (const auto& said : on.node(0).list("ask 10000 intent" + names("p", ids)))
    CHECK(said == "unavailable");
  const auto released = on.now();
  for (const auto& said : on.node(1).list("release" + names("p", ids)))
    CHECK(said == "true");
  on.until_all_answer("p", ids, 60s);

  const auto seen = on.check({"ok", "unavailable", "deadline_exceeded"}); // the last of one-ways only, see below
  const auto all = [](const turn&) { return true; };
  const auto old_ones = [](const turn& t) { return t.id[0] == 'p'; };
  CHECK(!no_turns(seen, old_ones, gone + 1s, gone + 4s).empty()); // its own lease is enough for a while
  on.expect_none(no_turns(seen, all, gone + longest_admission + tolerance, back));
  on.expect_none(no_turns(seen, old_ones, back, released));
  const auto to_old_ones = [&](const call& c) { return c.id[0] == 'p' && !c.one_way && c.start < released; };
  on.expect_none(end_quickly(seen, to_old_ones, gone + longest_admission + tolerance, 15s, {"unavailable"}));
}
