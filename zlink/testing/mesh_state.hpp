// What a mesh under test is made of.
#pragma once

#include "zlink/host/host_runtime.hpp"
#include "zlink/testing/mesh.hpp"
#include "zlink/testing/remote_store.hpp"
#include "zlink/testing/sim_network.hpp"

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zlink::testing {

/// One host and what it stands on.
struct mesh::machine {
  machine_id id = 0;
  std::string name;
  std::shared_ptr<virtual_clock> time;
  std::shared_ptr<store_faults> faults = std::make_shared<store_faults>();
  std::shared_ptr<store_path> stores;
  std::unique_ptr<zlink::host> host;
  bool started = false;
  bool dead = false;
  bool frozen = false;

  detail::host_runtime& runtime() const { return host->runtime(); }
};

struct mesh::state {
  mesh_options options;
  std::uint64_t seed;
  simulation world;
  sim_network network;
  embedded_store store;
  std::int64_t records_before = detail::live_records();
  std::map<std::string, machine_id> ids;           ///< by the machine's name in the network
  std::vector<std::unique_ptr<machine>> machines;  ///< in the places 0 to n-1
  std::vector<std::unique_ptr<machine>> graveyard; ///< killed and replaced
  std::function<void(zlink::host&, std::size_t)> registration;
  bool finished = false;
  bool abandoned = false; ///< something did not end

  explicit state(mesh_options given)
    : options(std::move(given)),
      seed(choose_seed(options.seed)),
      world(seed),
      network(hooks(), options.max_link_delay),
      store(std::make_shared<virtual_clock>(world.time())) {}

  static std::uint64_t choose_seed(std::uint64_t given) {
    const char* replayed = std::getenv("ZLINK_TEST_SEED");
    return replayed == nullptr || *replayed == '\0' ? given : std::strtoull(replayed, nullptr, 0);
  }
  sim_hooks hooks() {
    return {[this](auto job) { world.post(nowhere, std::move(job)); },
            [this](auto delay, auto job) { world.deliver_after(delay, std::move(job)); },
            [this] { return world.random(); },
            [this](const std::string& name, auto job) { world.post(ids.at(name), std::move(job)); },
            [this](auto delay, auto job) { world.call_after(delay, std::move(job)); }};
  }
  /// The living and the dead.
  std::vector<machine*> everyone() const {
    std::vector<machine*> all;
    for (const auto* group : {&machines, &graveyard})
      for (const auto& one : *group)
        all.push_back(one.get());
    return all;
  }
};

} // namespace zlink::testing
