// What it takes to decode values of other nodes. Shared by a host and by the values, which may outlive it.
#pragma once

#include "zlink/codec.hpp"

namespace caf {
class actor_system;
}

namespace zlink::detail {

class encoded_value;
class payload;

struct decoding {
  codec_registry codecs;
  caf::actor_system* system = nullptr; ///< for CAF messages (D-13); used while the host lives
};

/// The codecs that decode `value`: those of the host it came to, or the built-in ones.
const codec_registry& codecs_of(const encoded_value& value) noexcept;
/// A CAF message that travelled encoded becomes one again (D-13); other bodies stay. Throws `decode_error`.
void unpack_caf_message(payload& body, caf::actor_system* system);

} // namespace zlink::detail
