#include "relocation/unit_targets.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/mesh_links.hpp"
#include "zlink/placement/capacity.hpp"
#include "zlink/placement/record_keys.hpp"

#include <algorithm>

namespace zlink::detail {

namespace {

const placement::type_capability* find_capability(const placement::descriptor_record& node, const unit_needs::type& wanted) {
  const auto same = [&](const placement::type_capability& c) { return c.kind == wanted.kind && c.stable_type == wanted.name; };
  const auto found = std::ranges::find_if(node.capabilities, same);
  return found == node.capabilities.end() ? nullptr : &*found;
}

placement::capacity_change change_on(const placement::descriptor_record& node, const unit_needs& needs) {
  return {node.node, needs.slots, placement::slot_step::reserve, placement::limits_of(node, needs.slots)};
}

} // namespace

const char* to_string(obstacle what) noexcept {
  switch (what) {
    case obstacle::nobody: return "no other node is known in the mesh";
    case obstacle::version: return "no other node has the application version";
    case obstacle::not_serving: return "no object server of the application version is serving";
    case obstacle::type: return "no node of the application version registers the type";
    case obstacle::policy: return "no node of the application version takes the type over with the policy and adapter it has here";
    case obstacle::capacity: return "no node that could take the unit has capacity left";
    case obstacle::wave: return "every node that could take the unit is of the same maintenance wave";
    case obstacle::link: return "no node that could take the unit is linked";
    case obstacle::weight: return "every node that could take the unit has placement weight 0";
    case obstacle::refused: return "every node that could take the unit has refused it";
  }
  return "unknown";
}

unit_targets::unit_targets(host_runtime& host, std::uint64_t version) : host_(&host), version_(std::to_string(version)) {}

std::optional<obstacle> unit_targets::judge(const placement::live_node& one, const node_runtime& from) const {
  const auto& other = *one.descriptor;
  if (other.application_version != version_)
    return obstacle::version;
  if (other.node == from.identity || other.state != placement::node_state::serving || other.role != placement::object_role::server
      || !one.usable(host_->time->now()))
    return obstacle::not_serving;
  return std::nullopt;
}

/// Both sides keep the state in the same way, or there is none to keep.
std::optional<obstacle> unit_targets::judge_types(const placement::descriptor_record& other, const unit_needs& needs) const {
  std::optional<obstacle> worst;
  const auto& own = needs.node->registration->descriptor();
  for (const auto& type : needs.types) {
    const auto* here = find_capability(own, type);
    const auto* there = find_capability(other, type);
    if (there == nullptr)
      return obstacle::type;
    if (here == nullptr || here->policy != there->policy || here->has_adapter != there->has_adapter)
      worst = obstacle::policy;
  }
  return worst;
}

bool unit_targets::fits(const placement::descriptor_record& other, const unit_needs& needs) const {
  const auto known = taken_.find({other.node.mesh_name, other.node.node_rid});
  if (known == taken_.end())
    return false; // not looked at yet
  auto trial = known->second;
  return placement::apply(trial, change_on(other, needs)) == placement::capacity_outcome::done;
}

bool unit_targets::is_reachable(const node_runtime& from, const placement::node_identity& target) const {
  const auto link = from.links->ready_link(target.node_rid);
  return link && link->peer().lifecycle.value == target.lifecycle.value;
}

std::optional<obstacle> unit_targets::judge(const placement::live_node& one, const unit_needs& needs,
                                            const std::vector<placement::node_identity>& refused) const {
  const auto& other = *one.descriptor;
  if (auto found = judge(one, *needs.node))
    return found;
  if (auto found = judge_types(other, needs))
    return found;
  if (!fits(other, needs))
    return obstacle::capacity;
  if (const auto& wave = host_->options.maintenance_wave; wave && other.maintenance_wave == wave)
    return obstacle::wave;
  if (!is_reachable(*needs.node, other.node))
    return obstacle::link;
  if (other.placement_weight == 0)
    return obstacle::weight;
  if (std::ranges::find(refused, other.node) != refused.end())
    return obstacle::refused;
  return std::nullopt;
}

task<bool> unit_targets::look(const node_runtime& node) {
  const auto known = node.peers_known->snapshot();
  for (const auto& one : known->nodes()) {
    if (judge(one, node))
      continue;
    const auto& other = one.descriptor->node;
    auto reading = host_->repository->read<placement::capacity_record>(placement::capacity_key(other));
    const auto outcome = co_await std::move(reading);
    const auto* seen = placement::seen_in(outcome);
    if (seen == nullptr)
      co_return false;
    taken_[{other.mesh_name, other.node_rid}] = seen->record.value_or(placement::capacity_record{other.lifecycle, {}, {}, {}});
  }
  co_return true;
}

std::optional<placement::node_identity> unit_targets::choose(const unit_needs& needs,
                                                             const std::vector<placement::node_identity>& refused,
                                                             obstacle& furthest) {
  furthest = obstacle::nobody;
  std::vector<const placement::descriptor_record*> passing;
  std::uint64_t total = 0;
  const auto known = needs.node->peers_known->snapshot();
  for (const auto& one : known->nodes()) {
    if (const auto found = judge(one, needs, refused)) {
      if (one.descriptor->node != needs.node->identity)
        furthest = std::max(furthest, *found);
      continue;
    }
    passing.push_back(one.descriptor.get());
    total += one.descriptor->placement_weight;
  }
  if (passing.empty())
    return std::nullopt;
  auto drawn = host_->random->next() % total;
  const auto* chosen = passing.back();
  for (const auto* node : passing) {
    if (drawn < node->placement_weight) {
      chosen = node;
      break;
    }
    drawn -= node->placement_weight;
  }
  auto& taken = taken_[{chosen->node.mesh_name, chosen->node.node_rid}];
  static_cast<void>(placement::apply(taken, change_on(*chosen, needs)));
  return chosen->node;
}

} // namespace zlink::detail
