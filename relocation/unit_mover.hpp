// Moves one unit after the other: the engine, or what a test puts in its place.
#pragma once

#include "relocation/unit.hpp"
#include "zlink/clock.hpp"
#include "zlink/placement/records.hpp"
#include "zlink/relocate.hpp"
#include "zlink/task.hpp"

#include <chrono>
#include <string>

namespace zlink::detail {

/// How the move of one unit ended for its source.
struct unit_end {
  bool left = false; ///< its cutover submit is terminal: nothing of it is dispatched here any more (L-135)
  /// Of a unit that runs on here. `target_unavailable`: nothing of it was prepared, so another node may be tried.
  relocate_reason reason = relocate_reason::none;
  std::string why = {}; ///< for logs
  /// From the seal to the end of the cutover submit (L-230).
  std::chrono::milliseconds interruption{0};
  error_kind kind = error_kind::unavailable; ///< of a unit that runs on here, as a Join tells it (J-117)
};

class unit_mover {
public:
  /// Moves the unit to that node of its mesh. `deadline`: until then it may start, and then abort (L-227). Inside the
  /// infrastructure unit; several at a time.
  virtual task<unit_end> move(relocation_unit unit, placement::node_identity target, steady_time deadline) = 0;
  /// No message is followed any more, and no part of a move may still have to be sent again (L-231). Any thread.
  virtual bool quiet() const noexcept = 0;

protected:
  ~unit_mover() = default;
};

} // namespace zlink::detail
