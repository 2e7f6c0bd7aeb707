// Which session an Actor is bound to, as the node of the Actor knows it; it goes along when the Actor moves (N-69, L-170).
#pragma once

#include "zlink/packet.hpp"

#include <cstdint>
#include <string>

namespace zlink::detail {

struct session_binding {
  std::string owner_rid;             ///< of the session owner: the node that has the connection
  std::uint64_t owner_lifecycle = 0; ///< which run of it
  std::string session_id;
  std::uint64_t generation = 0;      ///< of the binding
  friend bool operator==(const session_binding&, const session_binding&) = default;
};

ZLINK_PACKET(session_binding, "zlink.session.binding", owner_rid, owner_lifecycle, session_id, generation)

} // namespace zlink::detail
