#include "zlink/execution/tick_schedule.hpp"

#include <doctest/doctest.h>

#include <climits>
#include <random>
#include <stdexcept>
#include <type_traits>
#include <vector>

using namespace std::chrono_literals;
using zlink::steady_duration;
using zlink::steady_time;
using zlink::timer_options;
using zlink::timer_overrun;
using zlink::timer_tick;
using zlink::detail::tick_schedule;

namespace {

constexpr timer_overrun every_overrun[] = {timer_overrun::skip_late_ticks, timer_overrun::catch_up_bounded,
                                           timer_overrun::delay_next_tick};
constexpr auto period = 100ms;
constexpr steady_time registered{steady_duration{5h + 3ms}};

steady_time at(steady_duration since_registration) { return registered + since_registration; }

tick_schedule make(timer_overrun overrun, int bound = 1) {
  return {period, timer_options{.overrun = overrun, .max_catch_up_ticks = bound}, registered};
}

/// Runs every tick that is due at `now` with handlers that take no time; the scheduled indices, in order.
std::vector<std::uint64_t> run_due(tick_schedule& schedule, steady_time now) {
  std::vector<std::uint64_t> indices;
  while (schedule.next_due() <= now) {
    indices.push_back(schedule.start(now).scheduled_index);
    schedule.end(now);
  }
  return indices;
}

/// The invariants of X-133 between one tick and the one before.
void check_tick(const timer_tick& tick, const timer_tick& before) {
  REQUIRE(tick.delivery_index == before.delivery_index + 1);
  REQUIRE(tick.scheduled_index > before.scheduled_index);
  REQUIRE(tick.scheduled_index >= tick.delivery_index);
  REQUIRE(tick.skipped_ticks == tick.scheduled_index - before.scheduled_index - 1);
  REQUIRE(tick.period == period);
  REQUIRE(tick.delay == tick.started - tick.scheduled);
  REQUIRE(tick.delay >= 0ms); // never early
}

/// A thousand ticks, started late by a random time and handled for a random time; hands each to `check`.
template <class Check>
void run_random_ticks(timer_overrun overrun, int bound, unsigned seed, Check check) {
  CAPTURE(seed);
  std::mt19937 random{seed};
  auto schedule = make(overrun, bound);
  auto now = registered;
  timer_tick before;
  for (int i = 0; i < 1000; ++i) {
    const auto late = random() % 4 == 0 ? random() % 1500 : random() % 3;
    const auto handled = random() % 3 == 0 ? random() % 700 : random() % 3;
    now = std::max(now, schedule.next_due()) + std::chrono::milliseconds{late};
    const auto due = schedule.next_due();
    const auto tick = schedule.start(now);
    check_tick(tick, before);
    check(tick, before, due, now);
    now += std::chrono::milliseconds{handled};
    schedule.end(now);
    before = tick;
  }
}

std::uint64_t newest_due(steady_time now) { return static_cast<std::uint64_t>((now - registered) / period); }

} // namespace

TEST_CASE("X-133 on time, every policy delivers tick after tick") {
  for (auto overrun : every_overrun) {
    auto schedule = make(overrun);
    for (std::uint64_t n = 1; n <= 5; ++n) {
      const auto due = at(n * period);
      REQUIRE(schedule.next_due() == due);
      const auto tick = schedule.start(due);
      CHECK(tick.delivery_index == n);
      CHECK(tick.scheduled_index == n);
      CHECK(tick.skipped_ticks == 0);
      CHECK(tick.scheduled == n * period);
      CHECK(tick.started == n * period);
      CHECK(tick.delay == 0ms);
      schedule.end(due);
    }
  }
}

TEST_CASE("X-130 held for 5.5 periods, the next callback is the newest due tick") {
  auto schedule = make(timer_overrun::skip_late_ticks);
  run_due(schedule, at(period));
  const auto tick = schedule.start(at(period + 550ms));
  CHECK(tick.scheduled_index == 6);
  CHECK(tick.skipped_ticks == 4);
  CHECK(tick.delivery_index == 2);
  CHECK(tick.scheduled == 600ms);
  CHECK(tick.started == 650ms);
  CHECK(tick.delay == 50ms);
  schedule.end(at(660ms));
  CHECK(schedule.next_due() == at(700ms)); // the rhythm of the registration, not of the late callback
}

TEST_CASE("X-130 the first callback counts what it skipped from the beginning") {
  auto schedule = make(timer_overrun::skip_late_ticks);
  const auto tick = schedule.start(at(399ms));
  CHECK(tick.scheduled_index == 3);
  CHECK(tick.skipped_ticks == 2);
}

