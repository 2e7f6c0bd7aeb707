// Reserve, Commit, Abort, Release.
#include "zlink/placement/row_steps.hpp"

namespace zlink::placement {

using namespace steps;

namespace {

/// Only combinations that the rest of the layer can mean (S-71).
bool is_possible(const reserve_request& r) {
  if (!r.reservation || !detail::is_valid_id(r.id) || r.stable_type.empty() || !r.target_owner.owner
      || !r.target_owner.lease || !r.target.node.lifecycle || r.target.version.empty())
    return false;
  const auto* request = std::get_if<request_content>(&r.content);
  if ((r.kind == object_kind::instance_spot) != (request == nullptr))
    return false;
  if (!request)
    return !std::get<recovery_root>(r.content).reference.empty() && std::get<recovery_root>(r.content).cursor == 0;
  const auto& whole = request->is_apart() ? r.request_apart : request->bytes;
  const auto& other = request->is_apart() ? request->bytes : r.request_apart;
  return request->size <= request_content::size_limit && whole.size() == request->size && other.empty();
}

/// Same reservation: the same content or not, whatever generations it got (S-75).
reserve_decision replayed(const observed_object& seen, const row_record& row, const reserve_request& r) {
  if (reserved_row(r, {row.generation, row.authority}) != row)
    return refusal::conflict;
  return already_reserved{row.generation, row.authority, seen.version};
}

bool is_reserved_by(const row_record* row, const detail::unique_id& reservation) noexcept {
  return row && row->state == allocation_state::reserved && row->pending && row->pending->reservation == reservation;
}

/// Conditions and side effects that Commit and Abort share.
void end_reservation(fragment& step, const row_record& row, const reservation_end& end, slot_step slots) {
  step.conditions.push_back(lease_held(end.target_owner));
  step.conditions.push_back(descriptor_unchanged(end.target));
  step.capacity.push_back({row.node, row.slots, slots, {}});
  if (row.pending->request && row.pending->request->is_apart())
    step.mutations.push_back(erased(content_key(row.pending->reservation)));
  if (end.terminal)
    step.mutations.push_back({end.terminal->key, encode(end.terminal->record), end.terminal->retention});
}

/// True if this row is the caller's to end with this evidence (S-72).
bool may_end(const row_record* row, const reservation_end& end) noexcept {
  return is_reserved_by(row, end.reservation) && row->owner == end.target_owner && row->node == end.target.node;
}

} // namespace

row_record reserved_row(const reserve_request& r, const new_generations& numbers) {
  row_record row;
  row.state = allocation_state::reserved;
  row.kind = r.kind;
  row.owner = r.target_owner;
  row.generation = numbers.object;
  row.authority = numbers.authority;
  row.stable_type = r.stable_type;
  row.node = r.target.node;
  row.slots = slots_of(r.kind, r.stable_type);
  auto& pending = row.pending.emplace();
  pending.reservation = r.reservation;
  pending.patience_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(0, r.patience.count()));
  if (const auto* request = std::get_if<request_content>(&r.content))
    pending.request = *request;
  else
    row.root = std::get<recovery_root>(r.content);
  return row;
}

reserve_decision reserve(const observed_object& seen, const reserve_request& request) {
  if (!is_possible(request))
    return refusal::impossible;
  if (claim_in(seen))
    return refusal::entry_id_taken;
  if (const auto* row = row_in(seen)) {
    if (is_reserved_by(row, request.reservation))
      return replayed(seen, *row, request);
    return refusal::row_exists;
  }
  // The Entry Spot's claim would stand under the same key: one condition excludes both (S-22, S-77).
  const auto key = object_key(request.kind, request.id);
  const auto row = reserved_row(request, {});
  fragment step;
  step.issues = issue::both;
  step.conditions.reserve(3);
  step.conditions.push_back(missing(key));
  step.conditions.push_back(lease_held(request.target_owner));
  step.conditions.push_back(descriptor_unchanged(request.target));
  step.mutations.push_back({key, encode(row), std::nullopt});
  if (!request.request_apart.empty())
    step.mutations.push_back({content_key(request.reservation), request.request_apart, std::nullopt});
  step.capacity.push_back({row.node, row.slots, slot_step::reserve, request.limits});
  return step;
}

decision commit(const observed_object& seen, const reservation_end& end, std::optional<spot_membership> membership) {
  const auto* row = row_in(seen);
  if (!may_end(row, end))
    return refusal::conflict;
  if ((row->kind == object_kind::actor) != membership.has_value())
    return refusal::impossible;
  auto active = *row;
  active.state = allocation_state::active;
  active.pending.reset();
  active.member_of = std::move(membership);
  auto step = replace_row(seen, object_key(row->kind, end.id), active);
  end_reservation(step, *row, end, slot_step::activate);
  return step;
}

decision abort(const observed_object& seen, const reservation_end& end) {
  const auto* row = row_in(seen);
  if (!may_end(row, end))
    return refusal::conflict;
  auto step = remove_row(seen, object_key(row->kind, end.id));
  end_reservation(step, *row, end, slot_step::free_reserved);
  return step;
}

decision release(const observed_object& seen, const std::string& id, const lifecycle_evidence& evidence) {
  const auto* row = row_in(seen);
  if (!row || row->state != allocation_state::reserved)
    return refusal::conflict;
  const auto health = judge_lease(evidence.lease, row->owner);
  if (health == lease_health::corrupt)
    return refusal::corrupt;
  const auto& descriptor = evidence.descriptor.record;
  const bool node_runs = descriptor && descriptor->node == row->node;
  if (health == lease_health::live && node_runs)
    return refusal::owner_live;
  auto step = remove_row(seen, object_key(row->kind, id));
  step.conditions.push_back(as_read(lease_key(row->owner.owner), evidence.lease));
  step.conditions.push_back(descriptor ? unchanged(descriptor_key(row->node), evidence.descriptor.version)
                                       : missing(descriptor_key(row->node)));
  step.capacity.push_back({row->node, row->slots, slot_step::free_reserved, {}});
  if (row->pending->request && row->pending->request->is_apart())
    step.mutations.push_back(erased(content_key(row->pending->reservation)));
  return step;
}

} // namespace zlink::placement
