// A clock that moves only when a test says so.
#pragma once

#include "zlink/clock.hpp"

#include <atomic>
#include <chrono>

namespace zlink::test {

class manual_clock final : public clock {
public:
  steady_time now() const noexcept override { return steady_time{steady_duration{now_.load()}}; }
  /// Follows `shift_wall` only: nothing in a store may depend on it (S-15).
  std::chrono::system_clock::time_point wall_now() const noexcept override {
    return std::chrono::system_clock::time_point{std::chrono::seconds{wall_.load()}};
  }
  void advance(steady_duration by) { now_ += by.count(); }
  void shift_wall(std::chrono::seconds by) { wall_ += by.count(); }

private:
  std::atomic<steady_duration::rep> now_{std::chrono::nanoseconds{std::chrono::hours{1}}.count()};
  std::atomic<std::chrono::seconds::rep> wall_{1'700'000'000};
};

} // namespace zlink::test
