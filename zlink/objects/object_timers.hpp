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
#include <vector>

namespace zlink::detail {

class hosted_object;

class object_timer;

/// One registration as a move takes it along (L-75).
struct timer_snapshot {
  std::string name;
  tick_invoke invoke = nullptr;
  std::chrono::milliseconds period{0};
  timer_options options;
  tick_progress progress;
  std::uint64_t generation = 0;
  const object_timer* registration = nullptr; ///< of this node, to tell whose pending ticks wait
};

/// One registration (one generation of a name). Touched in turns of `target` while a tick is pending, else in the infrastructure
/// unit. A tick is pending from its expiry until it has ended: only then the next one is armed, whoever asks.
class object_timer final : public counted, public timed {
public:
  /// `target`: where its ticks run, the object or a part of it.
  object_timer(hosted_object& object, execution_object& target, std::shared_ptr<timer_state> state,
             std::chrono::milliseconds period, timer_options options, tick_invoke invoke, steady_time now);
  /// Goes on where the one that was captured has stopped. `pending`: a tick of it waits already.
  object_timer(hosted_object& object, const timer_snapshot& carried, tick_invoke invoke, bool pending, steady_time now);
  ~object_timer() override;

  /// Where a tick is pending, its end does that.
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
  /// In a turn, while no callback runs.
  timer_snapshot snapshot(steady_time now) const;
  /// The tick's record is done with; `failed`: the handler threw.
  void ended(bool failed, steady_time now);

  void expired() noexcept override;
  void dropped() noexcept override { unref(); }

private:
  void schedule(steady_time due);

  counted_ptr<hosted_object> object_;
  counted_ptr<execution_object> target_;
  std::shared_ptr<timer_state> state_;
  tick_schedule schedule_;
  timer_tick tick_;
  tick_invoke invoke_;
  const timer_options options_;
  bool started_ = false; ///< the current tick's handler has been called
  bool pending_ = false; ///< a tick waits, or runs; in the unit only
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

  // -- a move; the object's own timers, not those of parts -----------------------------------------------------------------

  /// What is registered from now on waits for `go_on`: the object is being rebuilt.
  void hold() noexcept;
  /// All that were held begin, and all that `stop` has stopped go on.
  void go_on();
  /// All that tick, at a boundary. In a turn.
  std::vector<timer_snapshot> snapshot(steady_time now);
  /// Registers what was carried, in place of what goes by that name here (L-76, L-80). While held. `pending`: a tick of it
  /// waits in the lane.
  counted_ptr<object_timer> restore(const timer_snapshot& carried, tick_invoke invoke, bool pending);

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
  bool held_ = false;
  std::map<std::string, place, std::less<>> by_name_;
};

} // namespace zlink::detail
