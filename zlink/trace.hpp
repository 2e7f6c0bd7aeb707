// What the layer reports about the life of objects, for logs and traces.
#pragma once

#include "zlink/identity.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace zlink {

/// The public categories (O-91). Values are fixed.
enum class trace_category : std::uint8_t { spot_instance = 0, actor_relocation = 1 };
/// "spot-instance", "actor-relocation".
const char* to_string(trace_category category) noexcept;

/// One thing that happened to one object. Views are good while the callback runs. No payload, no metadata (O-92).
struct trace_record {
  trace_category category = trace_category::spot_instance;
  /// "activating", "created", "rejected", "failed", "resumed", "passed_on", "closing", "closed", "abandoned"; of
  /// Actors also "joined", "left", "destroyed". Of the host (L-272): "zlink.runtime.host.relocation_changed",
  /// "zlink.runtime.host.termination_changed", and for each unit of a `relocate()` "zlink.runtime.relocation.changed"; these name
  /// an object where one did not move.
  std::string_view event;
  spot_kind kind = spot_kind::invalid; ///< of a Spot
  std::string_view mesh_name;
  std::string_view node_rid;
  std::string_view spot_id;
  std::string_view spot_type;          ///< stable type; empty for an Entry Spot
  std::string_view actor_id;           ///< of an Actor's record, else empty
  std::string_view actor_type;
  std::uint64_t object_generation = 0; ///< 0: none was issued
  std::string_view reason;             ///< of a close: its reason; of a failure: the kind of the error; else empty
  std::string_view state;              ///< of a host: what it has become; of a unit: "left", "stays"
  std::string_view unit_kind;          ///< of a unit, as its execution mode
  std::string_view execution_mode;     ///< "spot_wide", "per_actor"
  std::chrono::milliseconds interruption{0};  ///< of a unit that left: from its seal to the end of its cutover submit
  bool interruption_target_exceeded = false; ///< longer than one second (L-230)
  std::string_view cause;              ///< of a unit that stays and of a host that is blocked by it: why, in words (O-92, O-100)
};

} // namespace zlink
