#include "zlink/dispatch_error.hpp"

#include "zlink/identity.hpp"

namespace zlink {

namespace {

/// Names and causes may come from another node: what would begin a line of its own, move a terminal's cursor or is no
/// text is shown as "\x0a".
void append_printable(std::string& line, std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto end = detail::is_utf8(text) ? 0x100 : 0x80;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code >= 0x20 && code != 0x7f && code < end)
      line += c;
    else
      line.append("\\x").append({digits[code >> 4], digits[code & 0xf]});
  }
}

} // namespace

const char* to_string(dispatch_reason reason) noexcept {
  switch (reason) {
    case dispatch_reason::no_handler: return "no_handler";
    case dispatch_reason::decode_error: return "decode_error";
    case dispatch_reason::handler_exception: return "handler_exception";
    case dispatch_reason::invalid_frame: return "invalid_frame";
    case dispatch_reason::reply_path_missing: return "reply_path_missing";
    case dispatch_reason::unexpected_reply: return "unexpected_reply";
    case dispatch_reason::backpressure: return "backpressure";
    case dispatch_reason::stale_target: return "stale_target";
    case dispatch_reason::shutdown: return "shutdown";
  }
  return "unknown";
}

const char* to_string(dispatch_action action) noexcept {
  switch (action) {
    case dispatch_action::reply_error: return "reply_error";
    case dispatch_action::fail_caller: return "fail_caller";
    case dispatch_action::drop: return "drop";
  }
  return "unknown";
}

std::string to_string(const dispatch_error& what) {
  std::string line = "zlink: ";
  line += to_string(what.reason);
  line += ' ';
  line += to_string(what.action);
  for (auto word : {what.surface, what.kind})
    line.append(word.empty() ? "" : " ").append(word);
  const auto field = [&line](std::string_view key, std::string_view value) {
    if (value.empty())
      return;
    line.append(" ").append(key).append("=");
    append_printable(line, value);
  };
  field("mesh", what.mesh_name);
  field("spot", what.spot_id);
  field("what", what.subject);
  if (!what.text.empty()) {
    line += ": ";
    append_printable(line, what.text);
  }
  return line;
}

} // namespace zlink
