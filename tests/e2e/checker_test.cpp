// The rules can fail: each is fed a log that breaks it, beside one that does not.
#include "tests/e2e/checker.hpp"

#include <doctest/doctest.h>

using namespace zlink::test;
using namespace std::chrono_literals;

namespace {

zlink::steady_time at(std::int64_t nanoseconds) { return zlink::steady_time{std::chrono::nanoseconds{nanoseconds}}; }

process_history history(const std::string& name, const std::string& turns, const std::string& calls = {}) {
  process_history one;
  one.name = name;
  read_turns(one, turns);
  read_calls(one, calls);
  return one;
}

bool any(const call&) { return true; }

} // namespace

TEST_CASE("S-2 turns of an earlier incarnation after one of a later one are found") {
  const auto old_one = history("n1", "b 10 a 1 1 x 1\ne 20 a 1 1 x 1\n");
  CHECK(one_incarnation_at_a_time({old_one, history("n2", "b 30 a 2 1 x 2\ne 40 a 2 1 x 2\n")}).empty());
  const auto again = history("n1", "b 10 a 1 1 x 1\ne 20 a 1 1 x 1\nb 50 a 1 1 x 3\ne 60 a 1 1 x 3\n");
  CHECK(one_incarnation_at_a_time({again, history("n2", "b 30 a 2 1 x 2\ne 40 a 2 1 x 2\n")}).size() == 1);
  CHECK(one_incarnation_at_a_time({again, history("n2", "b 30 b 2 1 x 2\ne 40 b 2 1 x 2\n")}).empty()); // another id
}

TEST_CASE("C-120 a later incarnation with a smaller or equal generation is found") {
  const auto first = history("n1", "b 10 a 2 1 x 1\ne 20 a 2 1 x 1\n");
  CHECK(one_incarnation_at_a_time({first, history("n2", "b 30 a 1 1 x 2\ne 40 a 1 1 x 2\n")}).size() == 1);
  CHECK(one_incarnation_at_a_time({first, history("n2", "b 30 a 2 1 x 2\ne 40 a 2 1 x 2\n")}).size() == 1);
  const auto rebuilt = history("n1", "b 10 a 2 1 x 1\ne 20 a 2 1 x 1\nb 30 a 2 2 x 2\ne 40 a 2 2 x 2\n");
  CHECK(one_incarnation_at_a_time({rebuilt}).empty());
}

TEST_CASE("X-10 turns of one id that overlap are found, but not those that a freeze cut in two") {
  const auto later = history("n2", "b 25 a 2 1 x 2\ne 40 a 2 1 x 2\n");
  auto former = history("n1", "b 10 a 1 1 x 1\ne 30 a 1 1 x 1\n");
  CHECK(one_incarnation_at_a_time({former, later}).size() == 1);
  former.frozen = {{at(15), at(29)}};
  CHECK(one_incarnation_at_a_time({former, later}).empty());
  const auto inside = history("n1", "b 10 a 1 1 x 1\nb 15 a 1 1 y 1\ne 20 a 1 1 x 1\ne 21 a 1 1 y 1\n");
  CHECK(one_incarnation_at_a_time({inside}).size() == 1);
  const auto around = history("n1", "b 10 a 1 1 x 1\nb 12 a 1 1 y 1\ne 13 a 1 1 y 1\nb 15 a 1 1 z 1\ne 20 a 1 1 x 1\n");
  CHECK(one_incarnation_at_a_time({around}).size() == 2);
}

TEST_CASE("M-148 M-5 messages out of order and messages that run twice are found") {
  CHECK(in_order_and_once({history("n1", "b 1 a 1 1 x 1\nb 2 a 1 1 y 1\nb 3 a 1 1 x 3\nb 4 b 1 1 x 1\n")}).empty());
  CHECK(in_order_and_once({history("n1", "b 1 a 1 1 x 2\nb 2 a 1 1 x 1\n")}).size() == 1);
  CHECK(in_order_and_once({history("n1", "b 1 a 1 1 x 1\n"), history("n2", "b 9 a 2 1 x 1\n")}).size() == 1);
  CHECK(in_order_and_once({history("n1", "b 1 a 1 1 x 1\ne 2 a 1 1 x 1\nb 3 a 1 1 x 1\n")}).size() == 2);
}

