// Uses a header and a symbol of the installed library, and CAF as it comes with it.
#include <zlink/error.hpp>
#include <zlink/identity.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>

#include <iostream>

int main() {
  caf::actor_system_config config;
  caf::actor_system system{config};
  caf::scoped_actor self{system};
  const zlink::error refused{zlink::error_kind::rejected, "no room"};
  std::cout << zlink::to_string(refused) << '\n';
  return zlink::parse_spot_kind("user") == zlink::spot_kind::user && self->id() != 0 ? 0 : 1;
}
