// First messages to the same ids from all nodes at once.
#include "tests/e2e/scene.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

using namespace zlink::test;
using namespace std::chrono_literals;

TEST_CASE("C-71 C-90 C-99 C-100 S-2 first messages race from all nodes: each id comes to life in one place, no call is lost") {
  constexpr std::size_t ids = 60;
  scene on;
  on.start_nodes(3);
  for (const std::string wave : {"a", "b", "c"}) {
    on.begin_load(wave, ids, 1s, 10s);
    on.until_all_answer(wave, ids, 60s);
  }
  on.watch_memory();
  on.until_all_answer("a", ids, 60s);
  const auto seen = on.check(usual_outcomes);

  std::map<std::string, int> births;
  for (const auto& process : seen) {
    CHECK(!process.births.empty());
    for (const auto& one : process.births)
      if (!one.id.starts_with("warm"))
        ++births[one.id];
  }
  CHECK(births.size() == 3 * ids);
  CHECK(std::all_of(births.begin(), births.end(), [](const auto& one) { return one.second == 1; }));
  CHECK(count_outcome(seen, "ok") > 10 * ids);
}
