// Work beside the turn: CPU bodies on the host's worker pool, I/O bodies as tasks.
#pragma once

#include "zlink/calls.hpp"
#include "zlink/execution/turn.hpp"
#include "zlink/task.hpp"

#include <chrono>
#include <optional>
#include <stop_token>

namespace zlink {

namespace detail {
class spot_object;

/// Starts a body and completes the operation in the caller's turn; not typed by the result.
struct worker_start {
  counted_ptr<operation_base> operation;
  std::stop_source stop;
  /// Runs the body and leaves its result or failure in the payload. On a pool thread.
  unique_function<void(std::stop_token, payload&)> body;
  /// I/O: begins the body on the pool's dispatcher and reports later; null for a CPU body.
  unique_function<void(std::stop_token, unique_function<void(payload)>)> begin;
  std::optional<std::chrono::milliseconds> timeout;
};
void start_worker(spot_object& object, worker_start start, turn_use use, std::stop_token cancel, bool used_before);
} // namespace detail

/// Starts nothing before a terminal; single use. Only inside a turn of its object.
template <class T>
class worker_call {
public:
  using body_type = unique_function<void(std::stop_token, detail::payload&)>;

  worker_call(worker_call&&) noexcept = default;
  worker_call& operator=(worker_call&&) noexcept = default;

  /// Covers queueing too; default is the mesh's request timeout. Throws
  /// `std::invalid_argument` unless it is 1 ms to INT_MAX ms after rounding up.
  worker_call& timeout(time_span limit) & {
    start_.timeout = detail::check_timeout(limit);
    return *this;
  }
  worker_call&& timeout(time_span limit) && { return std::move(timeout(limit)); }

  /// Keeps the turn until the continuation has ended.
  task<T> submit(std::stop_token cancel = {}) { return start(detail::turn_use::submit, std::move(cancel)); }
  /// Gives the shared gate away meanwhile for where that is allowed.
  task<T> yield(std::stop_token cancel = {}) { return start(detail::turn_use::yield, std::move(cancel)); }

  // -- for the layer ---------------------------------------------------------------------------------------------------
  worker_call(detail::spot_object& object, detail::worker_start start) noexcept
    : object_(&object), start_(std::move(start)) {}

private:
  task<T> start(detail::turn_use use, std::stop_token cancel) {
    auto operation = detail::new_counted<detail::operation<T>>();
    start_.operation = operation;
    const bool used_before = std::exchange(used_, true);
    detail::start_worker(*object_, std::move(start_), use, std::move(cancel), used_before);
    return task<T>{std::move(operation)};
  }

  detail::spot_object* object_;
  detail::worker_start start_;
  bool used_ = false;
};

} // namespace zlink
