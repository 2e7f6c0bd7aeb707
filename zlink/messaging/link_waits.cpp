#include "zlink/messaging/link_waits.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/call_start.hpp"

#include <algorithm>
#include <utility>

namespace zlink::detail {

task<void> link_waits::until(const char* verb, std::string subject, unique_function<bool()> holds, std::stop_token cancel) {
  auto ended = new_counted<operation<void>>();
  ended->verb = verb;
  ended->subject = std::move(subject);
  reply_route route;
  call_start starting{host_, *ended, turn_use::submit, cancel};
  if (current_turn() != nullptr) // it ends with its object at the latest
    route = starting.enter_until(steady_time::max());
  std::optional<error> over;
  {
    std::lock_guard guard{mutex_};
    over = over_;
    if (!over)
      waiters_.push_back({std::move(holds), ended, route});
  }
  if (over) {
    waiter{{}, ended, route}.end(std::move(over));
    return task<void>{std::move(ended)};
  }
  if (route.receiver == nullptr)
    ended->watch(std::move(cancel), [this, waiting = ended.get()] { this->cancel(*waiting); });
  look();
  return task<void>{std::move(ended)};
}

void link_waits::waiter::end(std::optional<error> why) const {
  if (route.receiver == nullptr) {
    ended->set(why ? result<void>{std::move(*why)} : result<void>{});
    return;
  }
  auto* r = make_record(record_kind::completion);
  r->reply.id = route.id;
  if (why)
    r->body.emplace<error>(std::move(*why));
  route.receiver->receive_reply(r);
  route.receiver->unref_receiver();
}

void link_waits::cancel(operation_base& waiting) {
  counted_ptr<operation<void>> taken;
  {
    std::lock_guard guard{mutex_};
    const auto i = std::ranges::find_if(waiters_, [&](const waiter& w) { return w.ended.get() == &waiting; });
    if (i == waiters_.end())
      return; // told already
    taken = std::move(i->ended);
    waiters_.erase(i);
  }
  taken->cancel();
}

void link_waits::look() {
  std::vector<waiter> told;
  {
    std::lock_guard guard{mutex_};
    std::erase_if(waiters_, [&](waiter& w) {
      if (!w.ended->done() && !w.holds()) // done: it ended with its object, or was cancelled there
        return false;
      told.push_back(std::move(w));
      return true;
    });
  }
  for (const auto& w : told)
    w.end(std::nullopt);
}

void link_waits::end(error why) {
  std::vector<waiter> waiting;
  {
    std::lock_guard guard{mutex_};
    waiting.swap(waiters_);
    over_ = why;
  }
  for (const auto& w : waiting)
    w.end(why);
}

} // namespace zlink::detail
