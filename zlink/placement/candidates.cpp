#include "zlink/placement/candidates.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

namespace zlink::placement {

namespace {

bool any_corrupt(const std::vector<candidate>& all) noexcept {
  return std::any_of(all.begin(), all.end(), [](const candidate& one) { return one.lease == lease_health::corrupt; });
}

/// A claimed record is no descriptor (S-47); one whose lease is over belongs to nobody who runs (S-51).
bool exists(const candidate& one, const std::string& mesh_name) noexcept {
  return one.descriptor->node.mesh_name == mesh_name && one.descriptor->state != node_state::claimed
         && one.lease == lease_health::live;
}

const type_capability* find_capability(const descriptor_record& node, const placement_wish& wish) noexcept {
  for (const auto& capability : node.capabilities)
    if (capability.kind == wish.kind && capability.stable_type == wish.stable_type)
      return &capability;
  return nullptr;
}

bool fits(const slot_bucket& used, std::uint32_t wanted, std::uint32_t limit) noexcept {
  return wanted == 0 || limit == 0 || std::uint64_t{used.active} + used.reserved + wanted <= limit;
}

bool has_room(const descriptor_record& node, const type_capability& type, const slot_bundle& slots) noexcept {
  return fits(node.actors, slots.actors, node.actor_limit) && fits(node.spots, slots.spots, node.spot_limit)
         && fits(type.slots, slots.type_slots, type.limit);
}

/// The first test of C-38 that the node fails; nothing if it passes.
std::optional<placement_cause> find_obstacle(const candidate& one, const placement_wish& wish) noexcept {
  const auto& node = *one.descriptor;
  const auto* capability = node.role == object_role::server ? find_capability(node, wish) : nullptr;
  if (!capability)
    return placement_cause::not_registered;
  if (one.outdated)
    return placement_cause::outdated;
  if (node.state != node_state::serving)
    return placement_cause::not_serving;
  if (!has_room(node, *capability, wish.slots))
    return placement_cause::no_capacity;
  if (node.placement_weight == 0)
    return placement_cause::no_weight;
  if (std::find(wish.excluded.begin(), wish.excluded.end(), node.node) != wish.excluded.end())
    return placement_cause::refused;
  return std::nullopt;
}

} // namespace

error_kind no_candidate::kind() const noexcept {
  switch (cause) {
    case placement_cause::corrupt_lease: return error_kind::internal_failure;
    case placement_cause::not_registered: return error_kind::not_found;
    case placement_cause::outdated:
    case placement_cause::not_serving:
    case placement_cause::no_capacity:
    case placement_cause::no_weight:
    case placement_cause::refused: return error_kind::unavailable;
  }
  return error_kind::internal_failure;
}

const char* to_string(placement_cause cause) noexcept {
  switch (cause) {
    case placement_cause::corrupt_lease: return "the lease of a node is damaged";
    case placement_cause::not_registered: return "no node of the mesh registers the type";
    case placement_cause::outdated:
      return "the Location Store does not tell whether the nodes that register the type still live";
    case placement_cause::not_serving: return "no node that registers the type is serving";
    case placement_cause::no_capacity: return "no node that registers the type has capacity left";
    case placement_cause::no_weight: return "every node that could take the object has placement weight 0";
    case placement_cause::refused: return "no node that could take the object has capacity left";
  }
  return "unknown";
}

placement_choice choose_node(const std::vector<candidate>& all, const placement_wish& wish, random_source& random) {
  if (any_corrupt(all))
    return no_candidate{placement_cause::corrupt_lease};
  std::vector<const descriptor_record*> passing;
  std::uint64_t total = 0;
  auto furthest = placement_cause::not_registered;
  for (const auto& one : all) {
    if (!exists(one, wish.mesh_name))
      continue;
    if (const auto obstacle = find_obstacle(one, wish)) {
      furthest = std::max(furthest, *obstacle);
      continue;
    }
    passing.push_back(one.descriptor);
    total += one.descriptor->placement_weight;
  }
  if (passing.empty())
    return no_candidate{furthest};
  auto drawn = random.next() % total; // the bias is below 10^-13 even for 10,000 nodes
  for (const auto* node : passing) {
    if (drawn < node->placement_weight)
      return node;
    drawn -= node->placement_weight;
  }
  return passing.back();
}

inferred_type infer_instance_type(const std::vector<candidate>& all, const std::string& mesh_name) {
  if (any_corrupt(all))
    return error_kind::internal_failure;
  std::set<std::string_view> types;
  for (const auto& one : all)
    if (exists(one, mesh_name) && !one.outdated && one.descriptor->role == object_role::server
        && one.descriptor->state == node_state::serving)
      for (const auto& capability : one.descriptor->capabilities)
        if (capability.kind == object_kind::instance_spot)
          types.insert(capability.stable_type);
  if (types.empty())
    return error_kind::not_found;
  if (types.size() > 1)
    return error_kind::invalid_operation;
  return std::string{*types.begin()};
}

} // namespace zlink::placement
