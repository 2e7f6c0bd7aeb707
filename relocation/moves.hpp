// All moves of one host, as their source and as their target.
#pragma once

#include "relocation/unit.hpp"
#include "zlink/placement/records.hpp"
#include "zlink/relocate.hpp"
#include "zlink/task.hpp"

#include <string>

namespace zlink::detail {

class host_runtime;

/// How the move of one unit ended for its source.
struct unit_end {
  bool left = false; ///< its cutover submit is terminal: nothing of it is dispatched here any more (L-135)
  relocate_reason reason = relocate_reason::none; ///< of a unit that runs on here
  std::string why;                                ///< for logs
};

class moves {
public:
  explicit moves(host_runtime& host) noexcept : host_(host) {}
  moves(const moves&) = delete;
  moves& operator=(const moves&) = delete;

  /// Moves the unit to that node of its mesh. `deadline`: until then it may start, and then abort (L-227). Inside the
  /// infrastructure unit.
  task<unit_end> move(relocation_unit unit, placement::node_identity target, steady_time deadline);

private:
  host_runtime& host_;
};

} // namespace zlink::detail