TEST_CASE("X-130 a handler slower than the period gets the newest tick each time it ends") {
  auto schedule = make(timer_overrun::skip_late_ticks);
  CHECK(schedule.start(at(100ms)).scheduled_index == 1);
  schedule.end(at(350ms));
  CHECK(schedule.next_due() <= at(350ms)); // late, so at once
  CHECK(schedule.start(at(350ms)).scheduled_index == 3);
}

TEST_CASE("X-131 ten late with a bound of three delivers the last three, the gap in the first") {
  auto schedule = make(timer_overrun::catch_up_bounded, 3);
  const auto now = at(10 * period + 1ms);
  const auto first = schedule.start(now);
  CHECK(first.scheduled_index == 8);
  CHECK(first.skipped_ticks == 7);
  schedule.end(now);
  const auto second = schedule.start(now);
  CHECK(second.scheduled_index == 9);
  CHECK(second.skipped_ticks == 0);
  schedule.end(now);
  CHECK(run_due(schedule, now) == std::vector<std::uint64_t>{10});
  CHECK(schedule.next_due() == at(11 * period));
}

TEST_CASE("X-131 fewer late than the bound drops none; the default bound is one") {
  auto wide = make(timer_overrun::catch_up_bounded, 5);
  CHECK(run_due(wide, at(4 * period)) == std::vector<std::uint64_t>{1, 2, 3, 4});
  CHECK(timer_options{}.max_catch_up_ticks == 1);
  auto narrow = make(timer_overrun::catch_up_bounded, timer_options{}.max_catch_up_ticks);
  CHECK(run_due(narrow, at(4 * period)) == std::vector<std::uint64_t>{4});
  auto widest = make(timer_overrun::catch_up_bounded, INT_MAX);
  CHECK(run_due(widest, at(1000 * period)).size() == 1000);
}

TEST_CASE("X-131 what falls due during a catch-up interval waits for the next one") {
  auto schedule = make(timer_overrun::catch_up_bounded, 2);
  CHECK(schedule.start(at(5 * period)).scheduled_index == 4);
  schedule.end(at(8 * period)); // slow: 6, 7 and 8 fell due meanwhile
  CHECK(schedule.start(at(8 * period)).scheduled_index == 5);
  schedule.end(at(9 * period));
  const auto next = schedule.start(at(9 * period)); // 6 to 9 are late, two of them are delivered
  CHECK(next.scheduled_index == 8);
  CHECK(next.skipped_ticks == 2);
}

TEST_CASE("X-132 the next tick is due one period after the end of the handler, and none is skipped") {
  auto schedule = make(timer_overrun::delay_next_tick);
  const auto first = schedule.start(at(730ms));
  CHECK(first.scheduled_index == 1);
  CHECK(first.skipped_ticks == 0);
  CHECK(first.delay == 630ms);
  schedule.end(at(1230ms));
  CHECK(schedule.next_due() == at(1330ms));
  const auto second = schedule.start(at(1340ms));
  CHECK(second.scheduled_index == 2);
  CHECK(second.skipped_ticks == 0);
  CHECK(second.scheduled == 1330ms);
  CHECK(second.delay == 10ms);
}

TEST_CASE("X-130 X-133 a thousand random late ticks that skip") {
  for (unsigned seed = 1; seed <= 10; ++seed)
    run_random_ticks(timer_overrun::skip_late_ticks, 1, seed,
                     [](const timer_tick& tick, const timer_tick&, steady_time, steady_time now) {
                       REQUIRE(tick.scheduled_index == newest_due(now));
                     });
}

TEST_CASE("X-131 X-133 a thousand random late ticks that catch up") {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    const auto bound = static_cast<int>(1 + seed % 4);
    run_random_ticks(timer_overrun::catch_up_bounded, bound, seed,
                     [bound](const timer_tick& tick, const timer_tick&, steady_time, steady_time now) {
                       REQUIRE(tick.scheduled_index <= newest_due(now));
                       // Ticks are dropped only by a new interval that then delivers as many as the bound allows.
                       if (tick.skipped_ticks > 0)
                         REQUIRE(newest_due(now) - tick.scheduled_index + 1 == static_cast<std::uint64_t>(bound));
                     });
  }
}

