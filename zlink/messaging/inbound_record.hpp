// From a message of another node to a record of this one.
#pragma once

#include "zlink/clock.hpp"
#include "zlink/execution/record.hpp"
#include "zlink/messaging/wire.hpp"

namespace zlink::detail {

/// A send or request whose body is an `encoded_value`, its deadline in this node's time, its reply route still empty.
/// Throws `decode_error` for malformed metadata (M-38).
record* make_inbound_record(const message_frame& message, steady_time arrived);

} // namespace zlink::detail
