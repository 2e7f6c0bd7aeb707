// One activation under way; internal to it.
#pragma once

#include "zlink/host/host_runtime.hpp"

namespace zlink::detail {

/// One first activation, from its first message to Ready.
struct activation::attempt {
  counted_ptr<spot_object> object;
  node_runtime& node;
  steady_time due{};
  placement::observed_object seen = {};
  placement::recovery_root root = {};
  unique_id reservation = {};
  bool root_stored = false;
  bool reserved = false;
  bool no_room = false;       ///< this node has none left; others may have (C-41)
  refused_nodes refused = {}; ///< had none before
  steady_time first_until = steady_time::max(); ///< when the first message's caller stops waiting; a send's never does

  /// Nobody waits any more: the factory is not started for a call that has ended (C-102, S-159).
  bool forsaken(steady_time now) const { return now >= first_until && object->application_word().records() <= 1; }
};

} // namespace zlink::detail
