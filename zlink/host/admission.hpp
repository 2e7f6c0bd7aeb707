// What a host takes up in which state: the one admission table (L-260), which everybody asks.
#pragma once

#include "zlink/error.hpp"
#include "zlink/host.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace zlink::detail {

/// What wants to begin. The rows of the table, and what it leaves to other clauses.
enum class host_work : std::uint8_t {
  selection,      ///< of this host, anew, for a channel message or an event
  node_message,   ///< arrives for the node itself, or for a channel or an event that it was selected for before (L-245)
  object_message, ///< for an object of this host; when its unit is sealed is the unit's matter (X-170)
  absent_object,  ///< a message for an object that is not here, and whose move is not followed
  placement_here, ///< create, join, placement of an Instance Spot, bind: aimed at this host
  placement_away, ///< the same for another target, and every other call that begins here
  control,        ///< a question of another node about what this host has
  new_session,
  session_work, ///< of a session that is there, and no reply
};

/// Why that is refused in that state, or nothing: it is taken.
constexpr std::optional<error_kind> refusal(host_work work, host_state state) noexcept {
  constexpr std::optional<error_kind> taken;
  constexpr std::optional away{error_kind::unavailable};
  constexpr std::optional ends{error_kind::shutting_down};
  constexpr std::optional early{error_kind::not_configured};
  using row = std::array<std::optional<error_kind>, 7>;
  constexpr std::array<row, 9> table{{
    // preparing serving relocating relocated draining stopped error
    {away, taken, away, away, ends, ends, away},     // selection
    {taken, taken, taken, taken, ends, ends, taken}, // node_message
    {taken, taken, taken, taken, ends, ends, taken}, // object_message
    {taken, taken, taken, away, ends, ends, taken},  // absent_object
    {taken, taken, away, away, ends, ends, away},    // placement_here: other nodes know it before it serves
    {early, taken, taken, taken, ends, ends, away},  // placement_away
    {taken, taken, taken, taken, ends, ends, taken}, // control
    {away, taken, away, away, ends, ends, away},     // new_session
    {taken, taken, taken, taken, ends, ends, taken}, // session_work
  }};
  return table[static_cast<std::size_t>(work)][static_cast<std::size_t>(state)];
}

} // namespace zlink::detail
