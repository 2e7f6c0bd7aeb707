// All threads of a host on one thread, in an order that a seed decides, under a clock that only this moves.
#pragma once

#include "tests/core/store/manual_clock.hpp"
#include "zlink/execution/executor.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace zlink::test {

/// Not thread-safe: everything happens on the test's thread, inside `run…`.
class manual_executor final : public execution_environment {
public:
  /// Seed 0: units take turns in the order in which they got work; else the seed picks the next unit. The order within
  /// a unit is always kept.
  explicit manual_executor(std::shared_ptr<manual_clock> time, std::uint64_t seed = 0);
  ~manual_executor() override;

  std::shared_ptr<detail::serial_executor> make_serial(std::string name, std::shared_ptr<const clock> time) override;
  std::shared_ptr<detail::worker_pool> make_workers(worker_options options) override;

  /// A job of no unit.
  void post(unique_function<void()> job);
  void post_after(steady_duration delay, unique_function<void()> job);
  std::uint64_t random() { return random_(); }

  /// Runs until nothing is left to do at the present time; the number of jobs run.
  std::size_t run();
  /// Runs, moving the clock from one alarm to the next, until `by` has passed.
  void run_for(steady_duration by);
  /// The same until `done()`; false if that does not come within `limit`.
  bool run_until(const std::function<bool()>& done, steady_duration limit);

private:
  class unit;
  class workers;
  friend class unit;
  using timers = std::multimap<steady_time, unique_function<void()>>;

  void make_ready(unit& which);
  bool run_one();
  /// Moves the clock to the next timer not after `until`, which becomes ready.
  bool step(steady_time until);

  std::shared_ptr<manual_clock> time_;
  bool seeded_;
  std::mt19937_64 random_;
  timers timers_;
  std::vector<std::shared_ptr<unit>> ready_;
  std::shared_ptr<unit> loose_; ///< jobs of no unit, in any order
  const unit* running_ = nullptr;
};

class manual_executor::unit final : public detail::serial_executor, public std::enable_shared_from_this<unit> {
public:
  unit(manual_executor& home, bool ordered) : home_(home), ordered_(ordered) {}

  void post(unique_function<void()> job) override {
    if (stopped_)
      return;
    jobs_.push_back(std::move(job));
    home_.make_ready(*this);
  }
  bool running_here() const noexcept override { return home_.running_ == this; }
  void alarm_at(steady_time when) override {
    disarm();
    if (!stopped_ && when != steady_time::max())
      alarm_ = home_.timers_.emplace(when, [this, self = weak_from_this()] {
        if (const auto alive = self.lock()) {
          alive->alarm_ = home_.timers_.end();
          alive->post([alive] { alive->handler_(); });
        }
      });
  }
  void on_alarm(unique_function<void()> handler) override { handler_ = std::move(handler); }
  void stop() override {
    const bool inside = running_here();
    disarm();
    while (!inside && !jobs_.empty())
      run_one();
    stopped_ = true;
  }
  /// A unit's jobs run in order; those of none in any order.
  void run_one() {
    const auto at = ordered_ ? 0 : home_.random_() % jobs_.size();
    auto job = std::move(jobs_[at]);
    jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(at));
    const auto* outer = std::exchange(home_.running_, this);
    job();
    home_.running_ = outer;
  }
  bool idle() const noexcept { return jobs_.empty(); }

private:
  void disarm() {
    if (alarm_ != home_.timers_.end())
      home_.timers_.erase(std::exchange(alarm_, home_.timers_.end()));
  }

  manual_executor& home_;
  bool ordered_;
  bool stopped_ = false;
  std::deque<unique_function<void()>> jobs_;
  unique_function<void()> handler_;
  timers::iterator alarm_ = home_.timers_.end();
};

/// Worker bodies are jobs like any other.
class manual_executor::workers final : public detail::worker_pool {
public:
  explicit workers(manual_executor& home) : home_(home) {}
  void submit(unique_function<void()> body) override {
    if (!*stopped_)
      home_.post([stopped = stopped_, body = std::move(body)]() mutable {
        if (!*stopped)
          body();
      });
  }
  void stop() override { *stopped_ = true; }

private:
  manual_executor& home_;
  std::shared_ptr<bool> stopped_ = std::make_shared<bool>(false);
};

inline manual_executor::manual_executor(std::shared_ptr<manual_clock> time, std::uint64_t seed)
  : time_(std::move(time)), seeded_(seed != 0), random_(seed), loose_(std::make_shared<unit>(*this, seed == 0)) {}

inline manual_executor::~manual_executor() = default;

inline std::shared_ptr<detail::serial_executor> manual_executor::make_serial(std::string,
                                                                             std::shared_ptr<const clock>) {
  return std::make_shared<unit>(*this, true);
}

inline std::shared_ptr<detail::worker_pool> manual_executor::make_workers(worker_options) {
  return std::make_shared<workers>(*this);
}

inline void manual_executor::post(unique_function<void()> job) { loose_->post(std::move(job)); }

inline void manual_executor::post_after(steady_duration delay, unique_function<void()> job) {
  if (delay == steady_duration::zero()) {
    post(std::move(job));
    return;
  }
  timers_.emplace(time_->now() + delay, std::move(job));
}

inline void manual_executor::make_ready(unit& which) {
  for (const auto& known : ready_)
    if (known.get() == &which)
      return;
  ready_.push_back(which.shared_from_this());
}

inline bool manual_executor::run_one() {
  if (ready_.empty())
    return false;
  const auto at = static_cast<std::ptrdiff_t>(seeded_ ? random_() % ready_.size() : 0);
  const auto which = ready_[static_cast<std::size_t>(at)];
  ready_.erase(ready_.begin() + at);
  if (!which->idle())
    which->run_one();
  if (!which->idle())
    make_ready(*which);
  return true;
}

inline std::size_t manual_executor::run() {
  std::size_t jobs = 0;
  do
    while (run_one())
      ++jobs;
  while (step(time_->now()));
  return jobs;
}

inline bool manual_executor::step(steady_time until) {
  if (timers_.empty() || timers_.begin()->first > until)
    return false;
  if (const auto due = timers_.begin()->first; due > time_->now())
    time_->advance(due - time_->now());
  auto timer = timers_.extract(timers_.begin());
  timer.mapped()();
  return true;
}

inline void manual_executor::run_for(steady_duration by) {
  const auto until = time_->now() + by;
  run();
  while (step(until))
    run();
  time_->advance(until - time_->now());
}

inline bool manual_executor::run_until(const std::function<bool()>& done, steady_duration limit) {
  const auto until = time_->now() + limit;
  do {
    while (!done())
      if (!run_one())
        break;
    if (done())
      return true;
  } while (step(until));
  return done();
}

} // namespace zlink::test
