#include "commands.hpp"
#include "member.hpp"
#include "reach.hpp"
#include "samples/shared/stop_signal.hpp"
#include "twin.hpp"

#include <iostream>

int serve(const options& chosen) {
  const stop_signal stop; // before any thread
  zlink::host host{settings_of(chosen)};
  auto& node = join(host, chosen);
  node.object_server().add_instance_spot_factory<twin>(twin::type, [](auto& factory) { factory.disable_relocation(); });
  serve_reach(node, host, plant);

  host.start(); // host.run() would do this and the rest; here it is told what happens
  std::cout << chosen.name << ": serves at " << node.endpoint() << " as " << node.rid() << std::endl;
  stop.await();
  std::cout << chosen.name << ": told to stop" << std::endl;
  const auto ended = zlink::sync_wait(host.shutdown());
  std::cout << chosen.name << ": " << to_string(ended.outcome) << std::endl;
  return ended.outcome == zlink::shutdown_outcome::stopped ? 0 : 1;
}
