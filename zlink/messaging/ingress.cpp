#include "zlink/messaging/ingress.hpp"

namespace zlink::detail {

ingress::ingress(job_permits& permits, counted_ptr<link_session> link, const std::string& source,
                 unique_function<void(unique_function<void()>)> later)
  : permits_(permits), source_(source), later_(std::move(later)), link_(std::move(link)) {}

ingress::~ingress() = default;

bool ingress::may_deliver_now() {
  return !someone_waits_.load(std::memory_order_acquire) && permits_.try_acquire();
}

void ingress::wait(job deliver, std::uint32_t wire_bytes) {
  std::unique_lock guard{mutex_};
  waiting_.push_back({std::move(deliver), wire_bytes});
  if (in_line_)
    return;
  someone_waits_.store(true, std::memory_order_relaxed);
  in_line_ = shared_from_this();
  if (!permits_.acquire(*this))
    return;
  guard.unlock();
  on_entered(); // one came free in between
}

void ingress::on_entered() noexcept {
  std::shared_ptr<ingress> self;
  {
    std::lock_guard guard{mutex_};
    self = in_line_;
  }
  later_([self] { self->drain(); });
}

void ingress::drain() {
  for (;;) {
    waiting next;
    counted_ptr<link_session> link;
    {
      std::lock_guard guard{mutex_};
      next = std::move(waiting_.front());
      waiting_.pop_front();
      link = link_;
    }
    next.deliver();
    if (link)
      link->consumed(next.wire_bytes);
    std::lock_guard guard{mutex_};
    if (waiting_.empty()) {
      in_line_ = nullptr;
      someone_waits_.store(false, std::memory_order_release);
      return;
    }
    if (!permits_.acquire(*this))
      return; // stays in line
  }
}

void ingress::detach() noexcept {
  std::lock_guard guard{mutex_};
  link_ = nullptr;
}

} // namespace zlink::detail