TEST_CASE("M-130 calls without end, with two, with a wrong or a late one are found") {
  const auto check = [](const std::string& calls) {
    return named_outcomes({history("n1", "", calls)}, {"ok", "unavailable"}, 1ms).size();
  };
  CHECK(check("s 1 a x 1 r 5\nd 6000000 a x 1 ok 1@n1#1\n") == 0);
  CHECK(check("s 1 a x 1 r 5\n") == 1);
  CHECK(check("s 1 a x 1 r 5\nd 2 a x 1 ok 1@n1#1\nd 3 a x 1 unavailable -\n") == 1);
  CHECK(check("s 1 a x 1 r 5\nd 2 a x 1 not_found -\n") == 1);
  CHECK(check("s 1 a x 1 r 5\nd 6000002 a x 1 ok 1@n1#1\n") == 1);
}

TEST_CASE("M-130 a killed process owes no outcome, and a freeze of the caller moves its deadlines") {
  auto one = history("n1", "", "s 1 a x 1 r 5\nd 20000000 a x 1 ok 1@n1#1\ns 2 a x 2 r 5\n");
  CHECK(named_outcomes({one}, {"ok"}, 1ms).size() == 2);
  one.killed = at(30'000'000);
  CHECK(named_outcomes({one}, {"ok"}, 1ms).size() == 1);
  one.frozen = {{at(3), at(19'500'000)}};
  CHECK(named_outcomes({one}, {"ok"}, 1ms).empty());
}

TEST_CASE("M-139 answers without a turn, from another incarnation, or outside of the call's time are found") {
  const std::string calls = "s 10 a x 1 r 5\nd 40 a x 1 ok 7@n1#1\n";
  const auto check = [&](const std::string& turns) { return answers_are_true({history("n1", turns, calls)}).size(); };
  CHECK(check("b 20 a 7 1 x 1\ne 30 a 7 1 x 1\n") == 0);
  CHECK(check("") == 1);
  CHECK(check("b 20 a 8 1 x 1\ne 30 a 8 1 x 1\n") == 1);
  CHECK(check("b 20 a 7 1 x 1\n") == 1);
  CHECK(check("b 5 a 7 1 x 1\ne 30 a 7 1 x 1\n") == 1);
  CHECK(check("b 20 a 7 1 x 1\ne 50 a 7 1 x 1\n") == 1);
}

TEST_CASE("S-63 calls that wait for their own timeout, or end otherwise than named, are found") {
  const auto check = [](const std::string& calls) {
    return end_quickly({history("n1", "", calls)}, any, at(100), 1ms, {"unavailable"}).size();
  };
  CHECK(check("s 1 a x 1 r 500\nd 900000 a x 1 unavailable -\ns 2 a x 2 r 9\nd 99 a x 2 ok 1@n1#1\n") == 0);
  CHECK(check("s 1 a x 1 r 500\nd 1000101 a x 1 unavailable -\n") == 1);
  CHECK(check("s 1 a x 1 r 500\nd 900000 a x 1 deadline_exceeded -\n") == 1);
  CHECK(check("s 1 a x 1 r 500\n") == 1);
}

TEST_CASE("S-40 turns in a time without admission, and processes that grow, are found") {
  const auto one = history("n1", "b 10 a 1 1 x 1\nb 20 a 1 1 x 2\n");
  const auto all = [](const turn&) { return true; };
  CHECK(no_turns({one}, all, at(10), at(20)).empty());
  CHECK(no_turns({one}, all, at(9), at(21)).size() == 2);
  CHECK(bounded_memory({{"n1", {10, 14, 15}}, {"n2", {}}}, 5).empty());
  CHECK(bounded_memory({{"n1", {10, 16, 12}}}, 5).size() == 1);
}

TEST_CASE("a log that nobody writes is refused") {
  CHECK_THROWS(history("n1", "e 1 a 1 1 x 1\n"));
  CHECK_THROWS(history("n1", "b 1 a 1\n"));
  CHECK_THROWS(history("n1", "", "d 1 a x 1 ok -\n"));
  CHECK_THROWS(history("n1", "", "s 1 a x 1 r 5\ns 2 a x 1 r 5\n"));
}
