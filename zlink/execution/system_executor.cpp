#include "zlink/execution/system_executor.hpp"

#include "zlink/execution/boottime_sleeper.hpp"
#include "zlink/execution/gathering.hpp"
#include "zlink/execution/processor_wait.hpp"
#include "zlink/execution/signals_blocked.hpp"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace zlink::detail {

namespace {

void name_this_thread(const std::string& name) {
  constexpr std::size_t longest = 15; // of the kernel
  ::pthread_setname_np(::pthread_self(), name.substr(0, longest).c_str());
}

// -- serial unit ----------------------------------------------------------------------------------------------------

/// What the thread and the handle share; it outlives a handle that is dropped inside one of its own jobs.
class serial_state {
public:
  explicit serial_state(std::shared_ptr<const clock> time) : time_(std::move(time)) {}

  void post(unique_function<void()> job) {
    std::unique_lock lock{mutex_};
    if (stopping_)
      return; // `job` is destroyed after the lock is released: its captures may post
    inbox_.push_back(std::move(job));
    wake(lock);
  }

  void alarm_at(steady_time when) {
    std::unique_lock lock{mutex_};
    if (!handler_ && !stopping_)
      throw std::logic_error{"a serial unit needs an alarm handler before its first alarm"};
    alarm_ = when;
    if (when < sleeping_until_)
      wake(lock);
  }

  void on_alarm(unique_function<void()> handler) {
    std::lock_guard lock{mutex_};
    if (handler_)
      throw std::logic_error{"the alarm handler of a serial unit is set once"};
    handler_ = std::move(handler);
  }

  void begin_stop() {
    std::unique_lock lock{mutex_};
    stopping_ = true;
    wake(lock);
  }

  bool running_here() const noexcept { return here_ == this; }

  void run() noexcept {
    here_ = this;
    std::vector<unique_function<void()>> batch;
    while (take(batch)) {
      std::size_t done = 0;
      do {
        ring_if_due();
        const auto end = std::min(done + jobs_between_alarms, batch.size());
        const gathering messages;
        for (; done < end; ++done) {
          gathering::expect(done + 1 < end);
          batch[done]();
          batch[done].reset(); // what a job owns is gone before the next one runs
        }
      } while (done < batch.size());
      batch.clear();
      if (batch.capacity() > kept_capacity)
        batch.shrink_to_fit();
    }
    handler_.reset(); // may own what owns this unit
    here_ = nullptr;
  }

private:
  // A deadline is not late by more than this many jobs, however many are queued.
  static constexpr std::size_t jobs_between_alarms = 64;
  // What one burst needed beyond this is given back.
  static constexpr std::size_t kept_capacity = 4096;

  /// Waits for jobs or the alarm and takes all jobs; false if the unit has ended.
  bool take(std::vector<unique_function<void()>>& batch) {
    std::unique_lock lock{mutex_};
    while (inbox_.empty()) {
      if (stopping_)
        return false;
      auto left = steady_duration::max();
      if (alarm_ != steady_time::max()) {
        const auto now = time_->now();
        if (alarm_ <= now)
          break;
        left = alarm_ - now;
      }
      asleep_ = true;
      sleeping_until_ = alarm_;
      lock.unlock();
      sleeper_.sleep(left);
      lock.lock();
      asleep_ = false;
      sleeping_until_ = steady_time::min();
    }
    batch.swap(inbox_);
    return true;
  }

  void ring_if_due() {
    {
      std::lock_guard lock{mutex_};
      if (stopping_ || alarm_ == steady_time::max() || time_->now() < alarm_)
        return;
      alarm_ = steady_time::max();
    }
    handler_();
  }

  /// A running thread looks at everything again by itself, so only a sleeping one costs a system call, and only once.
  void wake(std::unique_lock<std::mutex>& lock) {
    if (!std::exchange(asleep_, false))
      return;
    sleeping_until_ = steady_time::min();
    lock.unlock();
    sleeper_.wake();
  }

  static thread_local const serial_state* here_;

  const std::shared_ptr<const clock> time_;
  boottime_sleeper sleeper_;
  std::mutex mutex_;
  std::vector<unique_function<void()>> inbox_;
  unique_function<void()> handler_;
  steady_time alarm_ = steady_time::max();
  steady_time sleeping_until_ = steady_time::min(); // min while awake
  bool asleep_ = false;
  bool stopping_ = false;
};

thread_local const serial_state* serial_state::here_ = nullptr;

class serial_thread final : public serial_executor {
public:
  serial_thread(std::string name, std::shared_ptr<const clock> time)
    : state_(std::make_shared<serial_state>(std::move(time))) {
    const signals_blocked blocked{signals_blocked::which::to_end};
    thread_ = std::thread{[state = state_, name = std::move(name)] {
      name_this_thread(name);
      state->run();
    }};
  }

  ~serial_thread() override {
    stop();
    if (thread_.joinable()) // dropped inside the unit, which ends by itself
      thread_.detach();
  }

  void post(unique_function<void()> job) override { state_->post(std::move(job)); }
  bool running_here() const noexcept override { return state_->running_here(); }
  void alarm_at(steady_time when) override { state_->alarm_at(when); }
  void on_alarm(unique_function<void()> handler) override { state_->on_alarm(std::move(handler)); }
  unsigned waited_for_processor() override { return wait_.percent(); }

