// The host's lease: its settings, its instant of expiry as local time, and the batches that claim and renew it
// (S-34 to S-39). What the lease of another host is worth: `judge_lease` (S-51).
#pragma once

#include "zlink/clock.hpp"
#include "zlink/placement/records.hpp"

#include <atomic>
#include <chrono>
#include <optional>
#include <string>

namespace zlink::placement {

struct lease_settings {
  std::chrono::milliseconds renew_interval{5'000};
  std::chrono::milliseconds ttl{15'000};
  std::chrono::milliseconds renew_timeout{3'000};
  std::chrono::milliseconds margin{5'000};
};

/// What is wrong with the settings, as text for a configuration error; nothing if they fit (S-34).
std::optional<std::string> find_mistake(const lease_settings& settings);

/// Until when a lease may be relied on, in local time: t0 + (ExpiresAt - StoreNow) - margin, with t0 taken before the
/// request was sent. Nothing if the answer came too late to be of use (S-38). No overflow for any argument.
std::optional<steady_time> local_deadline(steady_time sent_at, steady_time answered_at, store_time expires_at,
                                          store_time store_now, std::chrono::milliseconds margin) noexcept;

/// The one admission deadline of a host. Written by one thread, asked by every gate (S-42).
class lease_deadline {
public:
  explicit lease_deadline(std::chrono::milliseconds margin) noexcept : margin_(margin) {}

  /// After each successful claim, read or renewal of our own lease. An answer that is late or overtaken changes
  /// nothing. True if the deadline is now that of this answer.
  bool confirm(steady_time sent_at, steady_time answered_at, store_time expires_at, store_time store_now) noexcept;
  /// The token is dead: nothing is admitted before the next `confirm` (S-44).
  void lose() noexcept { end_.store(never, std::memory_order_release); }

  /// True if a turn or callback may begin now. Any thread.
  bool admits(steady_time now) const noexcept {
    return now.time_since_epoch().count() < end_.load(std::memory_order_acquire);
  }
  /// Nothing while there is none. Any thread.
  std::optional<steady_time> value() const noexcept;

private:
  static constexpr steady_duration::rep never = 0; // before every instant since boot
  const std::chrono::milliseconds margin_;
  std::atomic<steady_duration::rep> end_{never};
};

enum class lease_health : std::uint8_t {
  live,
  over,    ///< absent, expired, or of another run of that host
  corrupt, ///< without expiry, or another owner's (S-52)
};

/// Whether the run named by `token` holds its lease by this read (S-51).
lease_health judge_lease(const observed_lease& seen, const owner_token& token) noexcept;

/// Acquires the lease in one batch with the counter that numbers it (S-36).
struct lease_claim {
  owner_token token;
  store_batch batch;
};
/// Nothing: the counter is exhausted (S-30). `process_local` as the store says.
std::optional<lease_claim> claim_lease(const detail::unique_id& owner, const observed<counter_record>& counter,
                                       std::chrono::milliseconds ttl, bool process_local);
/// Same bytes, new expiry; Conflict if the lease is no longer this run's (S-37).
store_batch renew_lease(const owner_token& token, std::chrono::milliseconds ttl);
/// Ends the lease; its generation is never used again (S-117).
store_batch release_lease(const owner_token& token);
/// Holds while `token` has its lease, whatever its renewals (S-13).
store_condition lease_held(const owner_token& token);

} // namespace zlink::placement
