// `task<T>`: what awaitable functions return, and what coroutine handlers are. Includes no actor of CAF.
#pragma once

#include "zlink/error.hpp"
#include "zlink/execution/operation.hpp"
#include "zlink/execution/pooled.hpp"

#include <condition_variable>
#include <coroutine>
#include <exception>
#include <mutex>
#include <type_traits>
#include <utility>
#include <variant>

namespace zlink {

template <class T>
class task;

namespace detail {

/// Part of a coroutine's promise that does not depend on its result.
class task_promise_base : public pooled {
public:
  std::suspend_always initial_suspend() noexcept { return {}; }

  struct final_awaiter {
    bool await_ready() noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> h) noexcept {
      return h.promise().on_end();
    }
    void await_resume() noexcept {}
  };
  final_awaiter final_suspend() noexcept { return {}; }

  std::coroutine_handle<> continuation;
  /// Instead of a continuation: called when the coroutine has ended; may destroy the frame.
  void (*ended)(void* context) noexcept = nullptr;
  void* ended_context = nullptr;

private:
  std::coroutine_handle<> on_end() noexcept {
    if (ended != nullptr) {
      ended(ended_context);
      return std::noop_coroutine();
    }
    return continuation ? continuation : std::noop_coroutine();
  }
};

template <class T>
class task_promise : public task_promise_base {
public:
  task<T> get_return_object() noexcept;
  template <class U>
    requires std::is_constructible_v<T, U&&>
  void return_value(U&& value) {
    outcome_.template emplace<1>(std::forward<U>(value));
  }
  void return_value(T value) { outcome_.template emplace<1>(std::move(value)); }
  void unhandled_exception() noexcept { outcome_.template emplace<2>(std::current_exception()); }
  T take() {
    if (outcome_.index() == 2)
      std::rethrow_exception(std::get<2>(outcome_));
    return std::move(std::get<1>(outcome_));
  }

private:
  std::variant<std::monostate, T, std::exception_ptr> outcome_;
};

template <>
class task_promise<void> : public task_promise_base {
public:
  task<void> get_return_object() noexcept;
  void return_void() noexcept {}
  void unhandled_exception() noexcept { failure_ = std::current_exception(); }
  void take() {
    if (failure_)
      std::rethrow_exception(failure_);
  }

private:
  std::exception_ptr failure_;
};

/// The exception in flight as a result: kinds and cancellation keep their meaning, anything else is internal_failure.
template <class T>
result<T> current_exception_as_result() noexcept {
  try {
    throw;
  } catch (const operation_failed& failure) {
    return error{failure.details()};
  } catch (const operation_cancelled&) {
    return cancelled;
  } catch (const std::exception& what) {
    return error{error_kind::internal_failure, what.what()};
  } catch (...) {
    return error{error_kind::internal_failure, "an exception that is no std::exception"};
  }
}

/// Marks "no handler run" while a coroutine is started outside of any.
struct detached_start;

} // namespace detail

/// One result, later. It comes from a terminal or another function of the layer, and then the operation is under way
/// already, or from a coroutine, which starts when it is awaited, given a callback or waited for. Move-only; one
/// consumer. Dropping a task neither cancels nor repeats what is under way.
template <class T>
class task {
public:
  using promise_type = detail::task_promise<T>;
  using value_type = T;

  task(task&& other) noexcept
    : frame_(std::exchange(other.frame_, nullptr)), operation_(std::move(other.operation_)), dispatcher_(other.dispatcher_) {}
  task& operator=(task&& other) noexcept {
    if (this != &other) {
      drop();
      frame_ = std::exchange(other.frame_, nullptr);
      operation_ = std::move(other.operation_);
      dispatcher_ = other.dispatcher_;
    }
    return *this;
  }
  ~task() { drop(); }

  /// True once awaiting would not suspend. False for a coroutine that has not been started.
  bool ready() const noexcept { return operation_ ? operation_->done() : !frame_ || frame_.done(); }

