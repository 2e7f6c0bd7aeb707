// Invoking a `caf::behavior` from a record, every outcome observed (D-13).
#pragma once

#include "zlink/execution/record.hpp"

#include <caf/behavior.hpp>

#include <cstdint>

namespace zlink::detail {

class execution_object;
class face_port;

enum class behavior_outcome : std::uint8_t {
  done,     ///< the record's body is the reply
  parked,   ///< answered later through a promise or a delegate
  no_match,
};

/// Runs inside a turn. `face` may be null: then the behaviour has no `self()` and cannot make promises. Throws what the
/// behaviour throws, unless it has made a promise before.
behavior_outcome call_behavior(execution_object& object, caf::behavior& behavior, face_port* face, record& r);

} // namespace zlink::detail
