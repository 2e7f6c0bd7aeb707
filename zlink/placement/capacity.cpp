#include "zlink/placement/capacity.hpp"

#include <algorithm>
#include <tuple>

namespace zlink::placement {

namespace {

capacity_outcome take_step(slot_bucket& bucket, std::uint32_t count, std::uint32_t limit, slot_step step) noexcept {
  switch (step) {
    case slot_step::reserve: {
      const std::uint64_t wanted = std::uint64_t{bucket.active} + bucket.reserved + count;
      if (wanted > (limit == 0 ? slot_limit : limit))
        return capacity_outcome::no_capacity;
      bucket.reserved += count;
      return capacity_outcome::done;
    }
    case slot_step::activate:
      if (bucket.reserved < count)
        return capacity_outcome::corrupt;
      bucket.reserved -= count;
      bucket.active += count;
      return capacity_outcome::done;
    case slot_step::free_reserved:
      if (bucket.reserved < count)
        return capacity_outcome::corrupt;
      bucket.reserved -= count;
      return capacity_outcome::done;
    case slot_step::free_active:
      if (bucket.active < count)
        return capacity_outcome::corrupt;
      bucket.active -= count;
      return capacity_outcome::done;
  }
  return capacity_outcome::corrupt;
}

/// Where the bucket of the bundle's type is or belongs.
std::vector<type_bucket>::iterator find_type(std::vector<type_bucket>& types, const slot_bundle& slots) {
  return std::lower_bound(types.begin(), types.end(), slots, [](const type_bucket& have, const slot_bundle& wanted) {
    return std::tie(have.kind, have.type) < std::tie(wanted.type_kind, wanted.type);
  });
}

} // namespace

slot_bundle slots_of(object_kind kind, const std::string& stable_type) {
  slot_bundle bundle;
  if (kind == object_kind::actor) {
    bundle.actors = 1;
    return bundle;
  }
  bundle.spots = 1;
  bundle.type_slots = 1;
  bundle.type_kind = kind;
  bundle.type = stable_type;
  return bundle;
}

capacity_limits limits_of(const descriptor_record& node, const slot_bundle& slots) noexcept {
  capacity_limits limits{node.actor_limit, node.spot_limit, 0};
  if (slots.type_slots != 0)
    for (const auto& capability : node.capabilities)
      if (capability.kind == slots.type_kind && capability.stable_type == slots.type)
        limits.type_slots = capability.limit;
  return limits;
}

capacity_outcome apply(capacity_record& record, const capacity_change& change) {
  const auto& slots = change.slots;
  auto actors = record.actors;
  auto spots = record.spots;
  slot_bucket of_type;
  auto type = record.types.end();
  bool type_known = false;
  if (slots.type_slots != 0) {
    type = find_type(record.types, slots);
    type_known = type != record.types.end() && type->kind == slots.type_kind && type->type == slots.type;
    if (type_known)
      of_type = type->slots;
  }
  // On copies first: a bundle is taken as a whole or not at all.
  for (auto [bucket, count, limit] :
       {std::tuple{&actors, slots.actors, change.limits.actors}, std::tuple{&spots, slots.spots, change.limits.spots},
        std::tuple{&of_type, slots.type_slots, change.limits.type_slots}})
    if (count != 0)
      if (const auto outcome = take_step(*bucket, count, limit, change.step); outcome != capacity_outcome::done)
        return outcome;
  record.actors = actors;
  record.spots = spots;
  if (slots.type_slots == 0)
    return capacity_outcome::done;
  if (of_type == slot_bucket{})
    record.types.erase(type);
  else if (type_known)
    type->slots = of_type;
  else
    record.types.insert(type, type_bucket{slots.type_kind, slots.type, of_type});
  return capacity_outcome::done;
}

} // namespace zlink::placement
