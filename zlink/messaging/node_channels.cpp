#include "zlink/messaging/node_channels.hpp"

#include "zlink/defaults.hpp"

#include <algorithm>

namespace zlink::detail {

node_channels::node_channels(execution_domain& domain, std::string mesh_name, std::shared_ptr<filter_makers> filters)
  : domain_(domain), mesh_name_(std::move(mesh_name)), filters_(std::move(filters)) {}

// -- its own ------------------------------------------------------------------------------------------------------------

void node_channels::add_client(std::string name) {
  if (const auto* there = find(name))
    throw configuration_error{"mesh \"" + mesh_name_ + "\": channel \"" + name + "\" is declared already, as "
                              + (there->server() ? "server" : "client") + "; a node is one of the two"};
  auto added = std::make_unique<channel_membership>();
  added->name = std::move(name);
  memberships_.push_back(std::move(added));
}

channel_membership& node_channels::add_server(std::string name) {
  add_client(std::move(name));
  auto& added = *memberships_.back();
  added.weight = defaults::channel_weight;
  added.handlers = std::make_unique<node_handlers>(domain_, mesh_name_, handler_surface::channel, filters_);
  return added;
}

const channel_membership* node_channels::find(std::string_view name) const noexcept {
  for (const auto& membership : memberships_)
    if (membership->name == name)
      return membership.get();
  return nullptr;
}

channel_membership* node_channels::find_own(std::string_view name) noexcept {
  return const_cast<channel_membership*>(find(name));
}

std::vector<link_channel> node_channels::announced() const {
  std::vector<link_channel> all;
  std::lock_guard guard{mutex_};
  for (const auto& membership : memberships_)
    all.push_back({membership->name, membership->server(), membership->weight});
  return all;
}

channel_state node_channels::state() const {
  channel_state told;
  std::lock_guard guard{mutex_};
  told.revision = revision_;
  told.draining = !selectable_;
  for (const auto& membership : memberships_)
    if (membership->server())
      told.channels.push_back({membership->name, membership->weight});
  return told;
}

std::uint64_t node_channels::revision() const {
  std::lock_guard guard{mutex_};
  return revision_;
}

void node_channels::set_weight(std::string_view name, std::uint32_t weight) {
  std::lock_guard guard{mutex_};
  find_own(name)->weight = weight;
  ++revision_;
}

void node_channels::be_selected(bool selectable) {
  std::lock_guard guard{mutex_};
  selectable_ = selectable;
  ++revision_;
}

bool node_channels::busy() const {
  return std::ranges::any_of(memberships_, [](const auto& m) { return m->server() && m->handlers->busy(); });
}

void node_channels::cut_short(const error& why) {
  for (auto& membership : memberships_)
    if (membership->server())
      membership->handlers->cut_short(why);
}

// -- peers ----------------------------------------------------------------------------------------------------------------

void node_channels::peer_ready(const link_identity& peer) {
  std::lock_guard guard{mutex_};
  auto& known = peers_[peer.rid];
  const auto before = std::exchange(known, {});
  known.ready = true;
  known.revision = peer.revision.value;
  for (const auto& channel : peer.channels)
    if (channel.server)
      known.weights.emplace(channel.name, channel.weight);
  update_rotations(before);
  update_rotations(known);
}

void node_channels::peer_changed(std::string_view rid, const channel_state& told) {
  std::lock_guard guard{mutex_};
  const auto i = peers_.find(rid);
  if (i == peers_.end() || told.revision < i->second.revision)
    return;
  auto& known = i->second;
  known.revision = told.revision;
  known.draining = told.draining;
  for (const auto& channel : told.channels)
    if (const auto weight = known.weights.find(channel.name); weight != known.weights.end()) // what it serves is fixed
      weight->second = channel.weight;
  update_rotations(known);
}

void node_channels::peer_gone(std::string_view rid) {
  std::lock_guard guard{mutex_};
  const auto i = peers_.find(rid);
  if (i == peers_.end())
    return;
  i->second.ready = false;
  update_rotations(i->second);
}

bool node_channels::was_served(std::string_view name) const {
  std::lock_guard guard{mutex_};
  return std::ranges::any_of(peers_, [name](const auto& p) { return !p.second.ready && p.second.weights.contains(name); });
}

void node_channels::update_rotations(const peer_state& changed) {
  for (const auto& [name, weight] : changed.weights)
    update_rotation(name);
}

/// Those that stay keep what they have saved up (M-97).
void node_channels::update_rotation(const std::string& name) {
  auto& known = rotations_[name];
  rotation next;
  for (const auto& [rid, peer] : peers_) {
    const auto served = peer.weights.find(name);
    if (!peer.ready || peer.draining || served == peer.weights.end() || served->second == 0)
      continue;
    const auto before = std::ranges::find(known, rid, &candidate::rid);
    next.push_back({rid, served->second, before == known.end() ? 0 : before->saved});
  }
  known = std::move(next);
}

std::optional<std::string> node_channels::select(std::string_view name, no_member& why) {
  std::lock_guard guard{mutex_};
  const auto i = rotations_.find(name);
  if (i == rotations_.end() || i->second.empty()) {
    const bool served = std::ranges::any_of(peers_, [name](const auto& p) { return p.second.ready && p.second.weights.contains(name); });
    why = served ? no_member::excluded : no_member::none;
    return std::nullopt;
  }
  std::int64_t total = 0;
  candidate* chosen = nullptr;
  for (auto& each : i->second) {
    each.saved += each.weight;
    total += each.weight;
    if (chosen == nullptr || each.saved > chosen->saved)
      chosen = &each;
  }
  chosen->saved -= total;
  return chosen->rid;
}

std::vector<std::string> node_channels::targets(std::string_view name) const {
  std::vector<std::string> all;
  std::lock_guard guard{mutex_};
  if (const auto i = rotations_.find(name); i != rotations_.end())
    for (const auto& each : i->second)
      all.push_back(each.rid);
  return all;
}

} // namespace zlink::detail
