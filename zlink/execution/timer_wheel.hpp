// All deadlines and ticks of a host in one structure: a hierarchical timing wheel over intrusive entries.
// Inserting and cancelling touch a constant number of words whatever the number of entries, and allocate nothing.
#pragma once

#include "zlink/clock.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace zlink::detail {

/// Base of whatever waits for a time. Lives in its owner, at a fixed address while linked, and is cancelled before it
/// is destroyed.
class wheel_entry {
public:
  wheel_entry() = default;
  wheel_entry(const wheel_entry&) = delete;
  wheel_entry& operator=(const wheel_entry&) = delete;
  ~wheel_entry();

  /// True from `insert()` until the entry is popped or cancelled.
  bool linked() const noexcept { return next_ != nullptr; }

private:
  friend class timer_wheel;
  friend class wheel_list;
  wheel_entry* prev_ = nullptr;
  wheel_entry* next_ = nullptr;
  std::uint64_t tick_ = 0;
  std::uint16_t slot_ = 0;
};

/// A circular list of entries; keeps their order.
class wheel_list {
public:
  wheel_list() noexcept;
  wheel_list(const wheel_list&) = delete;
  wheel_list& operator=(const wheel_list&) = delete;
  ~wheel_list();

  bool empty() const noexcept { return head_.next_ == &head_; }
  void push_back(wheel_entry& entry) noexcept;
  wheel_entry* pop_front() noexcept;
  /// Moves all of `other` behind the own entries, in constant time.
  void take_all(wheel_list& other) noexcept;
  /// Takes the entry out of whichever list it is in.
  static void unlink(wheel_entry& entry) noexcept;

private:
  wheel_entry head_;
};

/// Ticks of 1 ms. Not thread-safe: one serial unit drives it, arming its alarm with `next_due()` and calling
/// `advance()` when the alarm comes.
///
/// Eight levels of 64 slots span every value of `steady_time`. The level of an entry is the highest base-64 digit in
/// which its tick differs from the current one; since that depends on nothing else, entries of one tick are always in
/// one slot, which keeps their order of insertion through every step down.
class timer_wheel {
public:
  /// `now` is the time at which the wheel begins.
  explicit timer_wheel(steady_time now) noexcept;
  timer_wheel(const timer_wheel&) = delete;
  timer_wheel& operator=(const timer_wheel&) = delete;
  /// Entries still linked are let go, unexpired.
  ~timer_wheel() = default;

  /// Links an entry that is not linked. It expires with the first `advance()` to `due` or later, rounded up to the
  /// tick, never earlier. A time that has passed counts as due now: it expires with the next `advance()`.
  void insert(wheel_entry& entry, steady_time due) noexcept;

  /// Unlinks the entry, also one that has expired and was not popped yet. False if it was not linked.
  bool cancel(wheel_entry& entry) noexcept;

  /// Expires everything due at `now`; a time before the last one counts as the last one. `steady_time::max()` expires
  /// all there is.
  void advance(steady_time now) noexcept;

  /// The expired entries, by due tick and within a tick by insertion; null if there is none. What is inserted meanwhile
  /// waits for the next `advance()`, so that popping until null always ends.
  wheel_entry* pop_expired() noexcept;

  /// When to call `advance()` next: never after the earliest deadline. It is earlier than that while the deadline is
  /// far (at most seven times per entry, however far); in the past if something has expired; `steady_time::max()` if
  /// the wheel is empty.
  steady_time next_due() const noexcept;

  /// Linked entries.
  std::size_t size() const noexcept { return size_; }

private:
  static constexpr unsigned digit_bits = 6;
  static constexpr std::size_t slots_per_level = std::size_t{1} << digit_bits;
  static constexpr std::size_t levels = 8;

  void place(wheel_entry& entry) noexcept;
  void open_slot(std::size_t level, std::size_t digit) noexcept;
  /// The first tick of a slot.
  std::uint64_t slot_start(std::size_t level, std::size_t digit) const noexcept;

  std::array<wheel_list, levels * slots_per_level> slots_;
  std::array<std::uint64_t, levels> occupied_{}; // one bit per slot: is it not empty
  wheel_list overdue_;                           // inserted with a time that had passed
  wheel_list expired_;
  std::uint64_t current_;
  std::size_t size_ = 0;
};

} // namespace zlink::detail
