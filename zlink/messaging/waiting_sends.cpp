#include "zlink/messaging/waiting_sends.hpp"

#include <cassert>

namespace zlink::detail {

/// One waiting message. The wheel holds it by a raw pointer, so it is handed to the infrastructure unit to be destroyed.
class waiting_sends::entry final : public timed {
public:
  entry(waiting_sends& owner, execution_object& target, submission held)
    : owner(owner), object(counted_ptr<execution_object>::share(&target)), message(std::move(held)) {}
  void expired() noexcept override { owner.expire(*this); }

  waiting_sends& owner;
  counted_ptr<execution_object> object;
  submission message;
};

waiting_sends::waiting_sends(execution_domain& domain) noexcept : domain_(domain) {}

waiting_sends::~waiting_sends() {
  std::lock_guard guard{mutex_};
  for (auto& [object, waiting] : lines_)
    for (auto& e : waiting)
      domain_.infra->unschedule(*e);
}

void waiting_sends::wait(execution_object& object, submission waiting) {
  auto made = std::make_unique<entry>(*this, object, std::move(waiting));
  auto* e = made.get();
  {
    std::lock_guard guard{mutex_};
    lines_[&object].push_back(std::move(made));
    object.application_word().set(admission_word::waiters_bit);
    // Posted under the lock: whoever takes the entry off the line posts its destruction to the same unit, later.
    domain_.infra->post([this, e, due = e->message.room_due()] { domain_.infra->schedule(*e, due); });
  }
  room_in(object); // room may have appeared before the bit was set
}

void waiting_sends::wait_for_room(execution_object& object, record* r) {
  const bool until_deadline = r->kind == record_kind::request && r->deadline != steady_time{};
  const auto due = until_deadline ? r->deadline : domain_.time->now() + object.send_patience();
  wait(object, submission{r, std::string{object.spot_id()}, nullptr, nullptr, due});
}

bool waiting_sends::admit_front(execution_object& object, line& waiting, std::vector<std::unique_ptr<entry>>& done) {
  auto& front = *waiting.front();
  if (!front.message.over()) {
    auto* r = front.message.take();
    admission_notice notice{*r};
    const auto verdict = object.submit(r, front.message.intent() != nullptr, false);
    if (verdict != admission::admitted) {
      notice.put_back(*r);
      front.message.put_back(r);
      return false;
    }
  }
  done.push_back(std::move(waiting.front()));
  waiting.pop_front();
  return true;
}

void waiting_sends::room_in(execution_object& object) noexcept {
  std::vector<std::unique_ptr<entry>> done;
  {
    std::lock_guard guard{mutex_};
    const auto i = lines_.find(&object);
    if (i == lines_.end())
      return;
    while (!i->second.empty() && admit_front(object, i->second, done)) {
    }
    if (i->second.empty()) {
      object.application_word().clear(admission_word::waiters_bit);
      lines_.erase(i);
    }
  }
  if (!done.empty())
    domain_.infra->post([this, done = std::move(done)] {
      for (auto& e : done)
        domain_.infra->unschedule(*e);
    });
}

std::vector<submission> waiting_sends::take(execution_object& object) {
  std::vector<submission> messages;
  line gone;
  {
    std::lock_guard guard{mutex_};
    const auto i = lines_.find(&object);
    if (i == lines_.end())
      return messages;
    gone = std::move(i->second);
    lines_.erase(i);
    object.application_word().clear(admission_word::waiters_bit);
  }
  for (auto& e : gone)
    messages.push_back(std::move(e->message));
  domain_.infra->post([this, gone = std::move(gone)] {
    for (auto& e : gone)
      domain_.infra->unschedule(*e);
  });
  return messages;
}

void waiting_sends::expire(entry& late) noexcept {
  std::unique_ptr<entry> held;
  {
    std::lock_guard guard{mutex_};
    const auto i = lines_.find(late.object.get());
    if (i == lines_.end())
      return; // admitted: its destruction is on the way
    for (auto e = i->second.begin(); e != i->second.end(); ++e)
      if (e->get() == &late) {
        held = std::move(*e);
        i->second.erase(e);
        break;
      }
    if (i->second.empty()) {
      late.object->application_word().clear(admission_word::waiters_bit);
      lines_.erase(i);
    }
  }
  if (!held)
    return;
  if (const auto* r = held->message.peek(); r->reply.receiver == nullptr) // nobody is told
    domain_.counters.drop(drop_reason::refused);
  held->message.fail(error{error_kind::deadline_exceeded,
                           "no room in the queue of \"" + held->message.id() + "\" within the time to wait for it"});
}

std::size_t waiting_sends::size() const noexcept {
  std::lock_guard guard{mutex_};
  std::size_t count = 0;
  for (const auto& [object, waiting] : lines_)
    count += waiting.size();
  return count;
}

} // namespace zlink::detail
