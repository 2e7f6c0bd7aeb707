#include "zlink/messaging/ingress.hpp"

namespace zlink::detail {

ingress::ingress(job_permits& permits, counted_ptr<link_session> link, const std::string& source,
                 unique_function<void(unique_function<void()>)> later)
  : permits_(permits), source_(source), later_(std::move(later)), link_(std::move(link)) {}

ingress::~ingress() {
  for (auto* line : {&drained_, &waiting_})
    for (auto& never : *line)
      refuse(never.r, error{error_kind::shutting_down, "the host has ended"});
}

bool ingress::may_deliver_now() {
  return !someone_waits_.load(std::memory_order_acquire) && permits_.try_acquire();
}

void ingress::wait(record* r, job deliver, std::uint32_t wire_bytes) {
  {
    std::lock_guard guard{mutex_};
    waiting_.push_back({r, std::move(deliver), wire_bytes});
    if (in_line_)
      return;
    someone_waits_.store(true, std::memory_order_relaxed);
    in_line_ = shared_from_this();
  }
  if (permits_.acquire(*this))
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
  std::uint64_t wire_bytes = 0;
  do {
    if (drained_.empty()) {
      std::lock_guard guard{mutex_};
      std::swap(drained_, waiting_);
    }
    auto next = std::move(drained_.front());
    drained_.pop_front();
    wire_bytes += next.wire_bytes;
    next.r->permit = &permits_; // given back when its handler starts, or never will
    next.deliver();
  } while (next_permitted());
  counted_ptr<link_session> link;
  {
    std::lock_guard guard{mutex_};
    link = link_;
  }
  if (link)
    link->consumed(wire_bytes);
}

bool ingress::next_permitted() {
  if (drained_.empty()) {
    std::lock_guard guard{mutex_};
    if (waiting_.empty()) {
      in_line_ = nullptr;
      someone_waits_.store(false, std::memory_order_release);
      return false;
    }
  }
  return permits_.acquire(*this);
}

void ingress::detach() noexcept {
  std::lock_guard guard{mutex_};
  link_ = nullptr;
}

} // namespace zlink::detail
