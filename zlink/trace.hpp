// What the layer reports about the life of objects, for logs and traces.
#pragma once

#include "zlink/identity.hpp"

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
  /// Actors also "joined", "left", "destroyed".
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
};

} // namespace zlink
