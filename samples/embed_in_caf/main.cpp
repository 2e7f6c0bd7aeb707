// A CAF program that had actors before it had Spots: its configuration, its caf_main and its actors are what they were.
#include "actors.hpp"
#include "climate_packets.hpp"
#include "spots.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exec_main.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>

#include <zlink/zlink.hpp>

#include <iostream>
#include <string>

namespace {

struct config : caf::actor_system_config {
  config() {
    zlink::configure(*this); // the one new line: settings that suit Spots, and the packets as CAF messages
    opt_group{custom_options_, "global"}.add(room, "room,r", "the room that is heated");
  }
  std::string room = "kitchen";
};

void register_spots(zlink::host& host) {
  host.add_mesh("building")
    .object_server()
    .add_instance_spot_factory<thermostat_spot>(thermostat_spot::type,
                                                [](auto& factory) { factory.disable_relocation(); })
    .add_instance_spot_factory<boiler_spot>(boiler_spot::type, [](auto& factory) { factory.disable_relocation(); });
}

/// As before: the sensor has an actor to talk to.
void with_an_actor(caf::actor_system& system, const std::string& room) {
  auto target = system.spawn(thermostat);
  caf::scoped_actor me{system};
  me->wait_for(system.spawn(sensor, room + " (actor)", target, std::vector<double>{19.0, 20.2, 20.8}));
  me->send_exit(target, caf::exit_reason::user_shutdown);
}

/// The same sensor, the same request; the handle stands for the address of a Spot that does not exist yet.
void with_a_spot(caf::actor_system& system, zlink::host& host, const std::string& room) {
  zlink::spot_actor_options wake;
  wake.instance_spot = thermostat_spot::type;
  caf::scoped_actor me{system};
  me->wait_for(system.spawn(sensor, room + " (Spot)", host.spot_actor("thermostat:" + room, wake),
                            std::vector<double>{19.0, 20.2, 20.8}));
  // A second handle for the same address, from anywhere in the mesh, meets the same object: it goes on counting.
  me->wait_for(
    system.spawn(sensor, room + " (Spot)", host.spot_actor("thermostat:" + room), std::vector<double>{18.5}));
}

/// A Spot whose pump wears out and is replaced.
void with_a_watched_actor(zlink::host& host, const std::string& room) {
  const auto boiler = "boiler:" + room;
  for (int i = 0; i < 3; ++i)
    host.spots().send_to_spot(boiler, pump_stroke{}).instance_spot(boiler_spot::type).submit();
  auto ask = host.spots().request_to_spot(boiler, next_repair{});
  ask.instance_spot(boiler_spot::type);
  const auto done = zlink::sync_wait(ask.submit<repair>());
  std::cout << "pump no. " << done.pumps << " is at work, the last one broke: " << done.reason << '\n';
}

void caf_main(caf::actor_system& system, const config& cfg) {
  with_an_actor(system, cfg.room);

  zlink::host host{system}; // borrows the system, and ends before it
  register_spots(host);
  host.start();
  with_a_spot(system, host, cfg.room);
  with_a_watched_actor(host, cfg.room);
}

} // namespace

CAF_MAIN(caf::io::middleman)
