// One process for each node and one for the replay itself, started and ended by this one.
#pragma once

#include "options.hpp"
#include "rolling.hpp"
#include "shared_mesh.hpp"

#include <functional>

/// Starts a Redis if the options name none and `chosen.nodes` node processes, runs `replay` in a process of its own, and
/// ends them all. With a `pace` each node in turn is emptied and replaced when the replay says so. Returns what `replay` returned, 1 if a node or the Redis ended too early, 128 and the number of the
/// signal if it was told to stop. Throws `std::runtime_error` if there is no Redis to start.
int run_with_node_processes(const options& chosen, rolling_pace* pace, const std::function<int(const shared_mesh&)>& replay);
