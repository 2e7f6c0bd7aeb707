#include "relocation/move_pace.hpp"

#include "zlink/host/host_runtime.hpp"

#include <algorithm>
#include <utility>

namespace zlink::detail {

namespace {

constexpr auto look_interval = crowd_watch::look_interval;
/// A turn that is posted begins within this time where processors are free for it; waking one takes some 50 us.
constexpr std::chrono::microseconds free_delay{250};
constexpr std::size_t least_window = 1;
constexpr std::size_t growth = 16;
/// After the application had to share, the window grows slowly for so long.
constexpr std::chrono::seconds careful_for{1};
constexpr std::size_t most_window = 1 << 20;

} // namespace

task<void> move_pace::enter(steady_time deadline) {
  auto one = new_counted<operation<void>>();
  one->dispatcher = host_.infra->unit();
  waiting_.push_back({one, deadline});
  admit();
  look();
  return task<void>{std::move(one)};
}

void move_pace::leave() {
  ++ended_;
  --inside_;
  admit();
}

void move_pace::admit() {
  while (inside_ < window_ && !waiting_.empty()) {
    const auto next = std::move(waiting_.front().may_begin);
    waiting_.pop_front();
    ++inside_;
    next->set(result<void>{});
  }
}

/// How long does the application wait for a worker at the moment?
void move_pace::look() {
  if (std::exchange(looking_, true))
    return;
  static_cast<void>(host_.moving.crowd.crowded()); // what was before says nothing of the time from here on
  if (!probe_)
    probe_ = new_counted<gate>(host_.domain);
  probe_->post([this, users = host_.outside_users, asked = host_.time->now()] {
    auto* const host = users->enter(); // which may have ended meanwhile
    if (host == nullptr)
      return;
    const auto delay = host->time->now() - asked;
    host->infra->post_after(look_interval, [this, delay] {
      looking_ = false;
      adapt(delay);
      admit();
      if (inside_ != 0 || !waiting_.empty())
        look();
    });
    users->leave();
  });
}

void move_pace::adapt(steady_duration delay) {
  const auto now = host_.time->now();
  ended_a_look_ = (7 * ended_a_look_ + static_cast<double>(std::exchange(ended_, 0))) / 8;
  const bool crowded = host_.moving.crowd.crowded();
  if (std::exchange(told_crowded_, false) || crowded || delay > free_delay) {
    careful_until_ = now + careful_for;
    window_ = std::max(window_ / 2, least_window);
  } else {
    window_ += now < careful_until_ ? 1 : growth;
  }
  if (is_late(now))
    window_ += 2 * growth;
  window_ = std::min(window_, most_window);
}

/// As it goes, those who wait would need more than half of the time that they have left; so also a few who take their time hold
/// nobody up (L-222).
bool move_pace::is_late(steady_time now) const {
  if (waiting_.empty())
    return false;
  const auto looks_left = static_cast<double>((waiting_.front().deadline - now) / look_interval);
  return static_cast<double>(waiting_.size()) > ended_a_look_ * looks_left / 2;
}

// -- bytes ------------------------------------------------------------------------------------------------------------

std::size_t move_pace::largest_chunk() const noexcept {
  std::uint64_t most = std::min<std::uint64_t>(host_.options.relocation_chunk_bytes, most_under_way / 2);
  for (const auto budget : {host_.options.relocation_in_flight_bytes, host_.options.relocation_node_in_flight_bytes})
    if (budget != 0)
      most = std::min(most, budget);
  return static_cast<std::size_t>(most);
}

bool move_pace::has_room(const std::string& peer, std::uint64_t bytes) const {
  const auto per_peer = host_.options.relocation_in_flight_bytes;
  const auto per_node = host_.options.relocation_node_in_flight_bytes;
  const auto known = bytes_.find(peer);
  const auto of_peer = known == bytes_.end() ? 0 : known->second;
  return (per_peer == 0 || of_peer + bytes <= per_peer) && (per_node == 0 || all_bytes_ + bytes <= per_node);
}

bool move_pace::is_full(const std::string& peer) const { return !has_room(peer, largest_chunk()); }

bool move_pace::take_bytes(const std::string& peer, std::uint64_t bytes) {
  if (!has_room(peer, bytes))
    return false;
  bytes_[peer] += bytes;
  all_bytes_ += bytes;
  return true;
}

void move_pace::give_bytes(const std::string& peer, std::uint64_t bytes) {
  auto& of_peer = bytes_[peer];
  of_peer -= std::min(of_peer, bytes);
  all_bytes_ -= std::min(all_bytes_, bytes);
  for (auto& told : std::exchange(waiting_for_room_, {}))
    told();
}

} // namespace zlink::detail
