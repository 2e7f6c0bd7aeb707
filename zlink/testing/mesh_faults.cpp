// What a test does to hosts, network and stores.
#include "zlink/messaging/mesh_links.hpp"
#include "zlink/testing/mesh_state.hpp"

#include <stdexcept>

namespace zlink::testing {

mesh::machine& mesh::at(std::size_t index) const {
  if (index >= state_->machines.size())
    throw std::out_of_range{"the mesh has hosts 0 to " + std::to_string(state_->machines.size() - 1) + ", not "
                            + std::to_string(index)};
  return *state_->machines[index];
}

std::size_t mesh::size() const noexcept { return state_->machines.size(); }

zlink::host& mesh::host(std::size_t index) { return *at(index).host; }

caf::actor_system& mesh::system() noexcept { return state_->world.system(); }

const embedded_store& mesh::store() const noexcept { return state_->store; }

std::size_t mesh::owner_of(std::string_view spot_id) {
  std::vector<std::size_t> owners;
  for (std::size_t i = 0; i < size(); ++i) {
    const auto& one = at(i);
    if (one.dead)
      continue;
    const auto spot = one.runtime().objects.find(spot_id);
    if (spot && spot->open() && !spot->fenced() && one.runtime().domain.admits(state_->world.now()))
      owners.push_back(i);
  }
  if (owners.size() != 1)
    throw std::logic_error{"spot \"" + std::string{spot_id} + "\" is at " + std::to_string(owners.size())
                           + " hosts; owner_of needs exactly one"};
  return owners.front();
}

// -- hosts ----------------------------------------------------------------------------------------------------------

void mesh::kill(std::size_t index) {
  auto& one = at(index);
  one.dead = true;
  one.stores->cut = true;
  state_->world.suspend(one.id);
  state_->network.freeze(one.name);
  state_->network.remove(one.name);
}

void mesh::restart(std::size_t index) {
  if (!at(index).dead)
    throw std::logic_error{"only a host that was killed can be replaced"};
  auto& place = state_->machines[index];
  state_->graveyard.push_back(std::exchange(place, make_machine(index)));
  state_->registration(*place->host, index);
  bring_up({place.get()});
}

void mesh::freeze(std::size_t index) {
  auto& one = at(index);
  one.frozen = true;
  state_->world.suspend(one.id);
  state_->network.freeze(one.name);
}

void mesh::thaw(std::size_t index) {
  auto& one = at(index);
  if (!std::exchange(one.frozen, false) || one.dead)
    return;
  state_->world.resume(one.id);
  state_->network.thaw(one.name);
}

void mesh::occupy_handlers(std::size_t index) {
  constexpr auto nowhere_else = static_cast<machine_id>(-2); // a machine that stands still
  state_->world.suspend(nowhere_else);
  state_->world.add_domain(at(index).runtime().domain, nowhere_else);
}

void mesh::free_handlers(std::size_t index) { state_->world.add_domain(at(index).runtime().domain, at(index).id); }

void mesh::shift_wall(std::size_t index, std::chrono::nanoseconds by) { at(index).time->shift_wall(by); }

// -- network and stores ---------------------------------------------------------------------------------------------

void mesh::partition(const std::vector<std::size_t>& some, const std::vector<std::size_t>& others) {
  for (const auto a : some)
    for (const auto b : others) {
      state_->network.cut(at(a).name, at(b).name);
      state_->network.lose_connections(at(a).name, at(b).name);
    }
}

void mesh::mute(std::size_t from, std::size_t to) { state_->network.cut_one_way(at(from).name, at(to).name); }

void mesh::lose_links(std::size_t a, std::size_t b) { state_->network.lose_connections(at(a).name, at(b).name); }

void mesh::cut_store(std::size_t index) { at(index).stores->cut = true; }

void mesh::heal() {
  state_->network.heal_all();
  for (const auto& one : state_->machines)
    one->stores->cut = one->dead;
}

store_faults& mesh::faults(std::size_t index) { return *at(index).faults; }

} // namespace zlink::testing
