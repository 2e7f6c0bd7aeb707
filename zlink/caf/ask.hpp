// Asking a CAF actor from inside a turn (D-17): the answer comes through the gate's operation table, so that a handler that
// keeps its turn gets it too.
#pragma once

#include "zlink/execution/operation.hpp"

#include <caf/actor.hpp>
#include <caf/message.hpp>

#include <chrono>

namespace zlink::detail {

class execution_object;

/// Sends `question` to `whom`; `ended` ends with its answer, with `deadline_exceeded` after `timeout`, with `unavailable` if
/// the actor is gone, or with `internal_failure` and the platform code of the `caf::error` it answered. Throws
/// `std::invalid_argument` for a timeout out of range; outside of a turn of `object` it fails with `invalid_operation`.
void start_ask(execution_object& object, const caf::actor& whom, caf::message question, std::chrono::milliseconds timeout,
               counted_ptr<operation_base> ended);

} // namespace zlink::detail
