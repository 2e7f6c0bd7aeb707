#include "zlink/execution/processor_wait.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

namespace zlink::detail {

namespace {

/// What the kernel knows of the thread: nanoseconds on a processor, and ready to run without one.
bool read_own_times(std::uint64_t& ran, std::uint64_t& waited) noexcept {
  const int file = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return false;
  std::array<char, 96> text{};
  const auto size = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  unsigned long long first = 0;
  unsigned long long second = 0;
  if (size <= 0 || std::sscanf(text.data(), "%llu %llu", &first, &second) != 2)
    return false;
  ran = first;
  waited = second;
  return true;
}

} // namespace

unsigned processor_wait::percent() noexcept {
  std::uint64_t ran = 0;
  std::uint64_t waited = 0;
  if (!read_own_times(ran, waited))
    return 0;
  const auto ran_now = ran - std::exchange(ran_ns_, ran);
  const auto waited_now = waited - std::exchange(waited_ns_, waited);
  if (!std::exchange(begun_, true) || ran_now + waited_now == 0)
    return 0;
  return static_cast<unsigned>(100 * waited_now / (ran_now + waited_now));
}

} // namespace zlink::detail
