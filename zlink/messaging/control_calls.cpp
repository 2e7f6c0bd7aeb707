#include "zlink/messaging/control_calls.hpp"

#include "zlink/codec.hpp"
#include "zlink/messaging/control_frames.hpp"
#include "zlink/messaging/link_session.hpp"

namespace zlink::detail {

task<std::optional<bytes>> control_calls::ask(link_session& link, control_command command, operation_id operation,
                                                    bytes body, steady_time due) {
  auto ended = new_counted<zlink::detail::operation<std::optional<bytes>>>();
  ended->dispatcher = unit_.unit();
  open_[operation] = {&link, ended};
  const auto frame = encode(control_envelope{operation.high, operation.low, std::move(body)});
  link.send_control(static_cast<std::uint16_t>(command), frame);
  unit_.post_after(due - unit_.time().now(), [this, operation, ended] {
    const auto i = open_.find(operation);
    if (i == open_.end() || i->second.ended.get() != ended.get())
      return;
    open_.erase(i);
    ended->set(result<std::optional<bytes>>{std::nullopt});
  });
  return task<std::optional<bytes>>{std::move(ended)};
}

void control_calls::answered(operation_id operation, bytes body) {
  const auto i = open_.find(operation);
  if (i == open_.end())
    return;
  auto ended = std::move(i->second.ended);
  open_.erase(i);
  ended->set(result<std::optional<bytes>>{std::move(body)});
}

void control_calls::link_lost(link_session& link) {
  for (auto i = open_.begin(); i != open_.end();) {
    if (i->second.link != &link) {
      ++i;
      continue;
    }
    auto ended = std::move(i->second.ended);
    i = open_.erase(i);
    ended->set(result<std::optional<bytes>>{std::nullopt});
  }
}

} // namespace zlink::detail
