// A Spot is told that the client of an Actor has gone (05 section 10).
#include "zlink/host/host_runtime.hpp"
#include "zlink/membership/member_steps.hpp"
#include "zlink/membership/work_count.hpp"

namespace zlink::detail {

task<void> memberships::tell_disconnected(counted_ptr<actor_object> actor) {
  const work_count counted{*this};
  actor->notice_begins(); // it is not destroyed under the callback
  const auto left = std::make_shared<bool>();
  do {
    *left = false;
    const auto at = actor->spot();
    if (!at)
      break;
    outcome_of<void> telling{run_callback<void>(*at, *host_.infra, "on_disconnect_actor", [actor, left](execution_object& object) {
      auto& spot = static_cast<spot_object&>(object);
      *left = actor->spot().get() != &spot; // before its turn came
      auto* callbacks = callbacks_of(spot);
      if (*left || callbacks == nullptr || actor->application() == nullptr)
        return task<void>::done();
      return callbacks->tell_disconnected(*actor->application());
    })};
    const auto told = co_await telling;
    if (!told)
      failed_callbacks.fetch_add(1, std::memory_order_relaxed);
  } while (*left && !host_.ending());
  actor->notice_ends();
}

} // namespace zlink::detail
