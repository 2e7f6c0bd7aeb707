#include "zlink/messaging/link_timer.hpp"

#include "zlink/messaging/link_session.hpp"

#include <utility>

namespace zlink::detail {

link_timer::link_timer(infrastructure& infra) noexcept : infra_(infra) {}

link_timer::~link_timer() = default;

void link_timer::set(counted_ptr<link_session> session, steady_time due) {
  infra_.post([self = counted_ptr<link_timer>::share(this), session = std::move(session), due]() mutable {
    if (!self->session_)
      self->ref(); // for the wheel
    self->session_ = std::move(session);
    self->infra_.schedule(*self, due);
  });
}

void link_timer::cancel() {
  infra_.post([self = counted_ptr<link_timer>::share(this)] {
    if (self->infra_.unschedule(*self))
      self->dropped();
  });
}

void link_timer::expired() noexcept {
  auto session = std::exchange(session_, nullptr);
  session->on_alarm();
  unref();
}

void link_timer::dropped() noexcept {
  session_ = nullptr;
  unref();
}

} // namespace zlink::detail
