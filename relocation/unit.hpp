// What moves at once (L-10 to L-12).
#pragma once

#include "zlink/objects/hosted_object.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace zlink::detail {

class node_runtime;

enum class unit_kind : std::uint8_t {
  entry_actor,    ///< one Actor of an Entry Spot
  per_actor_spot, ///< the shell of a PerActor User Spot, without its members
  member_actor,   ///< one member of a PerActor User Spot
  spot_wide,      ///< a SpotWide User Spot with all who are members at the seal
  instance_spot,
  joining_actor,  ///< one Actor whose Join leads to a User Spot of another node (J-90)
};
inline constexpr std::uint8_t last_unit_kind = static_cast<std::uint8_t>(unit_kind::joining_actor);
constexpr bool is_actor_unit(unit_kind kind) noexcept {
  return kind == unit_kind::entry_actor || kind == unit_kind::member_actor || kind == unit_kind::joining_actor;
}

/// What the Join of an Actor needs where the Actor arrives.
struct join_ticket {
  std::string spot_id;
  object_generation spot_generation;
  std::string operation_id;
  std::optional<std::string> reply; ///< of `on_actor_join`, as requests are stored
};

struct relocation_unit {
  unit_kind kind = unit_kind::instance_spot;
  node_runtime* node = nullptr;    ///< of this host
  counted_ptr<hosted_object> lead; ///< the Spot, or the one Actor
  std::shared_ptr<const join_ticket> join = nullptr; ///< of `joining_actor`
};

} // namespace zlink::detail
