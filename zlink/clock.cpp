#include "zlink/clock.hpp"

#include <pthread.h>
#include <sys/random.h>
#include <time.h>

#include <mutex>
#include <system_error>

namespace zlink {

namespace {

// Fetched in blocks: one system call serves so many numbers of this thread. Every message takes two.
constexpr std::size_t random_block = 512;
thread_local std::uint64_t random_numbers[random_block];
thread_local std::size_t random_left = 0;

/// A process that was forked draws numbers of its own, not once more those that its parent had in stock.
[[maybe_unused]] const int dropped_by_forks = ::pthread_atfork(nullptr, nullptr, [] { random_left = 0; });

} // namespace

steady_time system_clock::now() const noexcept {
  timespec t{};
  ::clock_gettime(CLOCK_BOOTTIME, &t);
  return steady_time{std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec}};
}

std::chrono::system_clock::time_point system_clock::wall_now() const noexcept {
  return std::chrono::system_clock::now();
}

std::uint64_t system_random::next() {
  if (random_left == 0) {
    if (::getrandom(random_numbers, sizeof random_numbers, 0) != static_cast<ssize_t>(sizeof random_numbers))
      throw std::system_error{errno, std::generic_category(), "getrandom"};
    random_left = random_block;
  }
  return random_numbers[--random_left];
}

} // namespace zlink
