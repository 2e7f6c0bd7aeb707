// The arithmetic of one timer registration: when its next tick is due, and which tick a callback that starts now
// delivers. It keeps no tick history and knows neither clock nor wheel; its owner tells it the time.
#pragma once

#include "zlink/clock.hpp"
#include "zlink/timer.hpp"

#include <chrono>
#include <cstdint>

namespace zlink::detail {

/// How far a schedule has come; what travels with a relocation (L-75). Times count from the registration, so that they
/// mean the same on a machine with another clock.
struct tick_progress {
  std::uint64_t delivery_index = 0;
  std::uint64_t scheduled_index = 0;
  /// The first index that may still be delivered.
  std::uint64_t earliest_index = 1;
  /// The last tick of the catch-up interval under way; 0 outside one.
  std::uint64_t catch_up_to = 0;
  steady_duration next_due{0};
  /// How long the registration had lived when this was taken.
  steady_duration age{0};
};

/// Owned by the gate of its timer; not thread-safe. The owner keeps at most one pending record and at most one
/// running callback, in a circle: `next_due()` passes, `start()`, `end()`.
class tick_schedule {
public:
  /// Arguments have passed `require_valid_timer()`. The first tick is due one period after `registered`.
  tick_schedule(std::chrono::milliseconds period, const timer_options& options, steady_time registered) noexcept;
  /// Goes on elsewhere: `now` is the moment at which the registration has the age that `progress` states. Add the time
  /// on the way to that age, and ticks missed meanwhile are treated by the overrun policy (L-78).
  tick_schedule(std::chrono::milliseconds period, const timer_options& options, const tick_progress& progress,
                steady_time now) noexcept;

  /// When the next tick's record is to be queued; in the past if that tick is late. Not while a callback runs.
  steady_time next_due() const noexcept;

  /// A callback starts now: says which tick it delivers, all but its name. Not before `next_due()`.
  timer_tick start(steady_time now) noexcept;

  /// The callback, and every continuation it awaited, has ended.
  void end(steady_time now) noexcept;

  /// Ticks were not allowed to start up to now: leaves at most one late tick under every policy.
  void drop_late_ticks(steady_time now) noexcept;

  /// Not while a callback runs.
  tick_progress progress(steady_time now) const noexcept;

private:
  /// The nominal tick that has fallen due last; 0 before the first.
  std::uint64_t newest_due(steady_time now) const noexcept;
  std::uint64_t choose_tick(steady_time now) noexcept;
  steady_duration nominal_due(std::uint64_t index) const noexcept;

  std::chrono::milliseconds period_;
  steady_duration step_; // the period, as long as the clock can count
  timer_overrun overrun_;
  std::uint64_t catch_up_bound_;
  steady_time registered_;
  tick_progress progress_;
};

} // namespace zlink::detail
