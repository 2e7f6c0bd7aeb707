// The Redis server is away for less than a lease, in both ways: it stands, or it ends and comes back with its data.
#include "tests/e2e/scene.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace zlink::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t ids = 30;
constexpr std::size_t fresh_ids = 20;

/// What must hold of a short outage.
void check_nothing_lost(scene& on) {
  on.until_all_answer("p", ids, 60s);
  on.until_all_answer("q", fresh_ids, 60s); // called for the first time meanwhile
  const auto seen = on.check({"ok", "unavailable", "internal_failure", "deadline_exceeded"});
  std::map<std::string, int> births;
  for (const auto& process : seen)
    for (const auto& one : process.births)
      ++births[one.id];
  for (std::size_t i = 0; i < ids; ++i)
    CHECK(births["p" + std::to_string(i)] == 1);
  const auto old_ones = [](const call& c) { return c.id[0] == 'p'; };
  on.expect_none(end_quickly(seen, old_ones, zlink::steady_time{}, 60s, usual_outcomes));
  CHECK(count_outcome(seen, "ok") > 20 * ids);
}

/// Nothing is lost by an outage of 3 s, which `begin` and `end` make. New ids are called for meanwhile; whatever becomes of
/// those calls, they end.
void outlive(void (redis_server::*begin)(), void (redis_server::*end)()) {
  scene on;
  on.start_nodes(3);
  on.begin_even_load("p", ids, 400ms, 10s);
  on.watch_memory();
  (on.redis.*begin)();
  const auto gone = on.now();
  for (auto* one : on.running())
    one->tell("ask 8000 intent" + names("q", fresh_ids));
  wait_until(gone + 3s);
  (on.redis.*end)();
  for (auto* one : on.running())
    CHECK(one->hear().starts_with("ok"));
  check_nothing_lost(on);
}

} // namespace

TEST_CASE("S-45 S-70 S-140 the store stands still for 3 s: every object lives on, in the same incarnation") {
  outlive(&redis_server::pause, &redis_server::resume);
}

TEST_CASE("S-45 S-139 S-141 the store ends and comes back with its data after 3 s: every object lives on, in the same "
          "incarnation") {
  outlive(&redis_server::kill, &redis_server::start);
}
