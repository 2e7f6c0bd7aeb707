// Whether the application of a host runs, and has to share its processors with what moves.
#pragma once

#include "zlink/clock.hpp"

#include <cstdint>

namespace zlink::detail {

class host_runtime;

/// Inside the infrastructure unit.
class crowd_watch {
public:
  explicit crowd_watch(host_runtime& host) noexcept : host_(host) {}

  static constexpr std::chrono::milliseconds look_interval{10};
  /// In the last 10 ms or so handlers ran, and this unit's thread waited for processors much of the time that it had work.
  bool crowded();

private:
  host_runtime& host_;
  steady_time looked_{};
  std::uint64_t served_ = 0;
  bool crowded_ = false;
};

} // namespace zlink::detail
