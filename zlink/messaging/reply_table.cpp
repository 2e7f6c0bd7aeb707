#include "zlink/messaging/reply_table.hpp"

#include <utility>

namespace zlink::detail {

void fail_route(reply_route route, const error& why) noexcept {
  if (route.receiver == nullptr)
    return;
  auto* r = make_record(record_kind::completion);
  r->reply = route;
  r->body.emplace<error>(why);
  send_reply(r);
}

reply_table::~reply_table() {
  fail_if([](const entry&) { return true; }, error{error_kind::shutting_down, "the mesh node has ended"});
}

std::uint64_t reply_table::add(reply_route route, std::uint64_t link, steady_time deadline) {
  std::lock_guard guard{mutex_};
  if (free_ == none) {
    entries_.emplace_back();
    free_ = static_cast<std::uint32_t>(entries_.size() - 1);
  }
  const auto index = free_;
  auto& e = entries_[index];
  free_ = e.next_free;
  e.route = route;
  e.link = link;
  e.deadline = deadline;
  ++count_;
  return std::uint64_t{e.generation} << 32 | index;
}

reply_route reply_table::take(std::uint64_t id) noexcept {
  std::lock_guard guard{mutex_};
  const auto index = static_cast<std::uint32_t>(id);
  if (index >= entries_.size() || entries_[index].generation != static_cast<std::uint32_t>(id >> 32))
    return {};
  return release(index);
}

reply_route reply_table::release(std::uint32_t index) noexcept {
  auto& e = entries_[index];
  if (e.route.receiver == nullptr)
    return {};
  if (++e.generation == 0)
    e.generation = 1;
  e.next_free = std::exchange(free_, index);
  --count_;
  return std::exchange(e.route, reply_route{});
}

template <class F>
void reply_table::fail_if(F wanted, const error& why) noexcept {
  // Entries that come meanwhile are not this call's business, so one pass over the indices of now is enough.
  for (std::uint32_t index = 0;; ++index) {
    reply_route route;
    {
      std::lock_guard guard{mutex_};
      while (index < entries_.size() && (entries_[index].route.receiver == nullptr || !wanted(entries_[index])))
        ++index;
      if (index >= entries_.size())
        return;
      route = release(index);
    }
    fail_route(route, why); // outside: the receiver may do anything
  }
}

void reply_table::fail_link(std::uint64_t link, const error& why) noexcept {
  fail_if([link](const entry& e) { return e.link == link; }, why);
}

void reply_table::expire(steady_time now) noexcept {
  fail_if([now](const entry& e) { return e.deadline != steady_time{} && e.deadline <= now; },
          error{error_kind::deadline_exceeded, "no reply came in time"});
}

std::size_t reply_table::size() const noexcept {
  std::lock_guard guard{mutex_};
  return count_;
}

} // namespace zlink::detail