TEST_CASE("X-132 X-133 a thousand random late ticks that delay the next one") {
  for (unsigned seed = 1; seed <= 10; ++seed)
    run_random_ticks(timer_overrun::delay_next_tick, 1, seed,
                     [](const timer_tick& tick, const timer_tick& before, steady_time due, steady_time) {
                       REQUIRE(tick.skipped_ticks == 0);
                       REQUIRE(tick.scheduled_index == tick.delivery_index);
                       REQUIRE(due >= at(before.started + period)); // at least a period after the last one started
                     });
}

TEST_CASE("after a time without ticks at most one late tick is left, under every policy") {
  for (auto overrun : every_overrun) {
    auto schedule = make(overrun, 100);
    run_due(schedule, at(period));
    const auto now = at(50 * period + 10ms);
    schedule.drop_late_ticks(now);
    CHECK(run_due(schedule, now).size() == 1);
    CHECK(schedule.next_due() > now);
  }
}

TEST_CASE("a schedule goes on elsewhere with its numbers, its rhythm and its policy") {
  for (auto overrun : every_overrun) {
    CAPTURE(static_cast<int>(overrun));
    const timer_options options{.overrun = overrun, .max_catch_up_ticks = 2};
    auto source = make(overrun, 2);
    run_due(source, at(100ms));
    run_due(source, at(200ms));
    auto progress = source.progress(at(230ms));
    CHECK(progress.age == 230ms);
    progress.age += 350ms; // on the way

    const steady_time arrived{7ms}; // the target was booted a moment ago
    tick_schedule target{period, options, progress, arrived};
    auto kept = source; // what the source would have done
    CHECK(target.next_due() - arrived == kept.next_due() - at(580ms));
    while (kept.next_due() <= at(580ms)) {
      REQUIRE(target.next_due() <= arrived);
      const auto expected = kept.start(at(580ms));
      const auto tick = target.start(arrived);
      CHECK(tick.delivery_index == expected.delivery_index);
      CHECK(tick.scheduled_index == expected.scheduled_index);
      CHECK(tick.skipped_ticks == expected.skipped_ticks);
      CHECK(tick.started == expected.started);
      kept.end(at(580ms));
      target.end(arrived);
    }
    CHECK(target.next_due() - arrived == kept.next_due() - at(580ms));
  }
}

TEST_CASE("the longest periods are due at the end of time") {
  for (auto overrun : every_overrun) {
    tick_schedule schedule{std::chrono::milliseconds::max(), timer_options{.overrun = overrun}, registered};
    CHECK(schedule.next_due() == steady_time::max());
    CHECK(schedule.start(steady_time::max()).scheduled_index == 1);
    schedule.end(steady_time::max());
    CHECK(schedule.next_due() == steady_time::max());
  }
}

TEST_CASE("X-131 an empty name, a period below one millisecond and a bound below one are argument errors") {
  using zlink::detail::require_valid_timer;
  CHECK_NOTHROW(require_valid_timer("t", 1ms, {}));
  CHECK_THROWS_AS(require_valid_timer("", 1ms, {}), std::invalid_argument);
  CHECK_THROWS_AS(require_valid_timer("t", 0ms, {}), std::invalid_argument);
  CHECK_THROWS_AS(require_valid_timer("t", -1ms, {}), std::invalid_argument);
  const auto with = [](timer_overrun overrun, int bound) {
    return timer_options{.overrun = overrun, .max_catch_up_ticks = bound};
  };
  CHECK_THROWS_AS(require_valid_timer("t", 1ms, with(timer_overrun::catch_up_bounded, 0)), std::invalid_argument);
  CHECK_THROWS_AS(require_valid_timer("t", 1ms, with(timer_overrun::catch_up_bounded, -1)), std::invalid_argument);
  CHECK_NOTHROW(require_valid_timer("t", 1ms, with(timer_overrun::catch_up_bounded, INT_MAX)));
  CHECK_NOTHROW(require_valid_timer("t", 1ms, with(timer_overrun::skip_late_ticks, 0)));
  CHECK_NOTHROW(require_valid_timer("t", 1ms, with(timer_overrun::delay_next_tick, -7)));
}

TEST_CASE("cancelling twice, through a copy and through no registration is harmless") {
  static_assert(std::is_trivially_destructible_v<timer_options>);
  const auto state = std::make_shared<zlink::detail::timer_state>("t", 1);
  zlink::timer handle{state};
  auto copy = handle;
  CHECK_FALSE(state->cancelled);
  copy.cancel();
  CHECK(state->cancelled);
  handle.cancel();
  CHECK(state->cancelled);
  zlink::timer{}.cancel();
}
