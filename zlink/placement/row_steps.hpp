// What the transitions are made of; internal to zlink/placement.
#pragma once

#include "zlink/placement/lease.hpp"
#include "zlink/placement/record_codec.hpp"
#include "zlink/placement/record_keys.hpp"
#include "zlink/placement/transitions.hpp"

namespace zlink::placement::steps {

inline store_condition missing(std::string key) { return {store_condition::test::missing, std::move(key), {}}; }
inline store_condition unchanged(std::string key, std::string version) {
  return {store_condition::test::version, std::move(key), std::move(version)};
}
inline store_condition descriptor_unchanged(const descriptor_stamp& stamp) {
  return unchanged(descriptor_key(stamp.node), stamp.version);
}
inline store_mutation erased(std::string key) { return {std::move(key), std::nullopt, std::nullopt}; }

/// A fragment that replaces the row that was seen, or removes it.
inline fragment replace_row(const observed_object& seen, std::string key, const row_record& row) {
  fragment step;
  step.conditions.reserve(3); // most steps name lease and descriptor too
  step.mutations.push_back({key, encode(row), std::nullopt});
  step.conditions.push_back(unchanged(std::move(key), seen.version));
  return step;
}
inline fragment remove_row(const observed_object& seen, std::string key) {
  fragment step;
  step.conditions.reserve(3);
  step.mutations.push_back(erased(key));
  step.conditions.push_back(unchanged(std::move(key), seen.version));
  return step;
}

/// Removing a row in the middle of a move also returns what it holds on the target.
inline void free_move_slots(fragment& step, const row_record& row) {
  if (row.move && row.move->stage == move_stage::prepared)
    step.capacity.push_back({row.move->target, row.move->slots, slot_step::free_reserved, {}});
}

/// The condition that a record is as it was read: these bytes, or absent. Renewals of a lease do not matter (S-13).
template <class Record>
store_condition as_read(std::string key, const observed<Record>& seen) {
  if (!seen.record)
    return missing(std::move(key));
  return {store_condition::test::value, std::move(key), encode(*seen.record)};
}

/// True for an active row of this kind that this owner may change; aggregates decide by their own record (S-88).
inline bool is_owned(const row_record* row, const owned_object& object) noexcept {
  return row && row->state == allocation_state::active && row->kind == object.kind && row->owner == object.owner
         && !row->aggregate;
}

} // namespace zlink::placement::steps
