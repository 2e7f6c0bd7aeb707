// The rules about moves can fail: each is fed a log that breaks it, beside one that does not.
#include "tests/e2e/moves_checker.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>

using namespace zlink::test;

namespace {

process_history history(const std::string& name, const std::string& turns, const std::string& calls = {}) {
  process_history one;
  one.name = name;
  read_turns(one, turns);
  read_calls(one, calls);
  return one;
}

} // namespace

TEST_CASE("L-3 L-13 two owners at a time, one that comes back without a move, and another generation are found") {
  const auto source = history("n1", "b 10 a 1 1 x 1\ne 20 a 1 1 x 1\n");
  CHECK(one_owner_at_a_time({source, history("n2", "b 30 a 1 1 x 2\ne 40 a 1 1 x 2\n")}).empty());
  CHECK(one_owner_at_a_time({source, history("n2", "b 15 a 1 1 x 2\ne 40 a 1 1 x 2\n")}).size() == 1);
  CHECK(one_owner_at_a_time({source, history("n2", "b 30 a 2 1 x 2\ne 40 a 2 1 x 2\n")}).size() == 1);
  const auto target = history("n2", "b 30 a 1 1 x 2\ne 40 a 1 1 x 2\n");
  const auto zombie = history("n1", "b 10 a 1 1 x 1\ne 20 a 1 1 x 1\nb 50 a 1 1 x 3\ne 60 a 1 1 x 3\n");
  CHECK(one_owner_at_a_time({zombie, target}).size() == 1);
  const auto moved_back = history("n1", "b 10 a 1 1 x 1\ne 20 a 1 1 x 1\nb 50 a 1 2 x 3\ne 60 a 1 2 x 3\n");
  CHECK(one_owner_at_a_time({moved_back, target}).empty());
}

TEST_CASE("L-196 turns of a room and of its members that overlap are found") {
  const auto together = history("n1", "b 10 r 1 1 x 1\ne 20 r 1 1 x 1\nb 15 w 1 2 x 1\ne 25 w 1 2 x 1\n");
  CHECK(one_gate({together}, {"r", "w"}).size() == 1);
  CHECK(one_gate({together}, {"r"}).empty());
}

TEST_CASE("L-2 L-6 L-78 M-150 gaps, duplicates, lost ends and reorderings of requests are found; a one-way message may be late") {
  const std::string calls = "s 1 a x 1 r 100\nd 5 a x 1 ok -\ns 6 a x 2 r 100\nd 9 a x 2 ok -\n";
  const auto run = [&](const std::string& turns, const std::string& asked) {
    return whole_streams({history("n1", turns, asked)}).size();
  };
  CHECK(run("b 2 a 1 1 x 1\nb 7 a 1 1 x 2\n", calls) == 0);
  CHECK(run("b 2 a 1 1 x 2\nb 7 a 1 1 x 1\n", calls) == 1);
  CHECK(run("b 2 a 1 1 x 1\nb 7 a 1 2 x 1\nb 8 a 1 1 x 2\n", calls) == 1);
  CHECK(run("b 7 a 1 1 x 2\n", calls) == 1);
  CHECK(run("b 7 a 1 1 x 1\n", calls) == 1);
  CHECK(run("b 7 a 1 1 clock 1\nb 8 a 1 1 clock 3\n", {}) == 1);
  CHECK(run("b 7 a 1 1 x 2\n", "s 1 a x 1 r 100\nd 5 a x 1 unavailable -\ns 6 a x 2 r 100\nd 9 a x 2 ok -\n") == 0);
  const std::string sends = "s 1 a x 1 o 100\nd 5 a x 1 ok -\ns 6 a x 2 o 100\nd 9 a x 2 ok -\n";
  CHECK(run("b 2 a 1 1 x 2\nb 7 a 1 1 x 1\n", sends) == 0);
  CHECK(run("b 2 a 1 1 x 2\n", sends) == 1);
  CHECK(run("b 2 a 1 1 x 1\n", sends) == 1);
  CHECK(run("b 2 a 1 1 x 2\nb 7 a 1 1 x 1\nb 8 a 1 1 x 1\n", sends) == 1);
}

TEST_CASE("L-23 a state that is not what was served is found") {
  const auto source = history("n1", "b 10 a 1 1 x 1\ne 20 a 1 1 x 1\n");
  const auto target = history("n2", "b 30 a 1 1 x 2\ne 40 a 1 1 x 2\n");
  tally right;
  right.take("x", 1);
  right.take("x", 2);
  tally overtaken;
  overtaken.take("x", 2);
  overtaken.take("x", 1);
  CHECK(true_tallies({target, source}, {{"a", to_string(right)}}).empty());
  CHECK(true_tallies({target, source}, {{"a", to_string(overtaken)}}).size() == 1);
  const auto ticking = history("n2", "b 30 a 1 1 x 2\ne 40 a 1 1 x 2\nb 50 a 1 1 clock 1\ne 60 a 1 1 clock 1\n");
  CHECK(true_tallies({ticking, source}, {{"a", to_string(right)}}).empty());
  const auto served_on = history("n2", "b 30 a 1 1 x 2\ne 40 a 1 1 x 2\nb 50 a 1 1 x 3\ne 60 a 1 1 x 3\n");
  CHECK(true_tallies({served_on, source}, {{"a", to_string(right)}}).size() == 1);
  CHECK(true_tallies({target, source}, {{"b", to_string(right)}}).size() == 1);
  CHECK(pauses_of({target, source}).moves == 1);
}

TEST_CASE("L-249 what the end of a process costs is told apart from what it must not cost") {
  const auto at = [](std::int64_t ms) { return zlink::steady_time{std::chrono::milliseconds{ms}}; };
  const auto left = [&](const std::string& calls) {
    const auto rest = without_excused({history("n1", "b 5000000 a 1 1 x 1\n", calls)}, {{at(100), at(200)}},
                                      std::chrono::milliseconds{10});
    return rest.front().calls.size();
  };
  CHECK(left("s 99000000 a y 1 r 100\nd 101000000 a y 1 unavailable -\n") == 0);
  CHECK(left("s 199000000 a y 1 r 100\nd 201000000 a y 1 shutting_down -\n") == 0);
  CHECK(left("s 95000000 a y 1 o 100\nd 95000000 a y 1 ok -\n") == 0);
  CHECK(left("s 80000000 a y 1 o 100\nd 80000000 a y 1 ok -\n") == 1);
  CHECK(left("s 95000000 a x 1 o 100\nd 95000000 a x 1 ok -\n") == 1); // it ran
  CHECK(left("s 95000000 a y 1 r 100\nd 99000000 a y 1 unavailable -\n") == 1);
  CHECK(left("s 99000000 a y 1 r 100\nd 101000000 a y 1 deadline_exceeded -\n") == 1);
  CHECK(left("s 210000000 a y 1 r 100\nd 211000000 a y 1 unavailable -\n") == 1);
}
