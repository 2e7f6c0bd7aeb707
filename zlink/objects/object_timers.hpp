// The timers of one Spot or Actor: registrations by name, armed in the host's wheel, ticking through its application lane.
#pragma once

#include "zlink/execution/execution_object.hpp"
#include "zlink/execution/infrastructure.hpp"
#include "zlink/execution/tick_schedule.hpp"
#include "zlink/objects/tick_handler.hpp"
#include "zlink/timer.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace zlink::detail {

class hosted_object;

/// One registration (one generation of a name). Touched in turns of `target` while a tick is pending, else by `expired`.
class object_timer final : public counted, public timed {
public:
  /// `target`: where its ticks run, the object or a part of it.
  object_timer(hosted_object& object, execution_object& target, std::shared_ptr<timer_state> state,
             std::chrono::milliseconds period, timer_options options, tick_invoke invoke, steady_time now);
  ~object_timer() override;

  void arm();
  /// Takes it out of the wheel; a pending tick is not taken back.
  void disarm();
  bool cancelled() const noexcept { return state_->cancelled.load(std::memory_order_acquire); }
  void cancel() noexcept { state_->cancelled.store(true, std::memory_order_release); }
  const std::shared_ptr<timer_state>& state() const noexcept { return state_; }
  /// For reports: name, callback, and whether an exception ends it.
  std::string description() const;

  /// Runs the handler for the tick that `r` stands for.
  handler_run* dispatch(record* r, steady_time now);
  /// The tick's record is done with; `failed`: the handler threw.
  void ended(bool failed, steady_time now);

  void expired() noexcept override;
  void dropped() noexcept override { unref(); }

private:
  void arm_at(steady_time due);

  counted_ptr<hosted_object> object_;
  counted_ptr<execution_object> target_;
  std::shared_ptr<timer_state> state_;
  tick_schedule schedule_;
  timer_tick tick_;
  tick_invoke invoke_;
  bool stop_on_exception_;
  bool started_ = false; ///< the current tick's handler has been called
  const std::chrono::milliseconds period_;
};

/// Under a mutex: in a PerActor Spot its own turns and those of its timers' names run beside each other, and an Actor's timer
/// may be added by its Spot.
class object_timers {
public:
  /// `gate_each`: every name has a gate of its own.
  object_timers(hosted_object& object, bool gate_each) noexcept : object_(object), gate_each_(gate_each) {}
  /// Replaces the registration of that name. Inside a turn.
  timer add(std::string name, std::chrono::milliseconds period, timer_options options, tick_invoke invoke);
  /// No tick starts a new period; pending ones still run.
  void stop() noexcept;
  /// Ends what waits in the object's parts, and fails what their turns wait for.
  void end_parts(const error& why);
  /// No registration that ticks (what keeps ticking is never idle).
  bool idle() noexcept;

private:
  class part;
  struct place {
    counted_ptr<object_timer> registration;
    counted_ptr<execution_object> runs_in;
  };
  counted_ptr<execution_object> make_target();

  hosted_object& object_;
  const bool gate_each_;
  std::mutex mutex_;
  std::map<std::string, place, std::less<>> by_name_;
};

} // namespace zlink::detail
