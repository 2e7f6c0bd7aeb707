// Lanes without gates: what fits, what it costs, and which lane comes next.
#include "zlink/execution/lane.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>

using namespace zlink::detail;

namespace {

std::string pattern(lane_chooser& chooser, int turns, bool application, bool lifecycle) {
  std::string chosen;
  for (int i = 0; i < turns; ++i)
    switch (chooser.pick(application, lifecycle)) {
      case lane_chooser::choice::none: chosen += '-'; break;
      case lane_chooser::choice::application: chosen += 'a'; break;
      case lane_chooser::choice::lifecycle: chosen += 'l'; break;
    }
  return chosen;
}

} // namespace

TEST_CASE("X-68 the edges of the chooser's count") {
  lane_chooser chooser;
  CHECK(pattern(chooser, 2, false, false) == "--");
  CHECK(pattern(chooser, 18, true, true) == "lllllllla" "lllllllla");
  // An application turn because lifecycle is empty: the count begins again.
  CHECK(pattern(chooser, 5, true, true) == "lllll");
  CHECK(pattern(chooser, 1, true, false) == "a");
  CHECK(pattern(chooser, 9, true, true) == "lllllllla");
  // In debt, and no application work: lifecycle goes on, the debt stays.
  CHECK(pattern(chooser, 8, true, true) == "llllllll");
  CHECK(pattern(chooser, 20, false, true) == std::string(20, 'l'));
  CHECK(pattern(chooser, 2, true, true) == "al");
}

TEST_CASE("X-81 both axes are reserved or none, and a record larger than the lane enters an empty one") {
  const lane_limits limits{3, 1000};
  admission_word word;
  CHECK(word.admit(5000, limits, false) == admission::admitted);
  CHECK(word.admit(1, limits, false) == admission::no_room);
  CHECK(word.records() == 1);
  CHECK(word.bytes() == 5000);
  word.release(1, 5000);
  for (int i = 0; i < 3; ++i)
    CHECK(word.admit(300, limits, false) == admission::admitted);
  CHECK(word.admit(1, limits, false) == admission::no_room); // by count
  word.release(1, 300);
  CHECK(word.admit(401, limits, false) == admission::no_room); // by bytes
  CHECK(word.records() == 2);
  CHECK(word.bytes() == 600);
  CHECK(word.admit(400, limits, false) == admission::admitted);
}

TEST_CASE("X-89 seal, staging and waiters stand in the word that reserves") {
  const lane_limits limits{10, 1000};
  admission_word word{admission_word::staging_bit};
  CHECK(word.admit(1, limits, false) == admission::staging);
  CHECK(word.admit_arrival(1, false) == admission::staging);
  CHECK(word.admit(1, limits, true) == admission::admitted);
  word.clear(admission_word::staging_bit);
  word.set(admission_word::waiters_bit);
  CHECK(word.admit(1, limits, false) == admission::no_room); // nobody passes those who wait
  CHECK(word.admit(1, limits, false, false) == admission::admitted);
  CHECK(word.release(1, 1)); // and they are told
  word.clear(admission_word::waiters_bit);
  CHECK_FALSE(word.release(1, 1));
  word.set(admission_word::sealed_bit);
  CHECK(word.admit(1, limits, true) == admission::sealed);
  CHECK(word.admit_arrival(1, true) == admission::sealed);
  CHECK(word.records() == 0);
}

TEST_CASE("X-86 arrivals are counted beyond the limit, up to what the word holds") {
  admission_word word;
  for (int i = 0; i < 5000; ++i)
    CHECK(word.admit_arrival(1 << 16, false) == admission::admitted);
  CHECK(word.records() == 5000);
  CHECK(word.bytes() == 5000ULL << 16);
  CHECK(word.admit(1, {1024, 64ULL << 20}, false) == admission::no_room);
  word.release(5000, 5000ULL << 16);
  CHECK(word.records() == 0);
  const lane_limits widest{admission_word::most_records, admission_word::most_bytes};
  CHECK(word.admit(largest_cost, widest, false) == admission::admitted);
  CHECK(word.bytes() == largest_cost);
}

TEST_CASE("X-83 a cost beyond its range is pinned to the maximum and refused as an argument error") {
  constexpr auto huge = std::numeric_limits<std::uint64_t>::max();
  static_assert(pinned_cost(0, 0) == record_overhead_bytes);
  static_assert(pinned_cost(1000, 24) == record_overhead_bytes + 1024);
  static_assert(pinned_cost(huge, 0) == largest_cost);
  static_assert(pinned_cost(0, huge) == largest_cost);
  static_assert(pinned_cost(huge, huge) == largest_cost);
  static_assert(pinned_cost(largest_cost - record_overhead_bytes, 0) == largest_cost);
  CHECK_NOTHROW(require_lane_cost(pinned_cost(largest_cost - record_overhead_bytes - 1, 0)));
  CHECK_THROWS_AS(require_lane_cost(pinned_cost(huge, 1)), std::invalid_argument);
}
