#include "relocation/crowd_watch.hpp"

#include "zlink/host/host_runtime.hpp"

#include <utility>

namespace zlink::detail {

namespace {

/// Of what happened longer ago nothing is known.
constexpr auto longest_look = 10 * crowd_watch::look_interval;
/// Messages that handlers were given: fewer of them do not miss what moves take.
constexpr auto one_message_in = std::chrono::milliseconds{1};
/// Where processors are free the thread waits for one some 5 % of the time, for it has to be woken.
constexpr unsigned free_percent = 25;

} // namespace

bool crowd_watch::crowded() {
  const auto now = host_.time->now();
  const auto since = now - looked_;
  if (since < look_interval)
    return crowded_;
  looked_ = now;
  const auto served = host_.domain.counters.served.load(std::memory_order_relaxed);
  const auto lately = served - std::exchange(served_, served);
  const auto waited = host_.infra->waited_for_processor();
  crowded_ = since <= longest_look && lately > static_cast<std::uint64_t>(since / one_message_in) && waited > free_percent;
  return crowded_;
}

} // namespace zlink::detail
