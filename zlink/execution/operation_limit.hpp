// How many operations of a host may be under way: requests, waiting sends and worker calls.
#pragma once

#include "zlink/defaults.hpp"
#include "zlink/execution/fair_limit.hpp"

#include <atomic>
#include <cstdint>

namespace zlink::detail {

/// An operation enters before anything of it is sent, and leaves when it has ended. One that finds no room waits in
/// line with its entry, and is cancelled there when its own deadline or its caller comes first.
class operation_limit final : public fair_limit {
public:
  explicit operation_limit(std::uint32_t max_operations = defaults::max_operations) noexcept
    : fair_limit(max_operations) {}

  /// Somebody waits for a place, or has got one and does not use it yet: nobody overtakes (M-151).
  bool has_waiters() const noexcept { return fair_limit::has_waiters() || on_their_way_.load(std::memory_order_acquire) != 0; }
  /// One that waits, or has got its place and will use it on another thread; `used()` when it has.
  void will_use() noexcept { on_their_way_.fetch_add(1, std::memory_order_acq_rel); }
  void used() noexcept { on_their_way_.fetch_sub(1, std::memory_order_acq_rel); }

private:
  std::atomic<std::uint32_t> on_their_way_{0};
};

} // namespace zlink::detail
