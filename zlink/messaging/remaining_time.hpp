// How a deadline crosses nodes: as what is left of it, since clocks differ (L-16).
#pragma once

#include "zlink/clock.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace zlink::detail {

/// Rounded up, 0 when it has passed.
inline std::uint32_t remaining_ms(steady_time deadline, steady_time now) noexcept {
  if (deadline <= now)
    return 0;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count();
  return static_cast<std::uint32_t>(std::min<std::int64_t>(left, std::numeric_limits<std::uint32_t>::max()));
}

} // namespace zlink::detail
