// Numbers that are never issued twice. A counter advances in the batch that uses its numbers (S-30 to S-33): so they are in
// the order in which the store committed them, whichever host did, and a new incarnation is larger than every earlier one
// (C-120).
#pragma once

#include "zlink/placement/record_keys.hpp"
#include "zlink/placement/records.hpp"

#include <cstdint>
#include <optional>

namespace zlink::placement {

/// A counter's next step, to be part of the batch that uses the numbers. `first` to `first + count - 1` are the caller's
/// once that batch was applied, and never before.
struct counter_advance {
  store_condition condition;
  store_mutation mutation;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// The number that the counter issues next. A missing counter starts at 1 in a store of this process only, else at the
/// store's time in microseconds, so that numbers stay larger than those lost with former data (S-32).
std::uint64_t first_number(const observed<counter_record>& seen, bool process_local) noexcept;
/// Up to `wanted` (> 0) numbers; fewer when the counter ends. Nothing: exhausted, for ever.
std::optional<counter_advance> advance_counter(sequence which, const observed<counter_record>& seen,
                                               std::uint64_t wanted, bool process_local);

/// Both counters of objects as this host saw or wrote them last. They may be outdated, which a Conflict shows.
class counter_copies {
public:
  /// Null: never read, or forgotten.
  const observed<counter_record>* find(sequence which) const noexcept {
    const auto& one = at(which);
    return one ? &*one : nullptr;
  }
  /// There is a record that this layer cannot decode (S-21).
  bool unreadable() const noexcept { return object_.unreadable || authority_.unreadable; }
  /// True if that is another version than before.
  bool note(sequence which, const store_read_result& seen);
  /// A batch that issued numbers was applied.
  void note_issued(sequence which, std::uint64_t next, std::string version);
  void forget() noexcept { object_ = authority_ = {}; }

private:
  struct copy {
    std::optional<observed<counter_record>> seen;
    bool unreadable = false;
  };
  copy& place(sequence which) noexcept { return which == sequence::object ? object_ : authority_; }
  const std::optional<observed<counter_record>>& at(sequence which) const noexcept {
    return which == sequence::object ? object_.seen : authority_.seen;
  }

  copy object_;
  copy authority_;
};

} // namespace zlink::placement
