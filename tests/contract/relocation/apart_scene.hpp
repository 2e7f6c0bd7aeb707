// A room on one host, and "ada" in the Entry Spot of another, or of the same.
#pragma once

#include "tests/contract/relocation/room_scene.hpp"

namespace relocation_test {

using words = std::vector<std::string>;

struct apart {
  apart(mesh& net, stage& on, bool together = false) {
    const table t{net, on, "r", {}};
    room = t.room;
    there = t.home;
    here = together ? there : (there + 1) % net.size();
    net.run(net.host(0).actors().create("ada", "player").submit());
    if (const auto at = home_of_player(net, "ada"); at != here) {
      REQUIRE(net.run(start_actor_move(net, "ada", at, here)).left);
      net.run_until([&] { return !player_lives(net, at, "ada") && player_lives(net, here, "ada"); });
    }
    net.run(say(net.host(0), "ada", "zero"));
    net.run_until_idle();
    on.trace.clear();
  }
  std::string room;
  std::size_t here = 0;
  std::size_t there = 0;
};

} // namespace relocation_test
