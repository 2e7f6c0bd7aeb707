// The fixture's network, under the names that tests of this project use.
#pragma once

#include "zlink/testing/sim_network.hpp"

namespace zlink::test {

using testing::sim_hooks;
using testing::sim_network;

} // namespace zlink::test
