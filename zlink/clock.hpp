// The only way to ask for the time or for random numbers. A host gets both as options, so a test owns them (D-20).
#pragma once

#include "zlink/identity.hpp"

#include <chrono>
#include <cstdint>

namespace zlink {

/// Elapsed time since boot, advancing while the machine sleeps (S-39).
struct steady_time_tag {};
using steady_duration = std::chrono::nanoseconds;
using steady_time = std::chrono::time_point<steady_time_tag, steady_duration>;

/// Source of time. Thread-safe.
class clock {
public:
  virtual ~clock() = default;
  /// For every decision about elapsed time. Never goes back.
  virtual steady_time now() const noexcept = 0;
  /// For display and for `spot_closing_context::deadline` only (S-39).
  virtual std::chrono::system_clock::time_point wall_now() const noexcept = 0;
};

/// CLOCK_BOOTTIME and CLOCK_REALTIME.
class system_clock final : public clock {
public:
  steady_time now() const noexcept override;
  std::chrono::system_clock::time_point wall_now() const noexcept override;
};

/// Source of random bits. Thread-safe.
class random_source {
public:
  virtual ~random_source() = default;
  virtual std::uint64_t next() = 0;
  /// 128 bits, never zero.
  detail::unique_id next_id() {
    detail::unique_id id{next(), next()};
    return id ? id : next_id();
  }
};

/// The operating system's generator (C-10).
class system_random final : public random_source {
public:
  std::uint64_t next() override;
};

} // namespace zlink
