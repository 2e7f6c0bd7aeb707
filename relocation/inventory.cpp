#include "relocation/inventory.hpp"

#include "zlink/host/host_runtime.hpp"

#include <algorithm>

namespace zlink::detail {

namespace {

/// Nothing: it goes with its Spot.
std::optional<unit_kind> kind_of(const actor_object& actor) {
  const auto spot = actor.spot();
  if (!spot || spot->factory().kind == spot_kind::entry)
    return unit_kind::entry_actor;
  if (spot->factory().mode == execution_mode::per_actor)
    return unit_kind::member_actor;
  return std::nullopt;
}

unit_kind kind_of(const spot_object& spot) noexcept {
  if (spot.factory().kind == spot_kind::instance)
    return unit_kind::instance_spot;
  return spot.factory().mode == execution_mode::per_actor ? unit_kind::per_actor_spot : unit_kind::spot_wide;
}

} // namespace

std::optional<unit_kind> unit_kind_of(const hosted_object& object) {
  if (object.is_actor())
    return kind_of(static_cast<const actor_object&>(object));
  return kind_of(static_cast<const spot_object&>(object));
}

namespace {

template <class T>
counted_ptr<hosted_object> as_hosted(const counted_ptr<T>& object) {
  return counted_ptr<hosted_object>::share(object.get());
}

} // namespace

inventory inventory::of(host_runtime& host) {
  inventory all;
  all.spots_ = host.objects.snapshot();
  std::erase_if(all.spots_, [](const auto& spot) { return spot->factory().kind == spot_kind::entry; });
  all.actors_ = host.objects.actor_snapshot();
  for (const auto& actor : all.actors_)
    if (const auto spot = actor->spot(); spot && spot->factory().kind == spot_kind::user)
      all.members_[spot.get()].push_back(actor);
  return all;
}

counted_ptr<hosted_object> inventory::find_fixed() const noexcept {
  const auto fixed = [](const auto& object) { // one that closes already is in nobody's way
    return object->factory().policy == relocation_policy::disable && !object->application_word().has(admission_word::sealed_bit);
  };
  if (const auto spot = std::ranges::find_if(spots_, fixed); spot != spots_.end())
    return as_hosted(*spot);
  const auto actor = std::ranges::find_if(actors_, fixed);
  return actor == actors_.end() ? counted_ptr<hosted_object>{} : as_hosted(*actor);
}

std::vector<relocation_unit> inventory::units(host_runtime& host) const {
  std::vector<relocation_unit> found;
  found.reserve(spots_.size() + actors_.size());
  const auto add = [&](counted_ptr<hosted_object> lead) {
    const auto kind = unit_kind_of(*lead);
    auto* node = host.find_node(lead->mesh_name());
    if (kind)
      found.push_back({*kind, node, std::move(lead)});
  };
  for (const auto& spot : spots_)
    add(as_hosted(spot));
  for (const auto& actor : actors_)
    add(as_hosted(actor));
  return found;
}

const std::vector<counted_ptr<actor_object>>& inventory::members_of(const hosted_object& spot) const noexcept {
  static const std::vector<counted_ptr<actor_object>> nobody;
  const auto found = members_.find(&spot);
  return found == members_.end() ? nobody : found->second;
}

int batch_of(unit_kind kind) noexcept {
  switch (kind) {
    case unit_kind::per_actor_spot: return 1;
    case unit_kind::entry_actor:
    case unit_kind::member_actor: return 2;
    case unit_kind::spot_wide:
    case unit_kind::instance_spot:
    case unit_kind::joining_actor: break; // which no operation of the host moves
  }
  return 3;
}

const char* to_string(unit_kind kind) noexcept {
  switch (kind) {
    case unit_kind::entry_actor: return "entry_actor";
    case unit_kind::per_actor_spot: return "per_actor_spot";
    case unit_kind::member_actor: return "member_actor";
    case unit_kind::spot_wide: return "spot_wide";
    case unit_kind::instance_spot: return "instance_spot";
    case unit_kind::joining_actor: return "joining_actor";
  }
  return "unknown";
}

const char* execution_mode_of(unit_kind kind) noexcept {
  return kind == unit_kind::spot_wide || kind == unit_kind::instance_spot ? "spot_wide" : "per_actor";
}

unit_needs needs_of(const relocation_unit& unit, const inventory& all) {
  unit_needs needs;
  needs.node = unit.node;
  const auto add = [&](placement::object_kind kind, const std::string& name) {
    const auto same = [&](const unit_needs::type& one) { return one.kind == kind && one.name == name; };
    if (std::ranges::none_of(needs.types, same))
      needs.types.push_back({kind, name});
  };
  const auto kind = unit.lead->is_actor()                    ? placement::object_kind::actor
                    : unit.kind == unit_kind::instance_spot ? placement::object_kind::instance_spot
                                                            : placement::object_kind::user_spot;
  add(kind, unit.lead->type());
  needs.slots = placement::slots_of(kind, unit.lead->type());
  if (!unit.lead->is_actor())
    for (const auto& member : all.members_of(*unit.lead)) { // where the Spot goes, its members go
      add(placement::object_kind::actor, member->type());
      ++needs.slots.actors;
    }
  return needs;
}

} // namespace zlink::detail
