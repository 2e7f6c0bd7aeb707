// A bound on how many may be inside at once, the others waiting in order: the core of host permits and of the
// in-flight bound.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace zlink::detail {

/// One place in the waiting line. Lives in its owner and waits for one limit at a time.
class limit_waiter {
public:
  limit_waiter() = default;
  limit_waiter(const limit_waiter&) = delete;
  limit_waiter& operator=(const limit_waiter&) = delete;

  /// The waiter is inside now, as if `enter()` had returned true. Called once for each wait that was not cancelled, on
  /// the thread that left, without a lock. It only passes the news on: work done here would run on a stranger's stack,
  /// and leaving from here would nest one call for each waiter.
  virtual void on_entered() noexcept = 0;
  /// The same from a thread that may be used: `leave_here()`. Leaving from in here tells others by `on_entered()`.
  virtual void on_entered_here() noexcept { on_entered(); }

protected:
  ~limit_waiter();

private:
  friend class fair_limit;
  limit_waiter* prev_ = nullptr;
  limit_waiter* next_ = nullptr;
  bool waits_ = false;
};

/// Thread-safe. Entering and leaving are one atomic step each while nobody waits. A place that is left goes to the
/// first waiter, and nobody enters past a waiter.
class fair_limit {
public:
  /// At least 1.
  explicit fair_limit(std::uint32_t limit) noexcept;
  fair_limit(const fair_limit&) = delete;
  fair_limit& operator=(const fair_limit&) = delete;
  /// Nobody waits any more.
  ~fair_limit() = default;

  /// True if inside now; false if there is no room, or others wait for it.
  bool try_enter() noexcept;

  /// True if inside now. Else the waiter stands at the end of the line, or where it stood if it waits already, until
  /// `on_entered()` or `cancel()`.
  bool enter(limit_waiter& waiter) noexcept;

  /// True if the waiter waited and is out of the line. False if it did not; then, if it did before, its `on_entered()`
  /// has been called or is about to be, and it stays alive until then.
  bool cancel(limit_waiter& waiter) noexcept;

  /// Gives back a place.
  void leave() noexcept;
  /// The same: whoever gets it may do a little work on this thread at once.
  void leave_here() noexcept;

  bool has_waiters() const noexcept { return (word_.load(std::memory_order_relaxed) & waiters_bit) != 0; }
  std::uint32_t limit() const noexcept { return limit_; }
  std::uint32_t inside() const noexcept { return static_cast<std::uint32_t>(word_.load() >> 1); }
  std::size_t waiting() const noexcept;

private:
  // The word is twice the number inside, plus 1 while the line is not empty; that bit changes under the lock only, and
  // there is no room while it is set.
  static constexpr std::uint64_t waiters_bit = 1;
  static constexpr std::uint64_t one_inside = 2;

  bool full(std::uint64_t word) const noexcept { return (word >> 1) >= limit_; }
  void unlink(limit_waiter& waiter) noexcept;
  /// Null: the place is free now. Else who has it.
  limit_waiter* pass_on() noexcept;

  const std::uint32_t limit_;
  std::atomic<std::uint64_t> word_{0};
  mutable std::mutex mutex_;
  limit_waiter* first_ = nullptr;
  limit_waiter* last_ = nullptr;
  std::size_t waiting_ = 0;
};

} // namespace zlink::detail
