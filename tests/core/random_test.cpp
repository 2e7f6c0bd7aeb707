// The operating system's random numbers, and processes that fork.
#include "zlink/clock.hpp"

#include <doctest/doctest.h>

#include <cstdint>

#include <sys/wait.h>
#include <unistd.h>

namespace {

// A program that draws something, and then forks the processes that are to be nodes of a mesh: routing ids, leases and
// operations of all of them come from here.
TEST_CASE("C-10 a child process does not draw the numbers that its parent draws") {
  zlink::system_random random;
  static_cast<void>(random.next()); // more than one has been fetched by now
  int ends[2]{};
  REQUIRE(::pipe(ends) == 0);
  const auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const auto drawn = random.next();
    ::_exit(::write(ends[1], &drawn, sizeof drawn) == sizeof drawn ? 0 : 1);
  }
  const auto own = random.next();
  std::uint64_t other = 0;
  CHECK(::read(ends[0], &other, sizeof other) == sizeof other);
  CHECK(own != other);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

} // namespace
