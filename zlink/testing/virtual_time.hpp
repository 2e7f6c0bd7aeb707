// Time and random numbers that a test owns.
#pragma once

#include "zlink/clock.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>

namespace zlink::testing {

/// Moves only when somebody says so.
struct virtual_time {
  steady_time now{std::chrono::hours{1}};
};

/// One machine's view of it: all share the steady time, each may have a wrong calendar (S-15, S-39).
class virtual_clock final : public clock {
public:
  explicit virtual_clock(std::shared_ptr<const virtual_time> time) noexcept : time_(std::move(time)) {}
  steady_time now() const noexcept override { return time_->now; }
  std::chrono::system_clock::time_point wall_now() const noexcept override {
    const auto since_epoch = std::chrono::seconds{1'700'000'000} + time_->now.time_since_epoch() + wall_shift_;
    return std::chrono::system_clock::time_point{
      std::chrono::duration_cast<std::chrono::system_clock::duration>(since_epoch)};
  }
  /// Sets this machine's calendar forward, or back.
  void shift_wall(std::chrono::nanoseconds by) noexcept { wall_shift_ += by; }

private:
  std::shared_ptr<const virtual_time> time_;
  std::chrono::nanoseconds wall_shift_{0};
};

/// The same numbers for the same seed and stream, in every run and on every machine.
class seeded_random final : public random_source {
public:
  seeded_random(std::uint64_t seed, std::uint64_t stream) {
    std::seed_seq mixed{seed & 0xffff'ffff, seed >> 32, stream & 0xffff'ffff, stream >> 32};
    numbers_.seed(mixed);
  }
  std::uint64_t next() override { return numbers_(); }
  /// 0..limit-1; `limit` at least 1.
  std::uint64_t below(std::uint64_t limit) { return numbers_() % limit; }

private:
  std::mt19937_64 numbers_;
};

} // namespace zlink::testing
