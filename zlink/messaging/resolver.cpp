#include "zlink/messaging/resolver.hpp"

#include "zlink/host/host_runtime.hpp"

namespace zlink::detail {

std::shared_ptr<const object_route> route_cache::find(std::string_view id, steady_time now) {
  if (max_age_.count() == 0)
    return nullptr;
  auto& part = shard_of(id);
  std::lock_guard guard{part.mutex};
  const auto i = part.routes.find(id);
  if (i == part.routes.end())
    return nullptr;
  if (now >= i->second->usable_until) {
    part.routes.erase(i);
    return nullptr;
  }
  return i->second;
}

void route_cache::put(std::string_view id, object_route route, steady_time now) {
  if (max_age_.count() == 0)
    return;
  route.usable_until = std::min(route.usable_until, now + max_age_);
  auto& part = shard_of(id);
  std::lock_guard guard{part.mutex};
  part.routes.insert_or_assign(std::string{id}, std::make_shared<const object_route>(std::move(route)));
}

void route_cache::erase(std::string_view id, object_generation object, authority_generation authority) noexcept {
  auto& part = shard_of(id);
  std::lock_guard guard{part.mutex};
  const auto i = part.routes.find(id);
  if (i != part.routes.end() && i->second->object == object && i->second->authority == authority)
    part.routes.erase(i);
}

void route_cache::row_seen(std::string_view id, const placement::row_record* row) noexcept {
  auto& part = shard_of(id);
  std::lock_guard guard{part.mutex};
  const auto i = part.routes.find(id);
  if (i == part.routes.end())
    return;
  const auto& known = *i->second;
  const bool newer = row == nullptr || row->generation > known.object
                     || (row->generation == known.object && (row->authority > known.authority || row->closing));
  if (newer)
    part.routes.erase(i);
}

void route_cache::clear() noexcept {
  for (auto& part : shards_) {
    std::lock_guard guard{part.mutex};
    part.routes.clear();
  }
}

task<resolution> resolver::resolve(std::string id) {
  auto reading = host_.repository->read_object(id);
  auto outcome = co_await std::move(reading);
  const auto* seen = placement::seen_in(outcome);
  if (seen == nullptr) {
    resolution failed;
    const bool damaged = std::holds_alternative<placement::record_fault>(outcome);
    failed.why = damaged ? "its record in the Location Store cannot be used" : "the Location Store does not tell who owns it";
    failed.kind = damaged ? error_kind::internal_failure : error_kind::unavailable;
    co_return failed;
  }
  if (const auto* claim = placement::claim_in(*seen))
    co_return judge_entry(*claim, id);
  cache.row_seen(id, placement::row_in(*seen));
  if (placement::row_in(*seen) == nullptr) {
    resolution none;
    none.what = resolved::missing;
    none.seen = *seen;
    co_return none;
  }
  auto judging = judge_row(*seen);
  co_return co_await std::move(judging);
}

resolution resolver::judge_entry(const placement::entry_claim& claim, std::string_view id) {
  resolution found;
  found.route.mesh_name = claim.node.mesh_name;
  found.route.node_rid = claim.node.node_rid;
  auto* node = host_.find_node(claim.node.mesh_name);
  const auto known = node == nullptr ? std::nullopt : node->peers_known->find_entry_spot(id);
  found.what = known ? resolved::entry : resolved::missing; // a claim alone is no published Entry Spot (S-47)
  if (!known)
    found.why = "no node publishes this Entry Spot";
  return found;
}

task<resolution> resolver::judge_row(placement::observed_object seen) {
  resolution found;
  const auto& row = *placement::row_in(seen);
  found.route.mesh_name = row.node.mesh_name;
  found.route.node_rid = row.node.node_rid;
  found.route.object = row.generation;
  found.route.authority = row.authority;
  found.seen = std::move(seen);
  const auto& owned = *placement::row_in(found.seen);
  if (owned.state == placement::allocation_state::reserved) {
    found.what = resolved::creating;
    co_return found;
  }
  if (host_.ownership->token() && owned.owner == *host_.ownership->token()) {
    found.what = owned.closing ? resolved::closing : resolved::ready;
    found.route.usable_until = steady_time::max();
    co_return found;
  }
  const auto asked = host_.time->now();
  auto reading = host_.repository->read<placement::lease_record>(placement::lease_key(owned.owner.owner));
  auto outcome = co_await std::move(reading);
  const auto* lease = placement::seen_in(outcome);
  if (lease == nullptr) {
    found.why = "the Location Store does not tell whether its owner lives";
    co_return found;
  }
  switch (placement::judge_lease(*lease, owned.owner)) {
    case placement::lease_health::live: break;
    case placement::lease_health::corrupt:
      found.why = "the lease of its owner is corrupt";
      found.kind = error_kind::internal_failure;
      co_return found;
    case placement::lease_health::over:
      found.what = resolved::unavailable;
      found.why = "its owner is gone; close it by its ref to release the id";
      co_return found;
  }
  const auto until = placement::local_deadline(asked, host_.time->now(), *lease->expires_at, lease->now,
                                               host_.options.lease_fencing_margin);
  found.what = owned.closing ? resolved::closing : resolved::ready;
  found.route.usable_until = until.value_or(asked);
  co_return found;
}

} // namespace zlink::detail
