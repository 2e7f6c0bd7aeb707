// Operation id -> operation, for calls made in the turns of one gate. Touched only inside the gate (D-4).
#pragma once

#include "zlink/execution/operation.hpp"

#include <cstdint>
#include <vector>

namespace zlink::detail {

class operation_table {
public:
  /// The id of a new entry; never zero. `due`: `steady_time::max()` for an operation whose end something else guarantees.
  std::uint64_t add(counted_ptr<operation_base> operation, execution_object* owner, steady_time due) {
    if (free_ == none) {
      entries_.emplace_back();
      free_ = static_cast<std::uint32_t>(entries_.size() - 1);
    }
    const auto index = free_;
    auto& e = entries_[index];
    free_ = e.next_free;
    e.operation = std::move(operation);
    e.owner = owner;
    e.due = due;
    ++count_;
    return std::uint64_t{e.generation} << 32 | index;
  }

  struct taken {
    counted_ptr<operation_base> operation; ///< null: ended before (X-152)
    execution_object* owner = nullptr;
  };
  /// Whoever takes the entry decides the operation (M-130).
  taken take(std::uint64_t id) noexcept {
    const auto index = static_cast<std::uint32_t>(id);
    if (index >= entries_.size() || entries_[index].generation != static_cast<std::uint32_t>(id >> 32))
      return {};
    auto& e = entries_[index];
    taken result{std::move(e.operation), e.owner};
    if (++e.generation == 0)
      e.generation = 1;
    e.next_free = free_;
    free_ = index;
    --count_;
    return result;
  }

  /// Ids of entries for which `wanted(owner, due)`.
  template <class F>
  std::vector<std::uint64_t> select(F wanted) const {
    std::vector<std::uint64_t> ids;
    for (std::uint32_t i = 0; i < entries_.size(); ++i)
      if (entries_[i].operation && wanted(entries_[i].owner, entries_[i].due))
        ids.push_back(std::uint64_t{entries_[i].generation} << 32 | i);
    return ids;
  }
  steady_time earliest_due() const noexcept {
    auto earliest = steady_time::max();
    for (const auto& e : entries_)
      if (e.operation)
        earliest = std::min(earliest, e.due);
    return earliest;
  }
  std::size_t size() const noexcept { return count_; }

private:
  static constexpr std::uint32_t none = 0xffff'ffff;
  struct entry {
    counted_ptr<operation_base> operation;
    execution_object* owner = nullptr;
    steady_time due{};
    std::uint32_t generation = 1;
    std::uint32_t next_free = none;
  };
  std::vector<entry> entries_;
  std::uint32_t free_ = none;
  std::uint32_t count_ = 0;
};

} // namespace zlink::detail
