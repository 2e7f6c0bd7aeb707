// One Join under way; internal to memberships.
#pragma once

#include "zlink/host/host_runtime.hpp"

namespace zlink::detail {

/// One Join, from its registration on. What of it other threads see is fixed before.
struct memberships::join {
  counted_ptr<actor_object> actor;
  std::optional<std::string> spot_id;
  std::string request; ///< as stored requests are (J-54)
  object_generation generation;
  std::string operation;
  steady_time due{};
  bool rested = false;                    ///< nothing of the Actor was under way when the handler had ended
  bool gone = false;                      ///< the Actor is on another node, where it hears of the end
  counted_ptr<spot_object> expected_by{}; ///< has let it in, and waits for it
};

inline join_completion failed_with(error why) {
  join_completion end;
  end.outcome = join_outcome::failed;
  end.error.emplace(std::move(why));
  return end;
}

} // namespace zlink::detail