  void stop() override {
    state_->begin_stop();
    if (running_here())
      return;
    std::lock_guard lock{join_mutex_};
    if (thread_.joinable())
      thread_.join();
  }

private:
  std::shared_ptr<serial_state> state_;
  processor_wait wait_; ///< inside the unit
  std::mutex join_mutex_;
  std::thread thread_;
};

// -- worker pool ----------------------------------------------------------------------------------------------------

class pool_state : public std::enable_shared_from_this<pool_state> {
public:
  explicit pool_state(worker_options options) : options_(options) {}

  /// Starts the threads that stay.
  void start() {
    std::lock_guard lock{mutex_};
    while (threads_.size() < options_.min_threads)
      add_thread();
  }

  void submit(unique_function<void()> body) {
    std::unique_lock lock{mutex_};
    if (stopping_)
      return; // `body` is destroyed after the lock is released
    queue_.push_back(std::move(body));
    // A waiting thread stays counted until it has taken its body, and that body is still in the queue until then.
    if (queue_.size() > waiting_ && threads_.size() < options_.max_threads) {
      try {
        add_thread();
      } catch (const std::system_error&) {
        // The system has no thread to give; those that run will come to this body.
      }
    }
    auto idle_ended = std::exchange(ended_, {});
    lock.unlock();
    work_.notify_one();
    join(std::move(idle_ended));
  }

  void stop() {
    std::deque<unique_function<void()>> dropped;
    {
      std::lock_guard lock{mutex_};
      stopping_ = true;
      dropped.swap(queue_);
    }
    work_.notify_all();
    dropped.clear(); // without the lock, as what they own may submit; before waiting, as who runs may wait for it
    if (running_here())
      return;
    std::lock_guard joining{join_mutex_}; // a second caller waits as long as the first
    join(take_threads());
  }

  /// For a pool that is dropped inside one of its own bodies: the threads end by themselves.
  void detach() {
    for (auto& thread : take_threads())
      thread.detach();
  }

  bool running_here() const noexcept { return here_ == this; }

private:
  using thread_list = std::list<std::thread>;

  /// After `stopping_` is set no thread touches these lists any more.
  thread_list take_threads() {
    std::lock_guard lock{mutex_};
    ended_.splice(ended_.end(), threads_);
    return std::exchange(ended_, {});
  }

  static void join(thread_list threads) {
    for (auto& thread : threads)
      thread.join();
  }

  /// Under the lock, which the new thread takes first.
  void add_thread() {
    const auto self = threads_.emplace(threads_.end());
    const signals_blocked blocked{signals_blocked::which::to_end};
    try {
      *self = std::thread{[state = shared_from_this(), self, number = ++started_] {
        name_this_thread("zlink-worker-" + std::to_string(number));
        state->run(self);
      }};
    } catch (...) {
      threads_.erase(self);
      throw;
    }
  }

  void run(thread_list::iterator self) noexcept {
    here_ = this;
    std::unique_lock lock{mutex_};
    while (auto body = next(lock)) {
      lock.unlock();
      body();
      body.reset();
      lock.lock();
    }
    if (!stopping_)
      ended_.splice(ended_.end(), threads_, self);
    here_ = nullptr;
  }

  /// The next body, or none if this thread shall end.
  unique_function<void()> next(std::unique_lock<std::mutex>& lock) {
    while (queue_.empty()) {
      if (stopping_)
        return nullptr;
      ++waiting_;
      const auto outcome = work_.wait_for(lock, options_.idle_timeout);
      --waiting_;
      if (outcome == std::cv_status::timeout && queue_.empty() && threads_.size() > options_.min_threads)
        return nullptr;
    }
    auto body = std::move(queue_.front());
    queue_.pop_front();
    return body;
  }

  static thread_local const pool_state* here_;

  const worker_options options_;
  std::mutex join_mutex_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<unique_function<void()>> queue_;
  thread_list threads_; // counted against the maximum
  thread_list ended_;   // ended by being idle, not joined yet
  std::size_t waiting_ = 0;
  std::uint64_t started_ = 0;
  bool stopping_ = false;
};

thread_local const pool_state* pool_state::here_ = nullptr;

class thread_pool final : public worker_pool {
public:
  explicit thread_pool(worker_options options) : state_(std::make_shared<pool_state>(options)) {
    try {
      state_->start();
    } catch (...) {
      state_->stop();
      throw;
    }
  }
  ~thread_pool() override {
    state_->stop();
    if (state_->running_here())
      state_->detach();
  }
  void submit(unique_function<void()> body) override { state_->submit(std::move(body)); }
  void stop() override { state_->stop(); }

private:
  std::shared_ptr<pool_state> state_;
};

class system_environment final : public execution_environment {
public:
  std::shared_ptr<serial_executor> make_serial(std::string name, std::shared_ptr<const clock> time) override {
    return std::make_shared<serial_thread>(std::move(name), std::move(time));
  }
  std::shared_ptr<worker_pool> make_workers(worker_options options) override {
    return std::make_shared<thread_pool>(checked(options));
  }

private:
  static worker_options checked(worker_options options) {
    if (options.min_threads == 0)
      throw std::invalid_argument{"worker min_threads is 0; it must be at least 1"};
    if (options.max_threads == 0)
      options.max_threads = std::max(options.min_threads, std::max(1U, std::thread::hardware_concurrency()));
    if (options.max_threads < options.min_threads)
      throw std::invalid_argument{"worker max_threads " + std::to_string(options.max_threads) + " is below min_threads "
                                  + std::to_string(options.min_threads)};
    if (options.idle_timeout <= std::chrono::milliseconds::zero())
      throw std::invalid_argument{"worker idle_timeout must be positive"};
    return options;
  }
};

} // namespace

std::shared_ptr<execution_environment> make_system_environment() { return std::make_shared<system_environment>(); }

} // namespace zlink::detail
