// The host's permits for application jobs that have not started, and the pressure it tells its peers.
#pragma once

#include "zlink/defaults.hpp"
#include "zlink/execution/fair_limit.hpp"
#include "zlink/unique_function.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>

namespace zlink::detail {

/// In percent of the permits.
struct pressure_thresholds {
  /// 1..100: a host with that many permits in use, rounded up, is paused.
  int pause_percent = defaults::pressure_pause_percent;
  /// 0..99 and below `pause_percent`: with that many, rounded down, it runs again.
  int resume_percent = defaults::pressure_resume_percent;
};

/// Thread-safe. Taking and returning a permit are one atomic step each while nobody waits and no threshold is crossed.
class job_permits {
public:
  /// Gets the state and its version; versions rise by one, so that of two reports that meet out of order the newer wins
  /// . Called on the thread that crossed the threshold, without a lock, by several threads at once.
  using pressure_listener = unique_function<void(bool paused, std::uint64_t version)>;

  /// At least one permit. Throws `configuration_error` for thresholds outside their range.
  job_permits(std::uint32_t permits, pressure_thresholds thresholds, pressure_listener on_pressure);

  /// True if a permit is taken for one record of this source. Else the source waits in line, once however often it
  /// asks, and its `on_entered()` brings the permit.
  bool acquire(limit_waiter& source);

  /// As `acquire()` for a source that will not wait in line: false if there is no permit, or others wait for it.
  bool try_acquire();

  /// As `fair_limit::cancel()`.
  bool cancel(limit_waiter& source) noexcept { return limit_.cancel(source); }

  /// The job starts, or never will; returns its permit.
  void release();
  /// The same; who waits for it may do a little work on this thread at once (`fair_limit::leave_here`).
  void release_here();

  bool paused() const noexcept { return paused_.load(); }
  struct pressure {
    bool paused = false;
    std::uint64_t version = 0; ///< as the listener is told
  };
  pressure state() const;
  std::uint32_t permits() const noexcept { return limit_.limit(); }
  std::uint32_t in_use() const noexcept { return limit_.inside(); }
  std::size_t waiting() const noexcept { return limit_.waiting(); }

private:
  bool must_flip(bool paused) const noexcept {
    return paused ? limit_.inside() <= resume_at_ : limit_.inside() >= pause_at_;
  }
  void settle_pressure();

  fair_limit limit_;
  std::uint32_t pause_at_;
  std::uint32_t resume_at_;
  pressure_listener on_pressure_;
  std::atomic<bool> paused_{false};
  mutable std::mutex pressure_mutex_;
  std::uint64_t version_ = 0;
};

} // namespace zlink::detail
