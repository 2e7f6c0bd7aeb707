// Numbers that are never issued twice: stored counters, and the blocks a host takes from them (S-30 to S-33, D-19).
#pragma once

#include "zlink/placement/record_keys.hpp"
#include "zlink/placement/records.hpp"

#include <cstdint>
#include <optional>

namespace zlink::placement {

/// A counter's next step, to be part of the batch that uses the numbers, or a batch of its own for a block. The numbers
/// `first` to `first + count - 1` are the caller's once that batch was applied, and never before.
struct counter_advance {
  store_condition condition;
  store_mutation mutation;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// Up to `wanted` (> 0) numbers; fewer when the counter ends. Nothing: exhausted, for ever. A missing counter starts
/// at 1 in a store of this process only, else at the store's time in microseconds, so that numbers stay larger than
/// those lost with former data (S-32).
std::optional<counter_advance> advance_counter(sequence which, const observed<counter_record>& seen,
                                               std::uint64_t wanted, bool process_local);

/// The numbers of one sequence that a host may give out without asking the store. A batch of its own advances the
/// counter by a whole block; what a host does not use is never issued to anybody (S-31: gaps are legal, repetition is
/// not).
template <class Generation>
class generation_block {
public:
  static constexpr std::uint64_t block_size = 1'000;

  /// The next number; nothing if the block is used up, or if the counter is exhausted.
  std::optional<Generation> take() noexcept {
    if (next_ == end_) {
      next_ = spare_next_;
      end_ = spare_end_;
      spare_next_ = spare_end_ = 0;
    }
    if (next_ == end_)
      return std::nullopt;
    return Generation{next_++};
  }
  std::uint64_t left() const noexcept { return (end_ - next_) + (spare_end_ - spare_next_); }
  /// Time to fetch the next block, before callers have to wait for it. False when exhausted.
  bool is_low() const noexcept { return !exhausted_ && left() <= block_size / 4; }

  /// The batch with this step was applied. At most one block may be fetched at a time, and only while `is_low()`.
  void add(const counter_advance& applied) noexcept {
    spare_next_ = applied.first;
    spare_end_ = applied.first + applied.count;
  }
  /// `advance_counter` gave nothing: what is left may still be used.
  void set_exhausted() noexcept { exhausted_ = true; }
  /// Nothing left and nothing to come: the caller sees `internal_failure` (S-30).
  bool exhausted() const noexcept { return exhausted_ && left() == 0; }

private:
  std::uint64_t next_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t spare_next_ = 0;
  std::uint64_t spare_end_ = 0;
  bool exhausted_ = false;
};

} // namespace zlink::placement
