// Questions of the layer to another node and their answers, over a link's control path (C-69, C-75, C-77).
#pragma once

#include "zlink/error.hpp"
#include "zlink/execution/infrastructure.hpp"
#include "zlink/identity.hpp"
#include "zlink/packet_type.hpp"
#include "zlink/task.hpp"

#include <cstdint>
#include <map>
#include <optional>

namespace zlink::detail {

class link_session;

/// On the wire: never renumbered.
enum class control_command : std::uint16_t {
  create_spot = 1,
  close_spot = 2,
  answer = 3,
  stale_route = 4, ///< told, not asked: what came by a route did not run, since the Spot is not there (M-82)
  channel_state = 5, ///< told: weights have changed, or the node is about to end (M-101)
  destroy_actor = 6,
  ask_join = 7, ///< of a User Spot, for an Actor of the node that asks (J-90)
  seal_session = 8, ///< of a session owner, for an Actor that moves (L-61)
  // Told between the source and the target of a move (relocation/lane_frames.hpp).
  restore = 16,
  restore_chunk = 17,
  chunks_taken = 18,
  restore_refused = 19,
  relay_ready = 20,
  relay = 21,
  cutover = 22,
  move_abandoned = 23,
  route_moved = 24, ///< to whoever sent a message that was followed (M-85)
  session_relocation_route = 44, ///< told to a session owner: where a bound Actor is now, or that it stays (L-171)
};
constexpr bool is_lane_command(std::uint16_t command) noexcept { return command >= 16 && command <= 24; }

/// Used inside the infrastructure unit.
class control_calls {
public:
  explicit control_calls(infrastructure& unit) noexcept : unit_(unit) {}
  control_calls(const control_calls&) = delete;
  control_calls& operator=(const control_calls&) = delete;

  /// Sends the question and waits until `due`. Nothing: no answer, or the link was lost; the same operation may be sent
  /// again (C-75).
  task<std::optional<bytes>> ask(link_session& link, control_command command, operation_id operation,
                                       bytes body, steady_time due);
  /// An answer arrived.
  void answered(operation_id operation, bytes body);
  /// Every question on that link is without answer.
  void link_lost(link_session& link);

private:
  struct question {
    link_session* link;
    counted_ptr<operation<std::optional<bytes>>> ended;
  };

  infrastructure& unit_;
  std::map<operation_id, question> open_;
};

} // namespace zlink::detail
