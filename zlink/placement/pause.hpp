// Waiting inside the infrastructure unit.
#pragma once

#include "zlink/clock.hpp"
#include "zlink/execution/infrastructure.hpp"
#include "zlink/placement/awaited_answer.hpp"
#include "zlink/task.hpp"

#include <chrono>

namespace zlink::placement {

/// Ends after `delay`, in the unit; with `shutting_down` if the unit ends first, so that nobody waits for ever.
inline task<void> pause(detail::infrastructure& unit, steady_duration delay) {
  auto over = detail::new_counted<detail::operation<void>>();
  over->dispatcher = unit.unit();
  unit.post_after(delay, [end = awaited_answer<void>{over}]() mutable { end(result<void>{}); });
  return task<void>{std::move(over)};
}

/// 1 to 16 ms: Conflicts on hot records are tried again with jitter (S-73).
inline task<void> pause_before_retry(detail::infrastructure& unit, random_source& random) {
  return pause(unit, std::chrono::milliseconds{1 + random.next() % 16});
}

} // namespace zlink::placement
