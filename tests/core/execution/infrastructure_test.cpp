// The infrastructure unit: what is posted has its turn between expired timers, and no delay is too long.
#include "zlink/execution/infrastructure.hpp"

#include "tests/sim/manual_executor.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace std::chrono_literals;
using zlink::detail::infrastructure;
using zlink::test::manual_clock;
using zlink::test::manual_executor;

TEST_CASE("X-138 expired entries are handled in batches, between which what was posted runs") {
  auto time = std::make_shared<manual_clock>();
  manual_executor executor{time};
  infrastructure unit{executor.make_serial("infra", time), time};
  int expired = 0;
  std::vector<int> seen;
  for (int i = 0; i < 1000; ++i)
    unit.post_after(10ms, [&] {
      if (++expired == 1)
        unit.post([&] { seen.push_back(expired); });
    });
  executor.run_for(20ms);
  CHECK(expired == 1000);
  REQUIRE(seen.size() == 1);
  CHECK(seen[0] < 1000);
  unit.stop();
}

TEST_CASE("a delay beyond the end of the clock never comes, and stops nothing else") {
  auto time = std::make_shared<manual_clock>();
  manual_executor executor{time};
  infrastructure unit{executor.make_serial("infra", time), time};
  int ran = 0;
  executor.run_for(1s);
  unit.post_after(zlink::steady_duration::max(), [&] { ran += 100; });
  unit.post_after(zlink::steady_duration::max() - 1s, [&] { ran += 100; });
  unit.post_after(1ms, [&] { ++ran; });
  executor.run_for(24h);
  CHECK(ran == 1);
  unit.stop();
}
