#include "zlink/execution/boottime_sleeper.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>

namespace zlink::detail {

boottime_sleeper::boottime_sleeper() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_ < 0)
    throw std::system_error{errno, std::generic_category(), "eventfd"};
  timer_ = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  if (timer_ < 0) {
    const int reason = errno;
    ::close(wake_);
    throw std::system_error{reason, std::generic_category(), "timerfd_create"};
  }
}

boottime_sleeper::~boottime_sleeper() {
  ::close(timer_);
  ::close(wake_);
}

void boottime_sleeper::sleep(steady_duration duration) noexcept {
  constexpr std::int64_t second = 1'000'000'000;
  // Zero would disarm the timer, which is what an endless sleep wants.
  const auto ns = duration == steady_duration::max() ? 0 : std::max<std::int64_t>(duration.count(), 1);
  itimerspec spec{};
  spec.it_value.tv_sec = static_cast<time_t>(ns / second);
  spec.it_value.tv_nsec = static_cast<long>(ns % second);
  ::timerfd_settime(timer_, 0, &spec, nullptr);

  pollfd ready[] = {{wake_, POLLIN, 0}, {timer_, POLLIN, 0}};
  if (::poll(ready, 2, -1) > 0 && ready[0].revents != 0) {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto ignored = ::read(wake_, &count, sizeof count);
  }
}

void boottime_sleeper::wake() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto ignored = ::write(wake_, &one, sizeof one);
}

} // namespace zlink::detail
