#include "relocation/move_pace.hpp"

#include "zlink/host/host_runtime.hpp"

#include <algorithm>
#include <utility>

namespace zlink::detail {

namespace {

constexpr std::chrono::milliseconds look_interval{10};
/// A turn that is posted begins within this time where processors are free for it; waking one takes some 50 us.
constexpr std::chrono::microseconds free_delay{250};
constexpr std::size_t least_window = 1;
constexpr std::size_t growth = 16;
constexpr std::size_t most_window = 1 << 20;

} // namespace

task<void> move_pace::enter() {
  if (inside_ < window_ && waiting_.empty()) {
    ++inside_;
    look();
    return task<void>::done();
  }
  waiting_.push_back(new_counted<operation<void>>());
  waiting_.back()->dispatcher = host_.infra->unit();
  look();
  return task<void>{waiting_.back()};
}

void move_pace::leave() {
  --inside_;
  admit();
}

void move_pace::admit() {
  while (inside_ < window_ && !waiting_.empty()) {
    ++inside_;
    const auto next = std::exchange(waiting_.front(), nullptr);
    waiting_.pop_front();
    next->set(result<void>{});
  }
}

/// How long does the application wait for a worker at the moment? What moves wait for is not much else.
void move_pace::look() {
  if (std::exchange(looking_, true))
    return;
  if (!probe_)
    probe_ = new_counted<gate>(host_.domain);
  probe_->post([this, users = host_.outside_users, asked = host_.time->now()] {
    auto* const host = users->enter(); // which may have ended meanwhile
    if (host == nullptr)
      return;
    const auto delay = host->time->now() - asked;
    host->infra->post_after(look_interval, [this, delay] {
      window_ = delay > free_delay ? std::max(window_ / 2, least_window) : std::min(window_ + growth, most_window);
      looking_ = false;
      admit();
      if (inside_ != 0 || !waiting_.empty())
        look();
    });
    users->leave();
  });
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
