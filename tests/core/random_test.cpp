#include "zlink/clock.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

TEST_CASE("C-4 a process that was forked draws numbers of its own: routing ids of both would be equal otherwise") {
  zlink::system_random random;
  random.next(); // there are numbers in stock now
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const auto child = ::fork();
  if (child == 0) {
    const std::uint64_t drawn = random.next();
    ::_exit(::write(ends[1], &drawn, sizeof drawn) == sizeof drawn ? 0 : 1);
  }
  std::uint64_t drawn = 0;
  CHECK(::read(ends[0], &drawn, sizeof drawn) == sizeof drawn);
  CHECK(drawn != random.next());
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  ::close(ends[0]);
  ::close(ends[1]);
}
