// What the simulation runs besides CAF's jobs: queues of jobs, and the serial units and worker pools made of them.
#pragma once

#include "zlink/testing/simulation.hpp"

#include <deque>
#include <memory>
#include <string>
#include <utility>

namespace zlink::testing {

/// Stands among the ready ones, once, while it has jobs.
class simulation::queue final : public std::enable_shared_from_this<queue> {
public:
  static constexpr std::size_t any_order = static_cast<std::size_t>(-1);

  /// The next job is one of the first `width`.
  queue(simulation& home, machine_id machine, std::size_t width, std::string name = "a job")
    : home_(home), machine_(machine), width_(width), name_(std::move(name)) {}

  void push(unique_function<void()> job);
  /// Runs one job; called for the queue that was just taken from the ready ones.
  void run_listed();
  /// Runs what there is, on the stack of the caller.
  void run_all();
  void clear();

  bool running() const noexcept { return home_.running_ == this; }
  machine_id machine() const noexcept { return machine_; }
  const std::string& name() const noexcept { return name_; }

private:
  void run_one();

  simulation& home_;
  machine_id machine_;
  std::size_t width_;
  std::string name_;
  std::deque<unique_function<void()>> jobs_;
  bool listed_ = false;
};

/// A serial unit without a thread.
class simulation::unit final : public detail::serial_executor, public std::enable_shared_from_this<unit> {
public:
  unit(simulation& home, machine_id machine, std::string name);

  void post(unique_function<void()> job) override;
  bool running_here() const noexcept override { return jobs_->running(); }
  void alarm_at(steady_time when) override;
  void on_alarm(unique_function<void()> handler) override;
  void stop() override;

private:
  void disarm();
  void ring();

  simulation& home_;
  std::shared_ptr<queue> jobs_;
  unique_function<void()> handler_;
  timers::iterator alarm_;
  bool armed_ = false;   ///< `alarm_` is among the timers
  bool ringing_ = false; ///< the handler is among the jobs
  bool stopping_ = false;
  bool ended_ = false;
};

/// A worker pool without threads: of the first bodies, as many as the pool has threads, any may be the next that ends.
class simulation::workers final : public detail::worker_pool {
public:
  workers(simulation& home, machine_id machine, std::size_t threads);

  void submit(unique_function<void()> body) override;
  void stop() override;

private:
  std::shared_ptr<queue> bodies_;
  bool stopped_ = false;
};

class simulation::environment final : public execution_environment {
public:
  environment(simulation& home, machine_id machine) noexcept : home_(home), machine_(machine) {}

  std::shared_ptr<detail::serial_executor> make_serial(std::string name, std::shared_ptr<const clock> time) override;
  std::shared_ptr<detail::worker_pool> make_workers(worker_options options) override;

private:
  simulation& home_;
  machine_id machine_;
};

} // namespace zlink::testing
