// What sensors, thermostats and boilers say to each other. ZLINK_PACKET makes them messages of CAF as well.
#pragma once

#include <zlink/zlink.hpp>

#include <cstdint>
#include <string>

struct reading {
  double celsius = 0;
};

/// A thermostat's answer to a `reading`.
struct heating {
  bool on = false;
  std::uint64_t readings = 0; ///< that this thermostat has had so far
};

struct pump_stroke {};

/// Question for a boiler: answered once it has had to replace a pump.
struct next_repair {};
struct repair {
  std::uint64_t pumps = 0; ///< in use so far, the present one included
  std::string reason;
};

ZLINK_PACKET(reading, "climate.reading", celsius)
ZLINK_PACKET(heating, "climate.heating", on, readings)
ZLINK_PACKET(pump_stroke, "climate.pump_stroke")
ZLINK_PACKET(next_repair, "climate.next_repair")
ZLINK_PACKET(repair, "climate.repair", pumps, reason)
