// Where this node has sent the first messages of ids that have no owner yet: until the store shows one, or the node says
// no, all that follow go the same way, so that they keep their order and one activation serves them (M-148, C-100).
#pragma once

#include "zlink/clock.hpp"
#include "zlink/identity.hpp"

#include <deque>
#include <string>
#include <unordered_map>
#include <utility>

namespace zlink::detail {

/// Used inside the infrastructure unit.
class placements {
public:
  struct target {
    std::string mesh;
    std::string type;
    std::string node_rid;
    lifecycle_generation lifecycle;
    steady_time until{};
  };

  /// Null if nothing was sent lately.
  const target* find(const std::string& id, steady_time now) const {
    const auto i = targets_.find(id);
    return i == targets_.end() || now >= i->second.until ? nullptr : &i->second;
  }
  void put(const std::string& id, target chosen, steady_time now) {
    while (!in_order_.empty() && in_order_.front().first <= now) {
      const auto old = targets_.find(in_order_.front().second);
      if (old != targets_.end() && old->second.until <= now)
        targets_.erase(old);
      in_order_.pop_front();
    }
    in_order_.emplace_back(chosen.until, id);
    targets_.insert_or_assign(id, std::move(chosen));
  }
  void forget(const std::string& id) { targets_.erase(id); }
  void forget(const std::string& id, const std::string& node_rid) {
    const auto i = targets_.find(id);
    if (i != targets_.end() && i->second.node_rid == node_rid)
      targets_.erase(i);
  }
  std::size_t size() const noexcept { return targets_.size(); }

private:
  std::unordered_map<std::string, target> targets_;
  std::deque<std::pair<steady_time, std::string>> in_order_; ///< of their ends, roughly: bounds what is kept
};

} // namespace zlink::detail
