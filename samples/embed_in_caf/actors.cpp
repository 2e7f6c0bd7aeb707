#include "actors.hpp"

#include "climate_packets.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>

#include <zlink/zlink.hpp>

#include <chrono>
#include <cstdint>
#include <iostream>

using namespace std::chrono_literals;

caf::behavior thermostat(caf::event_based_actor*) {
  return {
    [on = false, readings = std::uint64_t{0}](const reading& m) mutable {
      on = on ? m.celsius <= 20.5 : m.celsius < 19.5;
      return heating{on, ++readings};
    },
  };
}

namespace {

void report_next(caf::event_based_actor* self, std::string room, caf::actor target, std::vector<double> readings) {
  if (readings.empty())
    return self->quit();
  const auto celsius = readings.front();
  readings.erase(readings.begin());
  self->request(target, 5s, reading{celsius})
    .then(
      [=](const heating& answer) {
        std::cout << room << ": " << celsius << " degrees, heating " << (answer.on ? "on" : "off") << ", reading no. "
                  << answer.readings << '\n';
        report_next(self, room, target, readings);
      },
      [=](const caf::error& why) {
        std::cerr << room << ": " << self->system().render(why) << '\n';
        self->quit(why);
      });
}

} // namespace

caf::behavior sensor(caf::event_based_actor* self, std::string room, caf::actor target, std::vector<double> readings) {
  report_next(self, std::move(room), std::move(target), std::move(readings));
  return {[](const heating&) {}}; // a behaviour keeps it alive until the last answer
}

caf::behavior pump(caf::event_based_actor* self) {
  return {
    [self, strokes = 0](const pump_stroke&) mutable {
      if (++strokes == 3)
        self->quit(caf::make_error(caf::sec::runtime_error, "worn out"));
    },
  };
}
