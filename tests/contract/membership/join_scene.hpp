// One node with a room and somebody in the hall.
#pragma once

#include "tests/contract/membership/people.hpp"

namespace membership_test {

/// One node, one room "r" and Ada in the hall.
struct scene {
  explicit scene(std::size_t hosts = 1, std::uint64_t seed = 1, node_settings wanted = {})
    : net({.hosts = hosts, .seed = seed, .max_store_delay = hosts > 1 ? 4ms : 0ms}) {
    net.start(serve_all(on, wanted));
    ada = net.run(make_person(net.host(0), "ada"));
    here = host_of(ada.actor.node_rid);
    for (std::size_t i = 0; i < hosts; ++i)
      net.host(i).mesh("m").placement_weight(i == here ? 100 : 0);
    net.run_until_idle();
    room = open_room(net, "r");
    on.trace.clear();
  }
  std::size_t host_of(const std::string& rid) {
    for (std::size_t i = 0; i < net.size(); ++i)
      if (net.host(i).mesh("m").rid() == rid)
        return i;
    return 0;
  }

  stage on;
  mesh net;
  zlink::actor_create_result ada;
  zlink::spot_ref room;
  std::size_t here = 0;
};

} // namespace membership_test
