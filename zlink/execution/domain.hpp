// What all gates of a host share: the CAF system they run on, clock, limits, counters and the ownership deadline.
#pragma once

#include "zlink/clock.hpp"
#include "zlink/dispatch_error.hpp"
#include "zlink/execution/infrastructure.hpp"
#include "zlink/execution/lane.hpp"

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>

namespace caf {
class actor_system;
}

namespace zlink {
class codec_registry;
}

namespace zlink::detail {

class waiting_room;

/// Why a one-way record did not run; index into `execution_counters::dropped`.
enum class drop_reason : std::uint8_t { refused, handler_failed, no_handler, undecodable, late_reply, closed };
inline constexpr std::size_t drop_reasons = 6;

struct execution_counters {
  std::atomic<std::uint64_t> dropped[drop_reasons]{};
  std::atomic<std::uint64_t> handler_exceptions{0};
  std::atomic<std::uint64_t> decoded{0};
  /// Messages that objects were given, counted a batch at a time; on a line of its own, as every worker writes it.
  alignas(64) std::atomic<std::uint64_t> served{0};
  void drop(drop_reason why) noexcept {
    dropped[static_cast<std::size_t>(why)].fetch_add(1, std::memory_order_relaxed);
  }
};

struct execution_domain {
  caf::actor_system* system = nullptr;
  std::shared_ptr<const clock> time;
  infrastructure* infra = nullptr;
  /// Runs continuations and callbacks of callers outside of turns (M-21).
  std::shared_ptr<serial_executor> dispatcher;
  lane_limits application{};
  lane_limits lifecycle{128, 4ULL * 1024 * 1024};
  steady_duration occupancy = std::chrono::milliseconds{10}; ///< X-72
  unsigned workers = 1;                              ///< threads of CAF's scheduler
  const codec_registry* codecs = nullptr;
  waiting_room* waiting = nullptr;
  execution_counters counters;
  dispatch_log log; ///< null: a line on stderr
  /// Local hand-off of woken gates; off where a test picks the order of jobs.
  bool hand_off = true;

  /// S-38: until then application turns of owned objects may start. Nanoseconds of `steady_time`; minimum: never.
  std::atomic<std::int64_t> admission_deadline{std::numeric_limits<std::int64_t>::min()};
  bool admits(steady_time now) const noexcept {
    return now.time_since_epoch().count() < admission_deadline.load(std::memory_order_acquire);
  }
  /// The deadline is near or over: while it is not, nobody has to look at the clock for each message. Turns always
  /// ask the clock.
  std::atomic<bool> admission_over{true};
};

} // namespace zlink::detail
