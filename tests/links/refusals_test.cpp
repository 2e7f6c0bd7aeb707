#include "adapters/tcp/refusals.hpp"
#include "tests/core/store/manual_clock.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

using namespace zlink;
using namespace zlink::detail;
using namespace zlink::test;

TEST_CASE("a refused peer is counted each time and told of once a minute") {
  const auto time = std::make_shared<manual_clock>();
  std::vector<link_refusal> told;
  refusals book{"m", [&](const link_refusal& what) { told.push_back(what); }, time};
  for (int i = 0; i < 500; ++i)
    book.note("10.0.0.1", i % 2 == 0 ? refusal::mesh : refusal::secret);
  book.note("10.0.0.2", refusal::version, "detail");
  CHECK(book.total() == 501);
  CHECK(book.count(refusal::mesh) == 250);
  REQUIRE(told.size() == 2);
  CHECK(told[0].peer == "10.0.0.1");
  CHECK(told[0].mesh == "m");
  CHECK(told[1].reason == "another version of the link's protocol: detail");
  time->advance(std::chrono::seconds{59});
  book.note("10.0.0.1", refusal::mesh);
  CHECK(told.size() == 2);
  time->advance(std::chrono::seconds{1});
  book.note("10.0.0.1", refusal::mesh);
  REQUIRE(told.size() == 3);
  CHECK(told[2].further == 500);
  CHECK(told[2].total == 503);
  CHECK(to_string(told[2]) == "zlink: link refused mesh=m peer=10.0.0.1: another mesh (and 500 before, not told)");
}

TEST_CASE("peers from everywhere are counted all, told of a thousand times, and then as many") {
  const auto time = std::make_shared<manual_clock>();
  std::vector<link_refusal> told;
  refusals book{"m", [&](const link_refusal& what) { told.push_back(what); }, time};
  for (int i = 0; i < 100'000; ++i)
    book.note("10.0." + std::to_string(i), refusal::not_a_peer);
  CHECK(book.total() == 100'000);
  CHECK(told.size() == 1'025);
  CHECK(told.back().peer == "many");
  time->advance(std::chrono::minutes{1});
  book.note("new", refusal::not_a_peer); // old ones have been forgotten
  CHECK(told.back().peer == "new");
}

TEST_CASE("O-115 a log that fails changes nothing") {
  const auto time = std::make_shared<manual_clock>();
  refusals book{"m", [](const link_refusal&) { throw std::runtime_error{"full"}; }, time};
  book.note("p", refusal::late);
  CHECK(book.count(refusal::late) == 1);
}
