#include "zlink/clock.hpp"

#include <sys/random.h>
#include <time.h>

#include <mutex>
#include <system_error>

namespace zlink {

steady_time system_clock::now() const noexcept {
  timespec t{};
  ::clock_gettime(CLOCK_BOOTTIME, &t);
  return steady_time{std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec}};
}

std::chrono::system_clock::time_point system_clock::wall_now() const noexcept {
  return std::chrono::system_clock::now();
}

std::uint64_t system_random::next() {
  // Fetched in blocks: one system call serves so many numbers of this thread. Every message takes two.
  constexpr std::size_t block = 512;
  thread_local std::uint64_t buffer[block];
  thread_local std::size_t left = 0;
  if (left == 0) {
    if (::getrandom(buffer, sizeof buffer, 0) != static_cast<ssize_t>(sizeof buffer))
      throw std::system_error{errno, std::generic_category(), "getrandom"};
    left = block;
  }
  return buffer[--left];
}

} // namespace zlink
