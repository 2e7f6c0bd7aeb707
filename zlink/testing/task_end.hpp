// How a task ended, for somebody who does not await it.
#pragma once

#include "zlink/task.hpp"

#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace zlink::testing {

/// How a task ended. Shared, since a run that is given up leaves the task behind.
template <class T>
struct task_end {
  std::optional<std::conditional_t<std::is_void_v<T>, bool, T>> value;
  std::exception_ptr failure;
  bool ended() const noexcept { return value || failure; }
};

template <class T>
task<void> watch_end(task<T> watched, std::shared_ptr<task_end<T>> end) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(watched);
      end->value = true;
    } else {
      auto value = co_await std::move(watched);
      end->value.emplace(std::move(value));
    }
  } catch (...) {
    end->failure = std::current_exception();
  }
}

/// Starts the task, if it is a coroutine; the end is filled in when it has ended.
template <class T>
std::shared_ptr<task_end<T>> start_watched(task<T> watched) {
  auto end = std::make_shared<task_end<T>>();
  detail::start_coroutine(watch_end(std::move(watched), end), [](result<void>) {});
  return end;
}

} // namespace zlink::testing
