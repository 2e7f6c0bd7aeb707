// What moves at once (L-10 to L-12).
#pragma once

#include "zlink/objects/hosted_object.hpp"

#include <cstdint>

namespace zlink::detail {

class node_runtime;

enum class unit_kind : std::uint8_t {
  entry_actor,    ///< one Actor of an Entry Spot
  per_actor_spot, ///< the shell of a PerActor User Spot, without its members
  member_actor,   ///< one member of a PerActor User Spot
  spot_wide,      ///< a SpotWide User Spot with all who are members at the seal
  instance_spot,
};

struct relocation_unit {
  unit_kind kind = unit_kind::instance_spot;
  node_runtime* node = nullptr;   ///< of this host
  counted_ptr<hosted_object> lead; ///< the Spot, or the one Actor
};

} // namespace zlink::detail
