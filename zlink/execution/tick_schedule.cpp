#include "zlink/execution/tick_schedule.hpp"

#include <algorithm>

namespace zlink::detail {

namespace {

constexpr auto longest = steady_duration::max();

steady_duration saturated(std::chrono::milliseconds period) noexcept {
  return period > std::chrono::duration_cast<std::chrono::milliseconds>(longest) ? longest : steady_duration{period};
}

steady_duration saturated_sum(steady_duration a, steady_duration b) noexcept {
  return a > longest - b ? longest : a + b;
}

std::chrono::milliseconds whole_ms(steady_duration elapsed) noexcept {
  return std::chrono::floor<std::chrono::milliseconds>(elapsed);
}

} // namespace

tick_schedule::tick_schedule(std::chrono::milliseconds period, const timer_options& options,
                             steady_time registered) noexcept
  : period_(period),
    step_(saturated(period)),
    overrun_(options.overrun),
    catch_up_bound_(static_cast<std::uint64_t>(std::max(options.max_catch_up_ticks, 1))),
    registered_(registered) {
  progress_.next_due = step_;
}

tick_schedule::tick_schedule(std::chrono::milliseconds period, const timer_options& options,
                             const tick_progress& progress, steady_time now) noexcept
  : tick_schedule(period, options, now - progress.age) {
  progress_ = progress;
}

steady_time tick_schedule::next_due() const noexcept {
  const auto since_boot = registered_.time_since_epoch();
  return steady_time{since_boot.count() < 0 ? since_boot + progress_.next_due
                                            : saturated_sum(progress_.next_due, since_boot)};
}

timer_tick tick_schedule::start(steady_time now) noexcept {
  const auto index = choose_tick(now);
  const auto due = overrun_ == timer_overrun::delay_next_tick ? progress_.next_due : nominal_due(index);

  timer_tick tick;
  tick.period = period_;
  tick.delivery_index = ++progress_.delivery_index;
  tick.scheduled_index = index;
  tick.skipped_ticks = index - progress_.scheduled_index - 1;
  tick.scheduled = whole_ms(due);
  tick.started = whole_ms(now - registered_);
  tick.delay = tick.started - tick.scheduled;

  progress_.scheduled_index = index;
  progress_.earliest_index = index + 1;
  return tick;
}

void tick_schedule::end(steady_time now) noexcept {
  if (overrun_ == timer_overrun::delay_next_tick)
    progress_.next_due = saturated_sum(now - registered_, step_);
  else
    progress_.next_due = nominal_due(progress_.earliest_index);
}

void tick_schedule::drop_late_ticks(steady_time now) noexcept {
  if (overrun_ == timer_overrun::delay_next_tick)
    return; // never more than one
  progress_.earliest_index = std::max(progress_.earliest_index, newest_due(now));
  progress_.catch_up_to = 0;
  progress_.next_due = nominal_due(progress_.earliest_index);
}

tick_progress tick_schedule::progress(steady_time now) const noexcept {
  auto copy = progress_;
  copy.age = now - registered_;
  return copy;
}

std::uint64_t tick_schedule::choose_tick(steady_time now) noexcept {
  const auto next = progress_.earliest_index;
  if (overrun_ == timer_overrun::delay_next_tick || next <= progress_.catch_up_to)
    return next;
  const auto newest = std::max(newest_due(now), next);
  if (overrun_ == timer_overrun::skip_late_ticks)
    return newest;
  // A new catch-up interval: what falls due while its ticks are delivered belongs to the one after it.
  progress_.catch_up_to = newest;
  return newest - next < catch_up_bound_ ? next : newest - catch_up_bound_ + 1;
}

std::uint64_t tick_schedule::newest_due(steady_time now) const noexcept {
  const auto elapsed = now - registered_;
  return elapsed.count() < 0 ? 0 : static_cast<std::uint64_t>(elapsed / step_);
}

steady_duration tick_schedule::nominal_due(std::uint64_t index) const noexcept {
  const auto countable = static_cast<std::uint64_t>(longest / step_);
  return index > countable ? longest : step_ * static_cast<std::int64_t>(index);
}

} // namespace zlink::detail
