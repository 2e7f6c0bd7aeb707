#include "adapters/tcp/refusals.hpp"

#include <iostream>
#include <utility>

namespace zlink::detail {

namespace {

constexpr std::chrono::minutes quiet_time{1};
constexpr std::chrono::seconds looking_pause{1}; // between searches for peers that can be forgotten
constexpr std::size_t most_peers = 1024;

} // namespace

refusals::refusals(std::string mesh, link_refusal_log log, std::shared_ptr<const clock> time)
  : mesh_(std::move(mesh)), log_(std::move(log)), time_(std::move(time)) {
  others_.last = looked_ = time_->now() - quiet_time;
}

std::uint64_t refusals::count(refusal why) const noexcept {
  return counts_[static_cast<std::size_t>(why)].load(std::memory_order_relaxed);
}

std::uint64_t refusals::total() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& one : counts_)
    sum += one.load(std::memory_order_relaxed);
  return sum;
}

/// Where that peer's last line is remembered; null: it is not, and a line about it is one about many.
refusals::told* refusals::place_for(const std::string& peer, steady_time now) {
  if (const auto known = peers_.find(peer); known != peers_.end())
    return &known->second;
  if (peers_.size() >= most_peers && now - looked_ >= looking_pause) {
    looked_ = now;
    std::erase_if(peers_, [now](const auto& one) { return now - one.second.last >= quiet_time; });
  }
  if (peers_.size() >= most_peers)
    return nullptr;
  return &peers_.emplace(peer, told{now - quiet_time, 0}).first->second;
}

void refusals::note(const std::string& peer, refusal why, const std::string& detail) {
  counts_[static_cast<std::size_t>(why)].fetch_add(1, std::memory_order_relaxed);
  const auto now = time_->now();
  auto* place = place_for(peer, now);
  const bool known = place != nullptr;
  if (!known)
    place = &others_;
  if (now - place->last < quiet_time) {
    ++place->further;
    return;
  }
  place->last = now;
  auto reason = std::string{to_string(why)};
  if (!detail.empty())
    reason += ": " + detail;
  tell({mesh_, known ? peer : "many", std::move(reason), std::exchange(place->further, 0), total()});
}

void refusals::tell(const link_refusal& what) const noexcept {
  try {
    if (log_)
      log_(what);
    else
      std::cerr << to_string(what) + '\n';
  } catch (...) {
    return; // a log that fails changes nothing (O-115)
  }
}

} // namespace zlink::detail
