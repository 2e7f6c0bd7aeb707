// Where the layer's own threads come from. The runtime starts no thread by itself: it asks the host's execution
// environment for serial units and for a worker pool, so a test runs all of it on one thread (D-8, D-20).
#pragma once

#include "zlink/clock.hpp"
#include "zlink/defaults.hpp"
#include "zlink/unique_function.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace zlink {

namespace detail {

/// Runs jobs one at a time, in the order posted, never on the stack of who posts them. Jobs and the alarm
/// handler must not throw.
class serial_executor {
public:
  virtual ~serial_executor() = default;
  /// Appends a job. Any thread. After `stop()` the job is destroyed unrun, on the calling thread.
  virtual void post(unique_function<void()> job) = 0;
  /// True inside a job or the alarm handler of this unit. Any thread.
  virtual bool running_here() const noexcept = 0;
  /// Asks for one call of the alarm handler at `when` or soon after, never before; a past time means now. There is one
  /// pending alarm: the latest call replaces it, `steady_time::max()` cancels it. Any thread; from another thread a
  /// call of the handler that has begun is not taken back.
  virtual void alarm_at(steady_time when) = 0;
  /// Sets the alarm handler, once, before the first `alarm_at()`; else `std::logic_error`. It runs as a job of this
  /// unit and is destroyed when the unit ends.
  virtual void on_alarm(unique_function<void()> handler) = 0;
  /// Of the time since the last call in which this unit had work, how long it waited for a processor, in percent. 0 at first,
  /// and where nobody knows. Inside the unit.
  virtual unsigned waited_for_processor() { return 0; }
  /// Runs what is queued, drops the alarm, then ends. Returns when all that has happened, except inside the unit
  /// itself, where it returns at once and the unit ends after the jobs queued so far. Any thread, any number of times.
  virtual void stop() = 0;
};

/// Runs bodies that may block or compute long, several at a time, begun in the order submitted.
class worker_pool {
public:
  virtual ~worker_pool() = default;
  /// Appends a body; there is no queue cap. It must not throw. Any thread. After `stop()` the body is destroyed
  /// unrun, on the calling thread.
  virtual void submit(unique_function<void()> body) = 0;
  /// Destroys the bodies that have not begun and waits for those that have, except inside a body, where it returns at
  /// once. Any thread, any number of times.
  virtual void stop() = 0;
};

} // namespace detail

/// Size of the CPU worker pool.
struct worker_options {
  /// At least 1; these threads live as long as the pool.
  std::uint32_t min_threads = defaults::worker_min_threads;
  /// At least `min_threads`; 0 stands for the number of processors or `min_threads`, whichever is larger.
  std::uint32_t max_threads = defaults::worker_max_threads;
  /// Positive; after that long without work a thread above the minimum ends.
  std::chrono::milliseconds idle_timeout = defaults::worker_idle_timeout;
};

/// The thread factory of a host (D-20). Thread-safe.
class execution_environment {
public:
  virtual ~execution_environment() = default;
  /// A serial unit whose alarms follow `time`. The name is for debuggers; a system may keep only its first 15 bytes.
  virtual std::shared_ptr<detail::serial_executor> make_serial(std::string name, std::shared_ptr<const clock> time) = 0;
  /// Throws `std::invalid_argument` for options outside their range.
  virtual std::shared_ptr<detail::worker_pool> make_workers(worker_options options) = 0;
};

} // namespace zlink
