// Who waits until the links of a node are as he wants them.
#pragma once

#include "zlink/execution/operation.hpp"
#include "zlink/task.hpp"
#include "zlink/unique_function.hpp"

#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace zlink::detail {

class host_runtime;

/// Any thread.
class link_waits {
public:
  explicit link_waits(host_runtime& host) noexcept : host_(host) {}

  /// Ends when `holds()`, which is asked now and whenever `look()` is called, or with its caller's turn. `verb` and `subject`
  /// name it in errors.
  task<void> until(const char* verb, std::string subject, unique_function<bool()> holds, std::stop_token cancel);
  /// Something has changed.
  void look();
  /// Nothing will change any more: that is the end of all waits, also of those that come later.
  void end(error why);

private:
  struct waiter {
    unique_function<bool()> holds;
    counted_ptr<operation<void>> ended;
    reply_route route; ///< of a caller inside a turn

    /// Nothing: what it waited for has come.
    void end(std::optional<error> why) const;
  };
  void cancel(operation_base& waiting);

  host_runtime& host_;
  std::mutex mutex_;
  std::vector<waiter> waiters_;
  std::optional<error> over_;
};

} // namespace zlink::detail