  /// `callback(result<T>)` runs once: in a turn of the caller if called inside one, else on the host's completion
  /// dispatcher. Never throws for the operation's sake.
  template <class F>
  void then(F callback) &&;

  class awaiter;
  awaiter operator co_await() && noexcept { return awaiter{std::move(*this)}; }

  /// A task that has ended well already.
  static task done() noexcept
    requires std::is_void_v<T>
  {
    return task{};
  }
  /// The same; a callback outside of turns runs on that dispatcher, which stays as long as its host.
  static task done(const std::shared_ptr<detail::serial_executor>& dispatcher) noexcept
    requires std::is_void_v<T>
  {
    task ended;
    ended.dispatcher_ = &dispatcher;
    return ended;
  }

  // -- for the layer ---------------------------------------------------------------------------------------------------
  explicit task(detail::counted_ptr<detail::operation<T>> operation) noexcept : operation_(std::move(operation)) {}
  explicit task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}
  std::coroutine_handle<promise_type> frame() const noexcept { return frame_; }
  const detail::counted_ptr<detail::operation<T>>& operation() const noexcept { return operation_; }
  std::coroutine_handle<promise_type> release_frame() noexcept { return std::exchange(frame_, nullptr); }

private:
  task() = default;
  void drop() noexcept {
    if (frame_)
      std::exchange(frame_, nullptr).destroy();
  }

  std::coroutine_handle<promise_type> frame_;
  detail::counted_ptr<detail::operation<T>> operation_;
  const std::shared_ptr<detail::serial_executor>* dispatcher_ = nullptr; ///< of a task that was made done
};

template <class T>
class task<T>::awaiter {
public:
  explicit awaiter(task&& awaited) noexcept : task_(std::move(awaited)) {}
  awaiter(awaiter&&) noexcept = default;
  ~awaiter() {
    if (waiting_)
      task_.operation_->abandon_await();
  }
  bool await_ready() const noexcept { return task_.ready(); }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> h) noexcept {
    if (task_.frame_) {
      task_.frame_.promise().continuation = h;
      return task_.frame_;
    }
    waiting_ = true;
    if (task_.operation_->await(h, detail::current_run()))
      return std::noop_coroutine();
    waiting_ = false;
    return h;
  }
  T await_resume() {
    waiting_ = false;
    if (task_.frame_)
      return task_.frame_.promise().take();
    if constexpr (std::is_void_v<T>) {
      if (task_.operation_)
        task_.operation_->outcome().value();
    } else {
      return std::move(task_.operation_->outcome()).value();
    }
  }

private:
  task task_;
  bool waiting_ = false;
};

namespace detail {

template <class T>
task<T> task_promise<T>::get_return_object() noexcept {
  return task<T>{std::coroutine_handle<task_promise>::from_promise(*this)};
}
inline task<void> task_promise<void>::get_return_object() noexcept {
  return task<void>{std::coroutine_handle<task_promise>::from_promise(*this)};
}

/// Resumes `frame` for the first time as a run of its own: inside a turn it does not hold the gate while it waits.
void start_detached(std::coroutine_handle<> frame);

/// Starts a coroutine task; `done(result<T>)` is called when it has ended, on whatever thread that is.
template <class T, class F>
void start_coroutine(task<T> started, F done) {
  struct owner : pooled {
    owner(std::coroutine_handle<task_promise<T>> frame, F&& done) : frame(frame), done(std::move(done)) {}
    std::coroutine_handle<task_promise<T>> frame;
    F done;
  };
  auto frame = started.release_frame();
  auto* self = new owner{frame, std::move(done)};
  frame.promise().ended_context = self;
  frame.promise().ended = [](void* context) noexcept {
    std::unique_ptr<owner> own{static_cast<owner*>(context)};
    auto outcome = [&]() -> result<T> {
      try {
        if constexpr (std::is_void_v<T>) {
          own->frame.promise().take();
          return {};
        } else {
          return own->frame.promise().take();
        }
      } catch (...) {
        return current_exception_as_result<T>();
      }
    }();
    own->frame.destroy();
    own->done(std::move(outcome));
  };
  start_detached(frame);
}

/// Runs a callback of the application; what it throws is recorded, not propagated.
void run_application_callback(unique_function<void()> callback) noexcept;

[[noreturn]] void throw_blocking_wait_in_runtime_context();

/// One result handed from the thread that decided it to the one that waits.
template <class T>
class waiting_place {
public:
  void put(result<T> outcome) {
    std::lock_guard guard{mutex_};
    outcome_.emplace(std::move(outcome));
    arrived_.notify_one();
  }
  result<T> take() {
    std::unique_lock lock{mutex_};
    arrived_.wait(lock, [this] { return outcome_.has_value(); });
    return std::move(*outcome_);
  }

private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::optional<result<T>> outcome_;
};

template <class T>
task<result<T>> result_of(task<T> awaited) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(awaited);
      co_return result<void>{};
    } else {
      co_return result<T>{co_await std::move(awaited)};
    }
  } catch (...) {
    co_return current_exception_as_result<T>();
  }
}

