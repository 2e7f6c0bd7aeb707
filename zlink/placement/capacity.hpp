// Arithmetic of slots on a node (S-80 to S-84, C-36).
#pragma once

#include "zlink/placement/records.hpp"

#include <cstdint>

namespace zlink::placement {

/// What one object takes: an Actor one Actor slot; a Spot one Spot slot and one of its type (C-36).
slot_bundle slots_of(object_kind kind, const std::string& stable_type);

/// Upper bounds of the buckets a bundle touches; 0: none.
struct capacity_limits {
  std::uint32_t actors = 0;
  std::uint32_t spots = 0;
  std::uint32_t type_slots = 0;
  friend bool operator==(const capacity_limits&, const capacity_limits&) = default;
};

/// The limits that `node` published for a bundle with slots of this type.
capacity_limits limits_of(const descriptor_record& node, const slot_bundle& slots) noexcept;

/// The only steps a slot takes; no other change of a bucket exists (S-83).
enum class slot_step : std::uint8_t {
  reserve,       ///< free to reserved
  activate,      ///< reserved to active
  free_reserved, ///< reserved to free
  free_active,   ///< active to free
};

/// A step of one bundle on one node lifecycle. `limits` matter for `reserve` only.
struct capacity_change {
  node_identity node;
  slot_bundle slots;
  slot_step step = slot_step::reserve;
  capacity_limits limits;
};

enum class capacity_outcome : std::uint8_t {
  done,
  no_capacity, ///< over a limit; nothing changed (S-82)
  corrupt,     ///< a bucket would go below zero; nothing changed (S-84)
};

/// Applies the step to all buckets of the bundle, or to none. The lifecycle is the caller's to compare.
capacity_outcome apply(capacity_record& record, const capacity_change& change);

} // namespace zlink::placement
