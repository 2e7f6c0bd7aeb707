#include "zlink/messaging/ingress.hpp"

namespace zlink::detail {

ingress::ingress(job_permits& permits, counted_ptr<link_session> link,
                 unique_function<void(unique_function<void()>)> later)
  : permits_(permits), later_(std::move(later)), link_(std::move(link)) {}

ingress::~ingress() = default;

bool ingress::take(job deliver, std::uint32_t wire_bytes) {
  {
    std::lock_guard guard{mutex_};
    if (!waiting_.empty() || in_line_) {
      waiting_.push_back({std::move(deliver), wire_bytes});
      return false;
    }
    if (!permits_.acquire(*this)) {
      in_line_ = shared_from_this();
      waiting_.push_back({std::move(deliver), wire_bytes});
      return false;
    }
  }
  deliver();
  return true;
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
