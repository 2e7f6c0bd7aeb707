// A CAF handle that stands for the address of a Spot (`host.spot_actor`).
#pragma once

#include "zlink/host.hpp"

#include <caf/actor.hpp>
#include <caf/fwd.hpp>

#include <string>

namespace zlink::detail {

class host_runtime;

/// Messages to the actor become sends and requests of the host; after the host has ended requests get `shutting_down`.
caf::actor make_address_actor(host_runtime& host, std::string spot_id, spot_actor_options options);

/// Adds CAF's remoting to the configuration of a host's own actor system; defined beside the link that uses it.
void load_remoting(caf::actor_system_config& config);

} // namespace zlink::detail
