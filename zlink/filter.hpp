// What stands around the handlers of messages to a node or a channel (M-53 to M-56). Messages to Spots pass no filter.
#pragma once

#include "zlink/message_context.hpp"
#include "zlink/task.hpp"

#include <cstddef>
#include <cstdint>

namespace zlink {

namespace detail {
class filter_chain;
}

/// What a filter stands before.
enum class dispatch_kind : std::uint8_t { node_send = 0, node_request = 1, channel_send = 2, channel_request = 3 };
/// "node_send" and so on.
const char* to_string(dispatch_kind kind) noexcept;

/// What a filter may know: the message as its handler sees it, and the kind of dispatch (M-56). Valid until the filter's
/// task has ended.
class filter_context {
public:
  const message_context& message() const noexcept { return *message_; }
  dispatch_kind kind() const noexcept { return kind_; }

  // -- for the layer ---------------------------------------------------------------------------------------------------
  filter_context(const message_context& message, dispatch_kind kind) noexcept : message_(&message), kind_(kind) {}
  filter_context(const filter_context&) = delete;
  filter_context& operator=(const filter_context&) = delete;

private:
  const message_context* message_;
  dispatch_kind kind_;
};

/// What comes behind a filter: the next one, or the handler.
class filter_next {
public:
  /// Runs it; throws, when awaited, what it throws. Once: a second call's task fails with `invalid_operation` and runs
  /// nothing (M-54).
  task<void> operator()();

  // -- for the layer ---------------------------------------------------------------------------------------------------
  filter_next(detail::filter_chain& chain, std::size_t place) noexcept : chain_(&chain), place_(place) {}

private:
  detail::filter_chain* chain_;
  std::size_t place_;
  bool used_ = false;
};

/// Made for each dispatch, destroyed at its end.
class message_filter {
public:
  message_filter() = default;
  message_filter(const message_filter&) = delete;
  message_filter& operator=(const message_filter&) = delete;
  virtual ~message_filter() = default;

  /// Awaits `next()` to let the message pass. Without that the handler does not run: a send ends silently, a request in
  /// `rejected` (M-55). What it throws before the handler has run is a fault, as in a handler; afterwards the end of the
  /// handler counts.
  virtual task<void> apply(const filter_context& context, filter_next& next) = 0;
};

} // namespace zlink
