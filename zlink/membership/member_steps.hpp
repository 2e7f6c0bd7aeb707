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

/// What the application throws before there is a task fails the task.
template <class T, class Begin>
task<T> begin_callback(Begin begin) {
  try {
    return begin();
  } catch (...) {
    return [](std::exception_ptr what) -> task<T> {
      std::rethrow_exception(std::move(what));
      co_return T(); // never
    }(std::current_exception());
  }
}

/// `well`: what the layer does in the same turn when it has ended well, before anybody hears of that.
template <class T>
class callback_step final : public lifecycle_step {
public:
  using call_type = unique_function<task<T>(execution_object&)>;
  using well_type = unique_function<void(execution_object&)>;
  callback_step(const char* name, call_type call, counted_ptr<operation<T>> ended, well_type well)
    : name_(name), call_(std::move(call)), ended_(std::move(ended)), well_(std::move(well)) {}

  task<void> run(execution_object& object) override {
    auto asked = begin_callback<T>([&] { return call_(object); });
    if constexpr (std::is_void_v<T>) {
      answer_.emplace();
      return asked;
    } else {
      return keep_answer(std::move(asked));
    }
  }
  void ended(execution_object& object, std::exception_ptr failure) noexcept override {
    if (failure) {
      note_failure(object, name_, failure, false);
      ended_->fail(error_in(failure));
      return;
    }
    if (well_)
      well_(object);
    ended_->set(std::move(*answer_));
  }

private:
  task<void> keep_answer(task<T> asked)
    requires(!std::is_void_v<T>)
  {
    answer_.emplace(co_await std::move(asked));
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
  well_type well_;
};

/// `call` begins the callback; an exception of the application is recorded, and fails the task with `internal_failure`
/// (J-83).
template <class T>
task<T> run_callback(execution_object& object, infrastructure& unit, const char* name,
                     unique_function<task<T>(execution_object&)> call, unique_function<void(execution_object&)> well = {}) {
  auto ended = new_counted<operation<T>>();
  ended->dispatcher = unit.unit();
  object.submit_step(std::make_unique<callback_step<T>>(name, std::move(call), ended, std::move(well)));
  return task<T>{std::move(ended)};
}

} // namespace zlink::detail
