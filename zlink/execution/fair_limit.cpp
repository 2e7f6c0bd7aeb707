#include "zlink/execution/fair_limit.hpp"

#include <cassert>
#include <cstdlib>

namespace zlink::detail {

limit_waiter::~limit_waiter() {
  // Checked in every build: the line would lead through freed memory.
  if (waits_)
    std::abort();
}

fair_limit::fair_limit(std::uint32_t limit) noexcept : limit_(limit) { assert(limit > 0); }

bool fair_limit::try_enter() noexcept {
  auto word = word_.load(std::memory_order_relaxed);
  do {
    if (full(word)) // as it is while anybody waits
      return false;
  } while (!word_.compare_exchange_weak(word, word + one_inside));
  return true;
}

bool fair_limit::enter(limit_waiter& waiter) noexcept {
  if (try_enter())
    return true;
  std::lock_guard lock{mutex_};
  if (waiter.waits_)
    return false;
  auto word = word_.load(std::memory_order_relaxed);
  while ((word & waiters_bit) == 0) {
    // Who leaves after the bit is set waits for the lock and then finds this waiter in the line.
    if (word_.compare_exchange_weak(word, full(word) ? word | waiters_bit : word + one_inside)) {
      if (!full(word))
        return true;
      break;
    }
  }
  waiter.waits_ = true;
  waiter.prev_ = last_;
  (last_ ? last_->next_ : first_) = &waiter;
  last_ = &waiter;
  ++waiting_;
  return false;
}

bool fair_limit::cancel(limit_waiter& waiter) noexcept {
  std::lock_guard lock{mutex_};
  if (!waiter.waits_)
    return false;
  unlink(waiter);
  return true;
}

void fair_limit::leave() noexcept {
  if (auto* next = pass_on())
    next->on_entered();
}

void fair_limit::leave_here() noexcept {
  if (auto* next = pass_on())
    next->on_entered_here();
}

limit_waiter* fair_limit::pass_on() noexcept {
  auto word = word_.load(std::memory_order_relaxed);
  for (;;) {
    assert(word >= one_inside);
    if ((word & waiters_bit) == 0) {
      if (word_.compare_exchange_weak(word, word - one_inside))
        return nullptr;
      continue;
    }
    std::lock_guard lock{mutex_};
    if (auto* const next = first_) {
      unlink(*next); // and the number inside stays the same
      return next;
    }
    word = word_.load(std::memory_order_relaxed); // the line emptied while this thread came to the lock
  }
}

std::size_t fair_limit::waiting() const noexcept {
  std::lock_guard lock{mutex_};
  return waiting_;
}

void fair_limit::unlink(limit_waiter& waiter) noexcept {
  (waiter.prev_ ? waiter.prev_->next_ : first_) = waiter.next_;
  (waiter.next_ ? waiter.next_->prev_ : last_) = waiter.prev_;
  waiter.prev_ = waiter.next_ = nullptr;
  waiter.waits_ = false;
  if (--waiting_ == 0)
    word_.fetch_and(~waiters_bit);
}

} // namespace zlink::detail
