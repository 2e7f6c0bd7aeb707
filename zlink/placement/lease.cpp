#include "zlink/placement/lease.hpp"

#include "zlink/placement/generations.hpp"
#include "zlink/placement/record_codec.hpp"
#include "zlink/placement/record_keys.hpp"

#include <algorithm>

namespace zlink::placement {

std::optional<std::string> find_mistake(const lease_settings& s) {
  for (const auto& [value, name] : {std::pair{s.renew_interval, "renew interval"}, std::pair{s.ttl, "lease TTL"},
                                    std::pair{s.renew_timeout, "renew timeout"}, std::pair{s.margin, "fencing margin"}})
    if (value.count() <= 0)
      return std::string{name} + " must be positive, got " + std::to_string(value.count()) + " ms";
  // Each side is compared after a subtraction, so that no sum can overflow.
  const auto longest = std::max(s.renew_interval, s.renew_timeout);
  const auto room = s.ttl - s.margin;
  if (room > longest && room - longest > s.renew_timeout)
    return std::nullopt;
  return "max(renew interval, renew timeout) + renew timeout must be less than lease TTL - fencing margin; got "
         + std::to_string(longest.count()) + " ms + " + std::to_string(s.renew_timeout.count()) + " ms and "
         + std::to_string(s.ttl.count()) + " ms - " + std::to_string(s.margin.count()) + " ms";
}

std::optional<steady_time> local_deadline(steady_time sent_at, steady_time answered_at, store_time expires_at,
                                          store_time store_now, std::chrono::milliseconds margin) noexcept {
  if (expires_at <= store_now)
    return std::nullopt;
  // A year is as good as for ever, and nanoseconds of it cannot overflow.
  constexpr auto longest = std::chrono::microseconds{std::chrono::hours{24 * 365}};
  const auto left = std::min<std::chrono::microseconds>(expires_at - store_now, longest);
  if (margin >= left)
    return std::nullopt;
  const auto deadline = sent_at + left - margin;
  if (answered_at >= deadline)
    return std::nullopt;
  return deadline;
}

bool lease_deadline::confirm(steady_time sent_at, steady_time answered_at, store_time expires_at,
                             store_time store_now) noexcept {
  const auto deadline = local_deadline(sent_at, answered_at, expires_at, store_now, margin_);
  if (!deadline || deadline->time_since_epoch().count() <= end_.load(std::memory_order_relaxed))
    return false;
  end_.store(deadline->time_since_epoch().count(), std::memory_order_release);
  return true;
}

std::optional<steady_time> lease_deadline::value() const noexcept {
  const auto end = end_.load(std::memory_order_acquire);
  if (end == never)
    return std::nullopt;
  return steady_time{steady_duration{end}};
}

lease_health judge_lease(const observed_lease& seen, const owner_token& token) noexcept {
  if (!seen.record)
    return lease_health::over;
  if (!seen.expires_at || seen.record->token.owner != token.owner)
    return lease_health::corrupt;
  return seen.record->token == token && *seen.expires_at > seen.now ? lease_health::live : lease_health::over;
}

std::optional<lease_claim> claim_lease(const detail::unique_id& owner, const observed<counter_record>& counter,
                                       std::chrono::milliseconds ttl, bool process_local) {
  auto advance = advance_counter(sequence::lease, counter, 1, process_local);
  if (!advance)
    return std::nullopt;
  lease_claim claim;
  claim.token = {owner, detail::lease_generation{advance->first}};
  const auto key = lease_key(owner);
  claim.batch.conditions.push_back({store_condition::test::missing, key, {}});
  claim.batch.conditions.push_back(std::move(advance->condition));
  claim.batch.mutations.push_back({key, encode(lease_record{claim.token}), ttl});
  claim.batch.mutations.push_back(std::move(advance->mutation));
  return claim;
}

store_condition lease_held(const owner_token& token) {
  // Nearly every transition of a host names its own token.
  thread_local owner_token last;
  thread_local store_condition made;
  if (made.key.empty() || !(token == last)) {
    made = {store_condition::test::value, lease_key(token.owner), encode(lease_record{token})};
    last = token;
  }
  return made;
}

store_batch renew_lease(const owner_token& token, std::chrono::milliseconds ttl) {
  store_batch batch;
  batch.conditions.push_back(lease_held(token));
  batch.mutations.push_back({batch.conditions[0].key, batch.conditions[0].operand, ttl});
  return batch;
}

store_batch release_lease(const owner_token& token) {
  store_batch batch;
  batch.conditions.push_back(lease_held(token));
  batch.mutations.push_back({batch.conditions[0].key, std::nullopt, std::nullopt});
  return batch;
}

} // namespace zlink::placement
