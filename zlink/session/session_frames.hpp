// What the two sides of a move say to the owner of a session whose Actor moves (L-61, L-162, L-171, N-125, N-133). The owner
// says nothing by itself.
#pragma once

#include "zlink/codec.hpp"
#include "zlink/session/session_binding.hpp"

#include <cstdint>
#include <string>

namespace zlink::detail {

/// `seal_session`: asked by the source once the Actor rests. The answer says whether the seal is there, and no more.
struct seal_question {
  session_binding binding;
  std::string actor_id;
  std::uint64_t generation = 0; ///< of the Actor
  std::uint64_t move_high = 0;
  std::uint64_t move_low = 0;
};

/// In `control_answer::state`.
enum class seal_answer : std::uint8_t {
  absent = 0,    ///< no such session, or another binding: the Actor moves as one without
  installed = 1,
  contended = 2, ///< another move has a seal there
};

/// `session_relocation_route`, told once (L-171).
struct session_route {
  std::uint8_t action = 0;      ///< `session_route_action`
  session_binding binding;
  std::string actor_id;
  std::uint64_t generation = 0; ///< of the Actor
  std::string mesh_name;        ///< of the target, from here on of a commit
  std::string node_rid;
  std::uint64_t authority = 0;  ///< the new fence
};

/// On the wire: never renumbered.
enum class session_route_action : std::uint8_t {
  commit = 1, ///< by the target: the Actor is open there
  abort = 2,  ///< by the source: it stays
};

ZLINK_PACKET(seal_question, "zlink.session.seal", binding, actor_id, generation, move_high, move_low)
ZLINK_PACKET(session_route, "zlink.session.route", action, binding, actor_id, generation, mesh_name, node_rid, authority)

/// Throws `decode_error`.
inline session_route decode_session_route(byte_view body) {
  auto told = decode<session_route>(body);
  if (told.action != static_cast<std::uint8_t>(session_route_action::commit) && told.action != static_cast<std::uint8_t>(session_route_action::abort))
    throw decode_error{"command 44 with an action that there is not"};
  return told;
}

} // namespace zlink::detail
