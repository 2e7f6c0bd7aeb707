#include "zlink/testing/job_queue.hpp"

#include <algorithm>
#include <cassert>
#include <stdexcept>

namespace zlink::testing {

// -- queue ----------------------------------------------------------------------------------------------------------

void simulation::queue::push(unique_function<void()> job) {
  jobs_.push_back(std::move(job));
  if (!std::exchange(listed_, true))
    home_.list(*this);
}

void simulation::queue::run_one() {
  const auto choices = std::min(width_, jobs_.size());
  const auto at = static_cast<std::ptrdiff_t>(choices == 1 ? 0 : home_.order_.below(choices));
  auto job = std::move(jobs_[static_cast<std::size_t>(at)]);
  jobs_.erase(jobs_.begin() + at);
  const auto* outer = std::exchange(home_.running_, this);
  job();
  job.reset(); // what a job owns is gone before the next one runs
  home_.running_ = outer;
}

void simulation::queue::run_listed() {
  listed_ = false;
  if (!jobs_.empty())
    run_one();
  if (!jobs_.empty() && !std::exchange(listed_, true))
    home_.list(*this);
}

void simulation::queue::run_all() {
  while (!jobs_.empty())
    run_one();
}

void simulation::queue::clear() { std::exchange(jobs_, {}).clear(); }

// -- serial unit ----------------------------------------------------------------------------------------------------

simulation::unit::unit(simulation& home, machine_id machine, std::string name)
  : home_(home), jobs_(std::make_shared<queue>(home, machine, 1, std::move(name))) {}

void simulation::unit::post(unique_function<void()> job) {
  if (!stopping_)
    jobs_->push(std::move(job));
}

void simulation::unit::on_alarm(unique_function<void()> handler) {
  if (handler_)
    throw std::logic_error{"the alarm handler of a serial unit is set once"};
  handler_ = std::move(handler);
}

void simulation::unit::alarm_at(steady_time when) {
  disarm();
  if (stopping_ || when == steady_time::max())
    return;
  if (!handler_)
    throw std::logic_error{"a serial unit needs an alarm handler before its first alarm"};
  if (when <= home_.now()) {
    ring();
    return;
  }
  alarm_ = home_.timers_.emplace(when, timer{[self = weak_from_this()] {
                                   if (const auto alive = self.lock()) {
                                     alive->armed_ = false;
                                     alive->ring();
                                   }
                                 }});
  armed_ = true;
}

/// The handler becomes a job, which a later `alarm_at` can still take back.
void simulation::unit::ring() {
  ringing_ = true;
  jobs_->push([alive = shared_from_this()] {
    if (alive->ringing_ && !alive->stopping_) {
      alive->ringing_ = false;
      alive->handler_();
    }
  });
}

void simulation::unit::disarm() {
  ringing_ = false;
  if (std::exchange(armed_, false))
    home_.timers_.erase(alarm_);
}

void simulation::unit::stop() {
  if (ended_)
    return;
  if (!std::exchange(stopping_, true)) {
    disarm();
    jobs_->push([self = shared_from_this()] {
      self->ended_ = true;
      self->handler_.reset(); // may own what owns this unit
    });
  }
  if (!jobs_->running())
    jobs_->run_all();
}

// -- workers --------------------------------------------------------------------------------------------------------

simulation::workers::workers(simulation& home, machine_id machine, std::size_t threads)
  : bodies_(std::make_shared<queue>(home, machine, threads, "a worker")) {}

void simulation::workers::submit(unique_function<void()> body) {
  if (!stopped_)
    bodies_->push(std::move(body));
}

void simulation::workers::stop() {
  stopped_ = true;
  bodies_->clear();
}

// -- environment ----------------------------------------------------------------------------------------------------

std::shared_ptr<detail::serial_executor> simulation::environment::make_serial(std::string name,
                                                                              std::shared_ptr<const clock>) {
  return std::make_shared<unit>(home_, machine_, std::move(name));
}

std::shared_ptr<detail::worker_pool> simulation::environment::make_workers(worker_options options) {
  constexpr std::uint32_t processors = 4; // of every simulated machine
  if (options.min_threads == 0 || (options.max_threads != 0 && options.max_threads < options.min_threads))
    throw std::invalid_argument{"worker threads: at least 1, and the maximum not below the minimum"};
  if (options.idle_timeout <= std::chrono::milliseconds::zero())
    throw std::invalid_argument{"worker idle_timeout must be positive"};
  const auto threads = options.max_threads != 0 ? options.max_threads : std::max(options.min_threads, processors);
  return std::make_shared<workers>(home_, machine_, threads);
}

} // namespace zlink::testing
