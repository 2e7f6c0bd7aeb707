#include "zlink/testing/mesh.hpp"

#include "zlink/messaging/mesh_links.hpp"
#include "zlink/testing/mesh_state.hpp"

#include <algorithm>
#include <iostream>
#include <stdexcept>

namespace zlink::testing {

// -- life -----------------------------------------------------------------------------------------------------------

mesh::mesh(std::size_t hosts) : mesh(mesh_options{.hosts = hosts}) {}

mesh::mesh(mesh_options options) : state_(std::make_unique<state>(std::move(options))) {
  if (state_->options.hosts == 0)
    throw std::invalid_argument{"a mesh has one host at least"};
  for (std::size_t i = 0; i < state_->options.hosts; ++i)
    state_->machines.push_back(make_machine(i));
}

mesh::~mesh() noexcept(false) {
  const bool another_on_its_way = std::uncaught_exceptions() != 0;
  try {
    finish();
  } catch (const std::exception& complaint) {
    if (state_->abandoned)
      static_cast<void>(state_.release()); // it is still in use by what did not end
    if (!another_on_its_way)
      throw;
    std::cerr << "zlink::testing::mesh: " << complaint.what() << '\n';
  }
}

std::unique_ptr<mesh::machine> mesh::make_machine(std::size_t index) {
  auto& s = *state_;
  auto made = std::make_unique<machine>();
  made->id = s.ids.size();
  made->name = "host-" + std::to_string(index) + (made->id == index ? "" : "." + std::to_string(made->id));
  s.ids.emplace(made->name, made->id);
  made->time = std::make_shared<virtual_clock>(s.world.time());
  made->stores = std::make_shared<store_path>(s.world, s.options.max_store_delay);
  host_options options;
  options.time = made->time;
  options.random = std::make_shared<seeded_random>(s.seed, made->id);
  options.environment = s.world.make_environment(made->id);
  options.transport = [this, name = made->name](caf::actor_system&, const std::string&) {
    return state_->network.make_transport(name);
  };
  if (s.options.adjust)
    s.options.adjust(index, options);
  made->host = std::make_unique<zlink::host>(s.world.system(), std::move(options));
  made->host->use_location_store(
    std::make_shared<faulty_location_store>(make_remote(s.store.location(), made->stores), made->faults));
  made->host->use_relocation_store(
    std::make_shared<faulty_relocation_store>(make_remote(s.store.relocation(), made->stores), made->faults));
  s.world.add_domain(made->runtime().domain, made->id);
  return made;
}

void mesh::start_all(std::function<void(zlink::host&, std::size_t)> registration) {
  auto& s = *state_;
  if (s.registration)
    throw std::logic_error{"the hosts of a mesh are started once"};
  s.registration = std::move(registration);
  std::vector<machine*> all;
  for (std::size_t i = 0; i < s.machines.size(); ++i) {
    s.registration(*s.machines[i]->host, i);
    all.push_back(s.machines[i].get());
  }
  bring_up(all);
  drive([this] { return all_connected(); }, "every host to know all others");
}

void mesh::bring_up(const std::vector<machine*>& started) {
  std::vector<std::shared_ptr<task_end<void>>> ends;
  for (auto* one : started) {
    ends.push_back(start_watched(one->runtime().start()));
    one->started = true;
  }
  drive([&] { return std::ranges::all_of(ends, [](const auto& end) { return end->ended(); }); }, "the hosts to start");
  for (std::size_t i = 0; i < ends.size(); ++i)
    if (ends[i]->failure) {
      if (const auto& mistakes = started[i]->runtime().start_failure)
        throw configuration_error{*mistakes};
      std::rethrow_exception(ends[i]->failure);
    }
}

bool mesh::all_connected() const {
  const auto& machines = state_->machines;
  for (const auto& one : machines)
    for (const auto& node : one->runtime().nodes) {
      const auto has_it = [&](const auto& other) { return other->runtime().find_node(node->name()) != nullptr; };
      const auto members = static_cast<std::size_t>(std::ranges::count_if(machines, has_it));
      if (const auto& links = node->runtime().links; links && links->ready_count() < members - 1)
        return false;
    }
  return true;
}

void mesh::finish() {
  auto& s = *state_;
  if (std::exchange(s.finished, true))
    return;
  for (auto* one : s.everyone())
    one->runtime().moving.on_step = nullptr; // what it wrote to is gone by now
  std::vector<std::string> complaints;
  try {
    shut_down(complaints);
  } catch (const std::exception& what) {
    complaints.push_back(what.what());
  }
  if (complaints.empty())
    destroy_hosts(complaints);
  else
    s.abandoned = true; // what has not ended cannot be destroyed
  if (complaints.empty())
    return;
  std::string text = "after the hosts of the mesh have ended (seed " + std::to_string(s.seed) + "):";
  for (const auto& one : complaints)
    text += "\n  " + one;
  throw std::logic_error{text};
}

/// In a world without faults, except that the dead stay alone: they end like the others, with nobody to talk to.
void mesh::shut_down(std::vector<std::string>& complaints) {
  auto& s = *state_;
  heal();
  std::vector<std::pair<machine*, std::shared_ptr<task_end<shutdown_result>>>> ends;
  auto limit = std::chrono::milliseconds{std::chrono::minutes{1}};
  for (auto* one : s.everyone()) {
    one->stores->cut = false; // what the dead had asked is answered at last: they cannot end without
    one->faults->clear_script();
    one->faults->set_rule({});
    one->faults->release_all();
    if (!one->dead)
      s.network.thaw(one->name);
    s.world.resume(one->id);
    limit = std::max(limit, one->runtime().options.shutdown_deadline + std::chrono::minutes{1});
    if (one->started)
      ends.emplace_back(one, start_watched(one->host->shutdown()));
  }
  const auto ended = [&] { return std::ranges::all_of(ends, [](const auto& end) { return end.second->ended(); }); };
  if (!s.world.run_until(ended, s.world.now() + limit))
    for (const auto& [one, end] : ends)
      if (!end->ended())
        complaints.push_back(one->name + " does not shut down; it holds "
                             + std::to_string(one->runtime().objects.size()) + " objects");
  s.world.drain();
}

void mesh::destroy_hosts(std::vector<std::string>& complaints) {
  auto& s = *state_;
  for (auto* one : s.everyone())
    if (const auto objects = one->runtime().objects.size(); objects != 0)
      complaints.push_back(one->name + " has ended with " + std::to_string(objects) + " objects");
  s.world.drop_deliveries();
  for (auto* one : s.everyone())
    one->host = nullptr;
  s.world.drain();
  s.world.drop_deliveries();
  if (const auto records = detail::live_records() - s.records_before; records != 0)
    complaints.push_back(std::to_string(records) + " messages were never released (M-46)");
}

// -- driving --------------------------------------------------------------------------------------------------------

void mesh::fail(const std::string& what) const {
  const auto& s = *state_;
  std::string text = "nothing left to run, and still waiting for: " + what + "\n  seed " + std::to_string(s.seed) + "\n"
                     + s.world.describe();
  for (const auto& one : s.machines) {
    const auto status = one->host->status();
    text += "\n  " + one->name + " is " + (one->dead ? "killed" : one->frozen ? "frozen" : to_string(status.state));
    text +=
      ", has " + std::to_string(status.spots) + " spots and " + std::to_string(status.operations) + " calls under way";
    if (one->stores->cut)
      text += ", is cut off from its store";
    if (const auto held = one->faults->held(); held != 0)
      text += ", waits for " + std::to_string(held) + " held store calls";
  }
  throw stalled{text};
}

void mesh::drive(const std::function<bool()>& done, const std::string& what) {
  if (detail::in_runtime_context())
    throw std::logic_error{"a mesh is driven from outside of handlers, callbacks and workers"};
  auto& world = state_->world;
  if (!world.run_until(done, world.now() + state_->options.patience))
    fail(what);
}

void mesh::run_until(const std::function<bool()>& done) { drive(done, "a condition of the test"); }

void mesh::run_until_idle() {
  auto& world = state_->world;
  if (!world.settle(world.now() + state_->options.patience))
    fail("all deliveries to end");
}

void mesh::advance(std::chrono::nanoseconds by) {
  if (by < std::chrono::nanoseconds::zero())
    throw std::invalid_argument{"time does not go back"};
  state_->world.run_to(state_->world.now() + by);
}

void mesh::jump(std::chrono::nanoseconds by) {
  if (by < std::chrono::nanoseconds::zero())
    throw std::invalid_argument{"time does not go back"};
  state_->world.jump(by);
}

std::chrono::nanoseconds mesh::elapsed() const noexcept { return state_->world.now() - virtual_time{}.now; }

std::uint64_t mesh::seed() const noexcept { return state_->seed; }

std::uint64_t mesh::trace_hash() const noexcept { return state_->world.trace_hash(); }

} // namespace zlink::testing
