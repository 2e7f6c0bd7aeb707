// Callbacks about Actors as steps of a Spot's or an Actor's lifecycle lane; their ends come to the infrastructure unit.
#pragma once

#include "zlink/execution/execution_object.hpp"
#include "zlink/execution/faults.hpp"
#include "zlink/execution/infrastructure.hpp"
#include "zlink/task.hpp"
#include "zlink/unique_function.hpp"

#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace zlink::detail {

template <class T>
class callback_step final : public lifecycle_step {
public:
  using call_type = unique_function<task<T>(execution_object&)>;
  callback_step(const char* name, call_type call, counted_ptr<operation<T>> ended)
    : name_(name), call_(std::move(call)), ended_(std::move(ended)) {}

  task<void> run(execution_object& object) override { return begin(object); }
  void ended(execution_object& object, std::exception_ptr failure) noexcept override {
    if (!failure) {
      ended_->set(std::move(*answer_));
      return;
    }
    note_failure(object, name_, failure, false);
    ended_->fail(error_in(failure));
  }

private:
  /// A coroutine also for what comes before the first suspension: everything that the application throws ends the step.
  task<void> begin(execution_object& object) {
    if constexpr (std::is_void_v<T>) {
      co_await call_(object);
      answer_.emplace();
    } else {
      auto answered = co_await call_(object);
      answer_.emplace(std::move(answered));
    }
  }
  static error error_in(const std::exception_ptr& failure) {
    try {
      std::rethrow_exception(failure);
    } catch (...) {
      return {error_kind::internal_failure, text_of_current_exception()};
    }
  }

  const char* name_;
  call_type call_;
  std::optional<result<T>> answer_;
  counted_ptr<operation<T>> ended_;
};

/// `call` begins the callback; an exception of the application is recorded, and fails the task with `internal_failure`
/// (J-83).
template <class T>
task<T> run_callback(execution_object& object, infrastructure& unit, const char* name,
                     unique_function<task<T>(execution_object&)> call) {
  auto ended = new_counted<operation<T>>();
  ended->dispatcher = unit.unit();
  object.submit_step(std::make_unique<callback_step<T>>(name, std::move(call), ended));
  return task<T>{std::move(ended)};
}

} // namespace zlink::detail
