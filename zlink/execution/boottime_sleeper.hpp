// How a thread waits for a moment that keeps coming nearer while the machine sleeps (S-39).
#pragma once

#include "zlink/clock.hpp"

namespace zlink::detail {

/// One thread sleeps, any thread wakes it. A timer descriptor on CLOCK_BOOTTIME rather than a timed wait on a
/// condition, which stands still during a suspension.
class boottime_sleeper {
public:
  /// Throws `std::system_error` if the process has no descriptor left.
  boottime_sleeper();
  boottime_sleeper(const boottime_sleeper&) = delete;
  boottime_sleeper& operator=(const boottime_sleeper&) = delete;
  ~boottime_sleeper();

  /// Returns after `wake()`, also one before the call, or once `duration` is over; now and then for no reason.
  /// `steady_duration::max()` waits for `wake()` alone.
  void sleep(steady_duration duration) noexcept;
  /// Any thread.
  void wake() noexcept;

private:
  int wake_ = -1;
  int timer_ = -1;
};

} // namespace zlink::detail
