// What an application sees of a timer: its options, the handle, and what a tick tells its handler.
#pragma once

#include "zlink/defaults.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace zlink {

/// What happens to ticks that fell due while the handler or its gate was busy.
enum class timer_overrun : std::uint8_t {
  /// Only the newest due tick is delivered.
  skip_late_ticks,
  /// Late ticks are delivered in order, the oldest beyond `max_catch_up_ticks` are dropped.
  catch_up_bounded,
  /// The next tick is due one period after the handler has ended; none is late or skipped.
  delay_next_tick,
};

struct timer_options {
  timer_overrun overrun = timer_overrun::skip_late_ticks;
  /// 1..INT_MAX under `catch_up_bounded`; not looked at under the other policies.
  int max_catch_up_ticks = defaults::max_catch_up_ticks;
  /// Whether an exception of the handler ends the timer instead of the tick.
  bool stop_on_unhandled_exception = false;
};

/// One tick, as its handler gets it. Only the three indices are exact; the times are what the clock said
///
struct timer_tick {
  /// The name of the registration; valid as long as the handler runs.
  std::string_view name;
  std::chrono::milliseconds period{0};
  /// 1 for the first callback of the registration, then one more for each.
  std::uint64_t delivery_index = 0;
  /// Which nominal tick this is, the first due one being 1. Never below `delivery_index`.
  std::uint64_t scheduled_index = 0;
  /// Nominal ticks between the callback before and this one that were not delivered.
  std::uint64_t skipped_ticks = 0;
  /// When the tick was due and when its callback started, both from the registration on.
  std::chrono::milliseconds scheduled{0};
  std::chrono::milliseconds started{0};
  /// `started` minus `scheduled`.
  std::chrono::milliseconds delay{0};
};

namespace detail {

/// What a registration and its handles share.
struct timer_state {
  timer_state(std::string name, std::uint64_t generation) : name(std::move(name)), generation(generation) {}

  const std::string name;
  /// Rises with every registration of the same name.
  const std::uint64_t generation;
  std::atomic<bool> cancelled{false};
};

/// Beyond it a due time could not be told.
inline constexpr std::chrono::milliseconds longest_timer_period = std::chrono::years{100};
/// Throws `std::invalid_argument` for an empty name, a period below 1 ms or beyond the longest, or a catch-up bound below 1
/// where it counts.
void require_valid_timer(std::string_view name, std::chrono::milliseconds period, const timer_options& options);

} // namespace detail

/// Handle of one registration. Copies stand for the same one; a default-made handle stands for none. Letting go of it
/// does not cancel the timer, which belongs to its Spot or Actor.
class timer {
public:
  timer() = default;
  explicit timer(std::shared_ptr<detail::timer_state> state) noexcept : state_(std::move(state)) {}

  /// No callback of this registration starts any more; one that runs ends normally. Any number of times, also inside
  /// the callback. Any thread.
  void cancel() noexcept {
    if (state_)
      state_->cancelled.store(true, std::memory_order_release);
  }

private:
  std::shared_ptr<detail::timer_state> state_;
};

} // namespace zlink
