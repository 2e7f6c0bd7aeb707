// How many objects of a kind there are on a node.
#pragma once

#include <atomic>
#include <cstdint>

namespace zlink::detail {

/// Objects in being against the node's own ceiling, whatever the store says (C-37). Any thread.
class slot_count {
public:
  /// False, and nothing taken: `limit` are in being. 0: no limit.
  bool take(std::uint32_t limit) noexcept {
    if (limit == 0 || taken_.load(std::memory_order_relaxed) < limit) {
      if (taken_.fetch_add(1, std::memory_order_acq_rel) < limit || limit == 0)
        return true;
      give_back();
    }
    return false;
  }
  void give_back() noexcept { taken_.fetch_sub(1, std::memory_order_acq_rel); }

private:
  std::atomic<std::uint32_t> taken_{0};
};

/// A place in two counts, or in none.
inline bool take_both(slot_count& one, std::uint32_t limit_of_one, slot_count& other, std::uint32_t limit_of_other) noexcept {
  if (!one.take(limit_of_one))
    return false;
  if (other.take(limit_of_other))
    return true;
  one.give_back();
  return false;
}

} // namespace zlink::detail
