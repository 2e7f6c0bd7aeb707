// The serial unit of a host that serves timeouts, resolving, leases, activation and shutdown steps without any
// application turn ending (X-109, X-110, D-8): one executor and the host's timer wheel.
#pragma once

#include "zlink/execution/executor.hpp"
#include "zlink/execution/timer_wheel.hpp"

#include <memory>

namespace zlink::detail {

/// An entry of the host's wheel: `expired()` runs in the infrastructure unit.
class timed : public wheel_entry {
public:
  virtual void expired() noexcept = 0;
  /// Instead of `expired()` when the unit has ended first.
  virtual void dropped() noexcept {}

  virtual ~timed() = default;
};

class infrastructure {
public:
  infrastructure(std::shared_ptr<serial_executor> unit, std::shared_ptr<const clock> time);
  infrastructure(const infrastructure&) = delete;
  infrastructure& operator=(const infrastructure&) = delete;
  ~infrastructure();

  /// Any thread.
  void post(unique_function<void()> job) { unit_->post(std::move(job)); }
  bool running_here() const noexcept { return unit_->running_here(); }
  const std::shared_ptr<serial_executor>& unit() const noexcept { return unit_; }
  const clock& time() const noexcept { return *time_; }
  /// Only inside the unit.
  unsigned waited_for_processor() { return unit_->waited_for_processor(); }

  /// Only inside the unit. An entry already scheduled is moved.
  void schedule(timed& entry, steady_time due) noexcept;
  /// Only inside the unit. False if it was not scheduled.
  bool unschedule(timed& entry) noexcept { return wheel_.cancel(entry); }
  /// Runs `job` in the unit once, after `delay`, however long. Any thread.
  void post_after(steady_duration delay, unique_function<void()> job);
  /// Runs what is queued, then ends; timers that are not due are dropped. Not inside the unit.
  void stop();

private:
  void on_alarm() noexcept;
  void arm() noexcept;

  std::shared_ptr<serial_executor> unit_;
  std::shared_ptr<const clock> time_;
  timer_wheel wheel_;
  steady_time armed_ = steady_time::max();
};

} // namespace zlink::detail
