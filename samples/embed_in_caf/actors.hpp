// The actors of the program as it was before it had Spots. Nothing in here knows of them.
#pragma once

#include <caf/actor.hpp>
#include <caf/behavior.hpp>
#include <caf/fwd.hpp>

#include <string>
#include <vector>

/// Turns the heating on below 19.5 and off above 20.5 degrees.
caf::behavior thermostat(caf::event_based_actor* self);

/// Reports its readings to `target`, one after the other, prints the answers and ends.
caf::behavior sensor(caf::event_based_actor* self, std::string room, caf::actor target, std::vector<double> readings);

/// Works for three strokes.
caf::behavior pump(caf::event_based_actor* self);
