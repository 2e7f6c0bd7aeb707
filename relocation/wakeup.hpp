// A coroutine of the infrastructure unit waits until somebody wakes it, or until a time.
#pragma once

#include "zlink/execution/infrastructure.hpp"
#include "zlink/execution/operation.hpp"
#include "zlink/task.hpp"

#include <utility>

namespace zlink::detail {

/// Every member inside the unit; one coroutine waits at a time.
class wakeup final : public timed {
public:
  explicit wakeup(infrastructure& unit) noexcept : unit_(unit) {}
  ~wakeup() override { unit_.unschedule(*this); }
  wakeup(const wakeup&) = delete;
  wakeup& operator=(const wakeup&) = delete;

  /// Ends when woken, at once if that was meanwhile, or at `due`.
  task<void> until(steady_time due) {
    if (std::exchange(woken_, false))
      return task<void>::done();
    waiting_ = new_counted<operation<void>>();
    waiting_->dispatcher = unit_.unit();
    if (due != steady_time::max())
      unit_.schedule(*this, due);
    return task<void>{waiting_};
  }
  void wake() noexcept {
    if (!waiting_) {
      woken_ = true;
      return;
    }
    unit_.unschedule(*this);
    end(result<void>{});
  }
  void expired() noexcept override {
    if (waiting_)
      end(result<void>{});
  }
  void dropped() noexcept override {
    if (waiting_)
      end(error{error_kind::shutting_down, "the host has ended"});
  }

private:
  void end(result<void> how) noexcept { std::exchange(waiting_, nullptr)->set(std::move(how)); }

  infrastructure& unit_;
  counted_ptr<operation<void>> waiting_;
  bool woken_ = false;
};

} // namespace zlink::detail
