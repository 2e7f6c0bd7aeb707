#include "zlink/messaging/node_holds.hpp"

#include "zlink/execution/infrastructure.hpp"

#include <algorithm>
#include <iterator>

namespace zlink::detail {

bool node_holds::queue_behind(submission& message) {
  if (empty())
    return false;
  std::lock_guard guard{mutex_};
  const auto i = lines_.find(message.id());
  if (i == lines_.end())
    return false;
  add(i->second, std::move(message));
  return true;
}

void node_holds::hold(submission message) {
  std::lock_guard guard{mutex_};
  auto& line = lines_[message.id()];
  lines_in_use_.store(lines_.size(), std::memory_order_release);
  add(line, std::move(message));
}

void node_holds::add(line& to, submission message) {
  const auto patience = std::max(message.room_due() - infra_.time().now(), steady_duration{0});
  infra_.post_after(patience, [this, rid = message.id()] { expire(rid); });
  to.waiting.push_back(std::move(message));
}

void node_holds::release(const std::string& rid) {
  std::deque<submission> going;
  {
    std::lock_guard guard{mutex_};
    const auto i = lines_.find(rid);
    if (i == lines_.end() || std::exchange(i->second.releasing, true))
      return; // nobody waits, or somebody is at it
    std::swap(going, i->second.waiting);
  }
  for (;;) {
    for (auto& message : going)
      send_(std::move(message));
    going.clear();
    std::lock_guard guard{mutex_};
    const auto i = lines_.find(rid);
    if (i->second.waiting.empty()) {
      lines_.erase(i);
      lines_in_use_.store(lines_.size(), std::memory_order_release);
      return;
    }
    std::swap(going, i->second.waiting);
  }
}

void node_holds::expire(const std::string& rid) {
  const auto now = infra_.time().now();
  std::deque<submission> expired;
  {
    std::lock_guard guard{mutex_};
    const auto i = lines_.find(rid);
    if (i == lines_.end())
      return;
    auto& waiting = i->second.waiting;
    const auto kept = std::stable_partition(waiting.begin(), waiting.end(),
                                            [now](const submission& m) { return m.room_due() > now; });
    std::move(kept, waiting.end(), std::back_inserter(expired));
    waiting.erase(kept, waiting.end());
    if (waiting.empty() && !i->second.releasing) {
      lines_.erase(i);
      lines_in_use_.store(lines_.size(), std::memory_order_release);
    }
  }
  for (auto& message : expired)
    message.fail({error_kind::unavailable, "node \"" + rid + "\" did not become ready in time"});
}

} // namespace zlink::detail
