// The checkers notice what they are there for, and nothing else.
#include "tests/sim/checkers.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace zlink::test;

TEST_CASE("two visitors inside one gate are noticed, one after the other and in two gates are not") {
  exclusive_gates gates;
  {
    const auto first = gates.enter("a");
    const auto other = gates.enter("b");
  }
  auto second = gates.enter("a");
  const auto moved = std::move(second);
  CHECK(gates.broken().empty());
  const auto third = gates.enter("a");
  REQUIRE(gates.broken().size() == 1);
  CHECK(gates.broken().front() == "X-1: 2 turns inside gate a");
  CHECK(gates.fed() == 4);
}

TEST_CASE("numbers that fall or repeat are noticed per pair, gaps are not") {
  sender_order order;
  order.ran("x", "spot", 1);
  order.ran("x", "spot", 5);
  order.ran("y", "spot", 2);
  order.ran("x", "other", 3);
  CHECK(order.broken().empty());
  order.ran("x", "spot", 4);
  order.ran("x", "spot", 5);
  CHECK(order.broken().size() == 2);
  order.ran("x", "spot", 6);
  CHECK(order.broken().size() == 2);
}

TEST_CASE("ends without beginning, second ends and second beginnings are noticed, missing ends are listed") {
  single_end ends;
  ends.began("a");
  ends.began("b");
  CHECK(ends.open() == std::vector<std::string>{"a", "b"});
  ends.ended("a");
  CHECK(ends.broken().empty());
  CHECK(ends.open() == std::vector<std::string>{"b"});
  ends.ended("a");
  ends.ended("c");
  ends.began("b");
  CHECK(ends.broken().size() == 3);
}

TEST_CASE("a former owner that runs again is noticed, a succession is not") {
  single_owner owner;
  owner.ran("cart", "first");
  owner.ran("cart", "first");
  owner.ran("other", "first");
  owner.ran("cart", "second");
  CHECK(owner.broken().empty());
  CHECK(owner.owners("cart") == std::vector<std::string>{"first", "second"});
  owner.ran("cart", "first");
  CHECK(owner.broken().size() == 1);
  CHECK(owner.owners("nobody").empty());
}

TEST_CASE("a message that runs again is noticed") {
  at_most_once once;
  once.ran("a");
  once.ran("b");
  CHECK(once.broken().empty());
  CHECK(once.different() == 2);
  once.ran("a");
  CHECK(once.broken().size() == 1);
}
