// Where records wait: two lanes per execution object, each a bounded FIFO with one admission word (D-1).
#pragma once

#include "zlink/execution/record.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <stdexcept>

namespace zlink::detail {

struct lane_limits {
  std::uint32_t records = 1024;
  std::uint64_t bytes = 64ULL * 1024 * 1024;
};

/// What a lane says to a record that wants in.
enum class admission : std::uint8_t {
  admitted,
  no_room, ///< or others wait already: queue behind them (M-151)
  staging, ///< the object is still being created
  sealed,  ///< closing, moving or gone: look the object up again
};

/// Count, bytes, seal, staging and "has waiters" in one word, so that check and reservation are one step.
class admission_word {
public:
  static constexpr std::uint64_t staging_bit = 1;
  static constexpr std::uint64_t sealed_bit = 2;
  static constexpr std::uint64_t waiters_bit = 4;

  explicit admission_word(std::uint64_t flags = 0) noexcept : word_(flags) {}

  /// Reserves one place and `bytes`, or changes nothing. `may_stage`: the record carries Instance intent. `behind_waiters`
  /// is false only for a waiter whose turn has come.
  admission admit(std::uint64_t bytes, const lane_limits& limits, bool may_stage, bool behind_waiters = true) noexcept {
    auto seen = word_.load(std::memory_order_relaxed);
    for (;;) {
      if ((seen & sealed_bit) != 0)
        return admission::sealed;
      if ((seen & staging_bit) != 0 && !may_stage)
        return admission::staging;
      if (behind_waiters && (seen & waiters_bit) != 0)
        return admission::no_room;
      const auto count = count_of(seen);
      if (count >= limits.records || (count != 0 && bytes_of(seen) + bytes > limits.bytes))
        return admission::no_room;
      if (word_.compare_exchange_weak(seen, seen + reservation(bytes), std::memory_order_acq_rel,
                                      std::memory_order_relaxed))
        return admission::admitted;
    }
  }

  /// Reserves whatever the room: a record from another node waits in its object's lane.
  admission admit_arrival(std::uint64_t bytes, bool may_stage) noexcept {
    auto seen = word_.load(std::memory_order_relaxed);
    for (;;) {
      if ((seen & sealed_bit) != 0)
        return admission::sealed;
      if ((seen & staging_bit) != 0 && !may_stage)
        return admission::staging;
      if (word_.compare_exchange_weak(seen, seen + reservation(bytes), std::memory_order_acq_rel,
                                      std::memory_order_relaxed))
        return admission::admitted;
    }
  }

  /// Reserves without asking: records that leave a hold or come from another node (X-86, D-6).
  void charge(std::uint64_t bytes) noexcept { word_.fetch_add(reservation(bytes), std::memory_order_acq_rel); }

  /// Returns reservations; true if somebody waits for room.
  bool release(std::uint64_t records, std::uint64_t bytes) noexcept {
    const auto before = word_.fetch_sub((records << count_shift) + (bytes << byte_shift), std::memory_order_acq_rel);
    return (before & waiters_bit) != 0;
  }

  void set(std::uint64_t flags) noexcept { word_.fetch_or(flags, std::memory_order_acq_rel); }
  void clear(std::uint64_t flags) noexcept { word_.fetch_and(~flags, std::memory_order_acq_rel); }
  bool has(std::uint64_t flags) const noexcept { return (word_.load(std::memory_order_acquire) & flags) != 0; }
  std::uint64_t records() const noexcept { return count_of(word_.load(std::memory_order_acquire)); }
  std::uint64_t bytes() const noexcept { return bytes_of(word_.load(std::memory_order_acquire)); }

  /// Largest limits that the word can count to.
  static constexpr std::uint32_t most_records = (1U << 24) - 1;
  static constexpr std::uint64_t most_bytes = (1ULL << 36) - 1;

private:
  // 4 bits of flags, 24 of count, 36 of bytes.
  static constexpr int count_shift = 4;
  static constexpr int byte_shift = 28;
  static constexpr std::uint64_t count_mask = most_records;

  static std::uint64_t count_of(std::uint64_t word) noexcept { return (word >> count_shift) & count_mask; }
  static std::uint64_t bytes_of(std::uint64_t word) noexcept { return word >> byte_shift; }
  static std::uint64_t reservation(std::uint64_t bytes) noexcept {
    return (1ULL << count_shift) + (bytes << byte_shift);
  }

  std::atomic<std::uint64_t> word_;
};

/// Records in acceptance order; touched only by the gate that holds the lane.
class record_fifo {
public:
  bool empty() const noexcept { return first_ == nullptr; }
  void push_back(record* r) noexcept {
    r->next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = r;
    last_ = r;
  }
  const record* front() const noexcept { return static_cast<const record*>(first_); }
  /// Behind the continuations at the head.
  void push_continuation(record* r) noexcept {
    inbox_node* before = nullptr;
    for (auto* n = first_; n != nullptr && static_cast<record*>(n)->kind == record_kind::resume; n = n->next)
      before = n;
    auto& place = before == nullptr ? first_ : before->next;
    r->next = place;
    place = r;
    if (r->next == nullptr)
      last_ = r;
  }
  record* pop_front() noexcept {
    auto* r = static_cast<record*>(first_);
    first_ = r->next;
    return r;
  }

private:
  inbox_node* first_ = nullptr;
  inbox_node* last_ = nullptr;
};

/// Fixed part of a record's cost in bytes.
inline constexpr std::uint64_t record_overhead_bytes = 256;

/// The largest cost of one record; what costs more is refused as an argument error.
inline constexpr std::uint32_t largest_cost = 0xffff'ffff;

/// A sum that never passes `largest_cost`, however large its parts.
constexpr std::uint32_t pinned_cost(std::uint64_t body_bytes, std::uint64_t metadata_bytes) noexcept {
  const auto rest = largest_cost - record_overhead_bytes;
  return body_bytes >= rest || metadata_bytes >= rest - body_bytes
           ? largest_cost
           : static_cast<std::uint32_t>(record_overhead_bytes + body_bytes + metadata_bytes);
}

/// payload plus metadata plus 256.
inline std::uint32_t cost_of(record& r) noexcept {
  return pinned_cost(r.body.size(), r.extra ? r.extra->metadata.encoded().size() : 0);
}

/// Throws `std::invalid_argument` for a cost that no lane takes.
inline void require_lane_cost(std::uint32_t cost) {
  if (cost == largest_cost)
    throw std::invalid_argument{"a message of 4 GiB or more, metadata included; send it in parts"};
}

/// Picks the lane of the next turn of one execution object.
class lane_chooser {
public:
  enum class choice : std::uint8_t { none, application, lifecycle };
  static constexpr std::uint8_t cap = 8;

  choice pick(bool application_ready, bool lifecycle_ready) noexcept {
    if (!application_ready && !lifecycle_ready)
      return choice::none;
    if (!lifecycle_ready || (debt_ && application_ready)) {
      run_ = 0;
      debt_ = false;
      return choice::application;
    }
    if (application_ready && ++run_ == cap) {
      run_ = 0;
      debt_ = true;
    }
    return choice::lifecycle;
  }

private:
  std::uint8_t run_ = 0; ///< lifecycle turns in a row while application work was ready
  bool debt_ = false;
};

} // namespace zlink::detail
