// Ids whose messages this node has passed on to another one: what is still on its way here follows them, in its order
// (C-41, C-117).
#pragma once

#include "zlink/clock.hpp"

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace zlink::detail {

/// Any thread.
class handed_on {
public:
  /// `type`: the stable type of the Spot that could not be here.
  void put(const std::string& id, std::string type, steady_time now, steady_duration kept) {
    std::lock_guard guard{mutex_};
    while (!in_order_.empty() && in_order_.front().first <= now) {
      const auto old = known_.find(in_order_.front().second);
      if (old != known_.end() && old->second.until <= now)
        known_.erase(old);
      in_order_.pop_front();
    }
    in_order_.emplace_back(now + kept, id);
    known_.insert_or_assign(id, entry{std::move(type), now + kept});
    size_.store(known_.size(), std::memory_order_release);
  }
  void erase(const std::string& id) {
    std::lock_guard guard{mutex_};
    known_.erase(id);
    size_.store(known_.size(), std::memory_order_release);
  }
  std::optional<std::string> find(const std::string& id, steady_time now) const {
    if (size_.load(std::memory_order_acquire) == 0)
      return std::nullopt;
    std::lock_guard guard{mutex_};
    const auto i = known_.find(id);
    return i == known_.end() || i->second.until <= now ? std::nullopt : std::optional{i->second.type};
  }

private:
  struct entry {
    std::string type;
    steady_time until;
  };
  mutable std::mutex mutex_;
  std::unordered_map<std::string, entry> known_;
  std::deque<std::pair<steady_time, std::string>> in_order_; ///< of their ends: bounds what is kept
  std::atomic<std::size_t> size_{0};
};

} // namespace zlink::detail