template <class T>
task<T> make_ready_task(result<T> outcome) {
  auto done = new_counted<operation<T>>();
  done->set(std::move(outcome));
  return task<T>{std::move(done)};
}

} // namespace detail

template <class T>
template <class F>
void task<T>::then(F callback) && {
  if constexpr (std::is_void_v<T>)
    if (!operation_ && !frame_) {
      auto ended = detail::new_counted<detail::operation<void>>();
      if (dispatcher_ != nullptr)
        ended->dispatcher = *dispatcher_;
      ended->set(result<void>{});
      operation_ = std::move(ended);
    }
  if (operation_) {
    auto* waited = operation_.get();
    waited->when_done([held = std::move(operation_), callback = std::move(callback)]() mutable {
      callback(std::move(held->outcome()));
    });
  } else {
    detail::start_coroutine(std::move(*this), [callback = std::move(callback)](result<T> outcome) mutable {
      detail::run_application_callback([&] { callback(std::move(outcome)); });
    });
  }
}

/// The same task with its end as a value: never throws when awaited.
template <class T>
task<result<T>> as_result(task<T> awaited) {
  return detail::result_of(std::move(awaited));
}

namespace detail {

/// As `as_result`, for `co_await` on the spot: needs no coroutine of its own.
template <class T>
class outcome_of {
public:
  explicit outcome_of(task<T> awaited) noexcept : inner_(std::move(awaited)) {}
  bool await_ready() const noexcept { return inner_.await_ready(); }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> h) noexcept { return inner_.await_suspend(h); }
  result<T> await_resume() noexcept {
    try {
      if constexpr (std::is_void_v<T>) {
        inner_.await_resume();
        return {};
      } else {
        return inner_.await_resume();
      }
    } catch (...) {
      return current_exception_as_result<T>();
    }
  }

private:
  typename task<T>::awaiter inner_;
};

} // namespace detail

/// Blocks the calling application thread until the task has ended. Throws `operation_failed`, `operation_cancelled`, or
/// what the coroutine threw as `operation_failed(internal_failure)`. Inside a turn, a callback or a worker it throws
/// `operation_failed(invalid_operation)` at once.
template <class T>
T sync_wait(task<T> awaited) {
  if (detail::in_runtime_context())
    detail::throw_blocking_wait_in_runtime_context();
  if constexpr (std::is_void_v<T>)
    if (!awaited.operation() && !awaited.frame())
      return;
  detail::waiting_place<T> place;
  if (auto held = awaited.operation())
    held->when_done([&place, held] { place.put(std::move(held->outcome())); }, true);
  else
    detail::start_coroutine(std::move(awaited), [&place](result<T> outcome) { place.put(std::move(outcome)); });
  auto outcome = place.take();
  if constexpr (std::is_void_v<T>)
    outcome.value();
  else
    return std::move(outcome).value();
}

} // namespace zlink
