// The keeper of the host's lease: claims it, renews it, notices its loss, claims it again (S-34 to S-45, S-142).
#pragma once

#include "zlink/placement/lease.hpp"
#include "zlink/placement/store_calls.hpp"
#include "zlink/unique_function.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zlink::placement {

/// What the host does about its lease. Called inside the infrastructure unit, never from inside a call of `ownership`
/// except `release` and `start`; any may be empty. They must not destroy the `ownership`.
struct ownership_events {
  /// Every new local admission deadline; nothing: no work may begin (S-38, S-40).
  unique_function<void(std::optional<steady_time>)> deadline;
  /// The token is dead, `deadline(nullopt)` was called before: discard every object stamped with it, without OnClosing,
  /// and end their requests `unavailable` (S-44, S-142).
  unique_function<void(const owner_token&)> lost;
  /// The lease is held with this token after all, though `start()` had returned: the first claim came late (S-43) or the
  /// lease was lost before (S-44). Claim or register the nodes now. `deadline(...)` follows when this has returned.
  unique_function<void(const owner_token&)> regained;
  /// Found after `start()` had returned: what cannot heal by itself (S-36, S-43). The host goes to Error; the keeper ends.
  unique_function<void(std::string)> failed;
};

enum class ownership_start : std::uint8_t {
  held,    ///< confirmed; `deadline` was called
  blocked, ///< unconfirmed within the renew timeout: the keeper goes on trying every renew interval (S-43)
  failed,  ///< a start error; see `mistake`
  stopped, ///< `stop()` or `release()` came first
};

struct ownership_start_result {
  ownership_start what = ownership_start::blocked;
  std::string mistake; ///< text for a configuration error; `failed` only
};

/// One per host run. Every member is called inside the infrastructure unit unless said otherwise. Await `stop()` or
/// `release()` before destroying it, if `start()` was called.
class ownership {
public:
  /// Takes its random OwnerId from `random` (S-35). `settings` as `find_mistake` accepts them, else
  /// `std::invalid_argument` (S-34).
  ownership(detail::infrastructure& unit, repository& records, const lease_settings& settings, random_source& random,
            ownership_events events);
  ~ownership();
  ownership(const ownership&) = delete;
  ownership& operator=(const ownership&) = delete;

  /// The first claim, for at most the renew timeout; then the keeper runs until `stop()`. Call once.
  task<ownership_start_result> start();
  /// Ends renewing; the lease is left to expire. Without any wait for the store (S-119).
  task<void> stop();
  /// Stops and removes the lease record, also one whose claim was never confirmed (S-43, S-117); admission ends at once.
  /// False: the store did not confirm it until `until`, so the lease expires by itself.
  task<bool> release(steady_time until);

  const detail::unique_id& owner() const noexcept { return owner_; }
  const lease_settings& settings() const noexcept { return settings_; }
  /// The token of the lease last claimed; nothing before the first claim, and from a loss to the next claim.
  const std::optional<owner_token>& token() const noexcept { return token_; }
  /// There is a token and its deadline has not passed: Store changes and new work may begin (S-40).
  bool held() const noexcept { return token_ && deadline_.admits(calls_.now()); }
  /// The deadline, for any thread.
  const lease_deadline& deadline() const noexcept { return deadline_; }
  /// When the last successful claim or renewal was sent (S-114).
  std::optional<steady_time> confirmed_at() const noexcept { return confirmed_at_; }

private:
  enum class claim_end : std::uint8_t {
    held,
    unconfirmed,
    unsettled, ///< the data set is another one, and of the former one others may still think that they own something
    failed,
  };

  task<claim_end> claim(steady_time until);
  task<claim_end> try_claim(steady_time until);
  task<claim_end> send_claim(const observed<epoch_record>& epoch, const observed<counter_record>& counter,
                             steady_time until);
  /// True: whoever owned something by the lost data set, or by one in between, has stopped.
  task<bool> settle(const observed<epoch_record>& epoch, steady_time until);
  claim_end adopt(const owner_token& token, const detail::unique_id& epoch, steady_time sent_at, store_time expires_at,
                  store_time now);
  task<void> keep();
  task<void> renew(steady_time until);
  task<bool> look_after_unclear(steady_time until);
  bool confirm(steady_time sent_at, store_time expires_at, store_time now);
  void lose();
  void announce();
  claim_end fail(std::string mistake);
  void on_keeper_end(result<void> end);
  void end_run();

  const lease_settings settings_;
  random_source& random_;
  const detail::unique_id owner_;
  const std::shared_ptr<location_store> store_;
  ownership_events events_;
  store_calls calls_;
  lease_deadline deadline_;
  std::optional<owner_token> token_;
  std::optional<detail::unique_id> epoch_;         ///< of the data set that holds our lease (S-142)
  std::vector<detail::lease_generation> attempts_; ///< sent in claims whose end is not known
  std::optional<steady_time> confirmed_at_;
  std::optional<detail::unique_id> lost_; ///< the data set of the latest lease that was lost
  struct watch {
    detail::unique_id mark; ///< stands in the store
    steady_time since;
  };
  std::optional<watch> watch_; ///< over another data set than the lost one, before anything is claimed in it
  store_time expires_at_{};
  steady_time next_{}; ///< when the next claim or renewal starts
  std::string mistake_;
  std::string refusal_; // why the store refuses us, by the latest attempt to claim
  bool running_ = false; ///< from `start()` until nothing of it goes on
  std::vector<detail::counted_ptr<detail::operation<void>>> waiting_for_end_;
};

} // namespace zlink::placement
