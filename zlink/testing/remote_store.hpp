// Stores as a host sees them: far away. Calls and answers travel, a seed decides how long, and a host may be cut off.
#pragma once

#include "zlink/location_store.hpp"
#include "zlink/testing/simulation.hpp"

#include <memory>

namespace zlink::testing {

/// One host's way to its stores. Outlives them.
struct store_path {
  store_path(simulation& of, steady_duration longest) : world(of), max_delay(longest) {}
  simulation& world;
  steady_duration max_delay{};
  bool cut = false; ///< what is asked or answered now fails as unclear
};

std::shared_ptr<location_store> make_remote(std::shared_ptr<location_store> real, std::shared_ptr<store_path> path);
std::shared_ptr<relocation_store> make_remote(std::shared_ptr<relocation_store> real, std::shared_ptr<store_path> path);

} // namespace zlink::testing
