// What the layer tells the application's log about a message or callback that did not fare well (X-162, M-142).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace zlink {

/// Why (O-89).
enum class dispatch_reason : std::uint8_t {
  no_handler,
  decode_error,
  handler_exception,
  invalid_frame,
  reply_path_missing,
  unexpected_reply,
  backpressure,
  stale_target,
  shutdown,
};
const char* to_string(dispatch_reason reason) noexcept;

/// What became of it (O-89).
enum class dispatch_action : std::uint8_t {
  reply_error, ///< the caller gets an error as the reply
  fail_caller, ///< a caller of this host gets an error
  drop,        ///< nobody is told
};
const char* to_string(dispatch_action action) noexcept;

/// One failure. The views hold during the call only. Payload and metadata are never in it (O-92).
struct dispatch_error {
  dispatch_reason reason = dispatch_reason::handler_exception;
  dispatch_action action = dispatch_action::drop;
  std::string_view surface = {};   ///< "spot", "instance_spot" or "node"
  std::string_view kind = {};      ///< "send", "request", or "control" for ticks, callbacks and steps of the layer
  std::string_view mesh_name = {};
  std::string_view spot_id = {};   ///< empty for a node
  std::string_view subject = {};   ///< the packet's name, or which timer or callback
  std::string_view text = {};      ///< the cause, at most 256 bytes
};

/// One line without its end: "zlink: handler_exception drop instance_spot send mesh=m spot=x what=cart.add: text".
std::string to_string(const dispatch_error& what);

/// Called on the thread that noticed, also inside turns: must return soon. What it throws is dropped (O-115).
using dispatch_log = std::function<void(const dispatch_error&)>;

} // namespace zlink
