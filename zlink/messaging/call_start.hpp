// What every terminal does before its message leaves: checks without effect, then entry, then launch.
#pragma once

#include "zlink/calls.hpp"
#include "zlink/execution/gate.hpp"
#include "zlink/execution/operation.hpp"
#include "zlink/messaging/submission.hpp"

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>

namespace zlink::detail {

class host_runtime;

/// Refusal of a terminal's `yield` where the caller is, or nothing.
std::optional<error> refuse_yield(turn_use use);

class call_start {
public:
  call_start(host_runtime& host, operation_base& operation, turn_use use, std::stop_token cancel);

  /// False: the operation has ended with the reason and nothing else happened.
  /// `only_ends`: also while the host drains.
  bool allowed(std::optional<error> mistake, bool needs_objects, bool only_ends = false);
  /// Registers the operation under the record's reply route, before anything is sent (M-131, X-148).
  /// `grace`: how much longer the operation itself waits for who has to end it, and knows why.
  void enter(record& r, const std::string& subject, std::chrono::milliseconds timeout,
             std::chrono::milliseconds grace = {});
  /// As `enter` for calls that send no record: workers. The route is where the end is to be reported.
  reply_route enter_operation(std::chrono::milliseconds timeout);
  /// The same up to a moment; `steady_time::max()`: as long as it takes, inside turns only.
  reply_route enter_until(steady_time due);
  /// Sends it, at once or when the host has a place for another operation.
  void launch(submission message, call_target target, std::string mesh);
  /// Runs `body` when the host has a place for another operation.
  void launch(unique_function<void()> body);

private:
  class waiting_launch;
  bool enter_at_once();

  host_runtime& host_;
  operation_base& operation_;
  turn_use use_;
  std::stop_token cancel_;
  gate* forbidden_ = nullptr;
};

} // namespace zlink::detail
