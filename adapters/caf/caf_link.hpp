// Links over CAF remoting, the default: one published actor for each listening node, one CAF message for each batch.
#pragma once

#include "zlink/link.hpp"

#include <memory>

namespace caf {
class actor_system;
}

namespace zlink::detail {

/// A transport of scheme "caf". `system` must have the middleman loaded and `middleman.workers` 0, so that nothing
/// received waits for CAF's workers; it outlives the transport, which is stopped before the system ends. Events and
/// handlers run on the middleman's thread.
///
/// Only loopback is used without protection. Any other address, listened to or connected to, needs CAF's OpenSSL module
/// with certificate, key and authority of the peers configured; without them `listen` throws `configuration_error` and
/// `connect` ends in `not_configured`.
///
/// Connecting to a host that does not answer at all keeps later connects of the same system waiting until CAF gives up;
/// each still ends in `unavailable` after its own time.
std::shared_ptr<link_transport> make_caf_link(caf::actor_system& system);

} // namespace zlink::detail
