#include "zlink/execution/timer_wheel.hpp"

#include <bit>
#include <cassert>
#include <cstdlib>
#include <limits>

namespace zlink::detail {

namespace {

constexpr std::int64_t tick_ns = 1'000'000;

/// The last tick that has begun at `t`.
std::uint64_t tick_at(steady_time t) noexcept {
  const auto ns = t.time_since_epoch().count();
  return ns <= 0 ? 0 : static_cast<std::uint64_t>(ns / tick_ns);
}

/// The first tick that begins at `t` or later.
std::uint64_t tick_not_before(steady_time t) noexcept {
  const auto ns = t.time_since_epoch().count();
  return ns <= 0 ? 0 : static_cast<std::uint64_t>((ns - 1) / tick_ns + 1);
}

steady_time time_of(std::uint64_t tick) noexcept {
  constexpr auto last = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / tick_ns);
  return tick > last ? steady_time::max() : steady_time{steady_duration{static_cast<std::int64_t>(tick) * tick_ns}};
}

} // namespace

wheel_entry::~wheel_entry() {
  // Checked in every build: going on would leave the wheel with a pointer into freed memory.
  if (linked())
    std::abort();
}

wheel_list::wheel_list() noexcept { head_.prev_ = head_.next_ = &head_; }

wheel_list::~wheel_list() {
  while (pop_front() != nullptr) {}
  head_.next_ = nullptr;
}

void wheel_list::push_back(wheel_entry& entry) noexcept {
  entry.prev_ = head_.prev_;
  entry.next_ = &head_;
  head_.prev_->next_ = &entry;
  head_.prev_ = &entry;
}

wheel_entry* wheel_list::pop_front() noexcept {
  if (empty())
    return nullptr;
  auto* first = head_.next_;
  unlink(*first);
  return first;
}

void wheel_list::take_all(wheel_list& other) noexcept {
  if (other.empty())
    return;
  auto* first = other.head_.next_;
  auto* last = other.head_.prev_;
  other.head_.prev_ = other.head_.next_ = &other.head_;
  first->prev_ = head_.prev_;
  last->next_ = &head_;
  head_.prev_->next_ = first;
  head_.prev_ = last;
}

void wheel_list::unlink(wheel_entry& entry) noexcept {
  entry.prev_->next_ = entry.next_;
  entry.next_->prev_ = entry.prev_;
  entry.prev_ = entry.next_ = nullptr;
}

timer_wheel::timer_wheel(steady_time now) noexcept : current_(tick_at(now)) {}

void timer_wheel::insert(wheel_entry& entry, steady_time due) noexcept {
  assert(!entry.linked());
  entry.tick_ = tick_not_before(due);
  ++size_;
  if (entry.tick_ <= current_)
    overdue_.push_back(entry);
  else
    place(entry);
}

bool timer_wheel::cancel(wheel_entry& entry) noexcept {
  if (!entry.linked())
    return false;
  wheel_list::unlink(entry);
  --size_;
  // An expired or overdue entry names a slot it is no longer in; asking the slot itself is right in every case.
  if (slots_[entry.slot_].empty())
    occupied_[entry.slot_ / slots_per_level] &= ~(std::uint64_t{1} << (entry.slot_ % slots_per_level));
  return true;
}

void timer_wheel::advance(steady_time now) noexcept {
  // The end of time is within its last tick, so that tick would never have ended.
  const auto target = now == steady_time::max() ? tick_not_before(now) : tick_at(now);
  expired_.take_all(overdue_);
  if (target <= current_)
    return;
  // A lower level is due before every higher one, because it is within the current slot of the higher one.
  for (std::size_t level = 0; level < levels;) {
    if (occupied_[level] == 0) {
      ++level;
      continue;
    }
    const auto digit = static_cast<std::size_t>(std::countr_zero(occupied_[level]));
    const auto start = slot_start(level, digit);
    if (start > target)
      break;
    current_ = start;
    open_slot(level, digit);
    level = 0;
  }
  current_ = target;
}

wheel_entry* timer_wheel::pop_expired() noexcept {
  auto* entry = expired_.pop_front();
  if (entry != nullptr)
    --size_;
  return entry;
}

steady_time timer_wheel::next_due() const noexcept {
  if (!expired_.empty() || !overdue_.empty())
    return time_of(current_);
  for (std::size_t level = 0; level < levels; ++level)
    if (occupied_[level] != 0)
      return time_of(slot_start(level, static_cast<std::size_t>(std::countr_zero(occupied_[level]))));
  return steady_time::max();
}

void timer_wheel::place(wheel_entry& entry) noexcept {
  const auto highest_bit = static_cast<std::size_t>(std::bit_width(entry.tick_ ^ current_)) - 1;
  const auto level = highest_bit / digit_bits;
  const auto digit = (entry.tick_ >> (level * digit_bits)) % slots_per_level;
  entry.slot_ = static_cast<std::uint16_t>(level * slots_per_level + digit);
  slots_[entry.slot_].push_back(entry);
  occupied_[level] |= std::uint64_t{1} << digit;
}

void timer_wheel::open_slot(std::size_t level, std::size_t digit) noexcept {
  auto& slot = slots_[level * slots_per_level + digit];
  occupied_[level] &= ~(std::uint64_t{1} << digit);
  if (level == 0) {
    expired_.take_all(slot);
    return;
  }
  // Each entry goes to a lower level, never back into this slot, so the loop ends.
  while (auto* entry = slot.pop_front()) {
    if (entry->tick_ == current_)
      expired_.push_back(*entry);
    else
      place(*entry);
  }
}

std::uint64_t timer_wheel::slot_start(std::size_t level, std::size_t digit) const noexcept {
  const auto shift = level * digit_bits;
  const auto above = (current_ >> shift >> digit_bits) << digit_bits;
  return (above | digit) << shift;
}

} // namespace zlink::detail
