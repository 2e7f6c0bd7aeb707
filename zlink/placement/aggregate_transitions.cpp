#include "zlink/placement/aggregate_transitions.hpp"

#include "zlink/placement/participants.hpp"
#include "zlink/placement/row_steps.hpp"

#include <algorithm>

namespace zlink::placement {

using namespace steps;

namespace {

fragment replace(const observed_aggregate& seen, const aggregate_record& record) {
  fragment step;
  step.conditions.reserve(3);
  const auto key = aggregate_key(record.id);
  step.mutations.push_back({key, encode(record), std::nullopt});
  step.conditions.push_back(unchanged(key, seen.version));
  return step;
}

/// The record is as it was read, or there is still none.
store_condition same_aggregate(const detail::unique_id& id, const observed_aggregate& seen) {
  return seen.record ? unchanged(aggregate_key(id), seen.version) : missing(aggregate_key(id));
}

bool is_possible(const aggregate_request& r) noexcept {
  return r.id && r.generation && r.relocation && r.owner.owner && r.owner.lease && r.node.lifecycle && !r.slots.empty()
         && r.slots.spots == 1 && r.slots.type_slots == 1 && r.slots.type_kind == object_kind::user_spot
         && r.participants.count == r.slots.actors + 1 && r.participants.pages > 0 && r.authority_before;
}

bool is_possible(const aggregate_target& target) noexcept {
  return target.id && target.generation && target.relocation && target.attempt && target.reservation
         && target.owner.owner && target.owner.lease && target.node.node.lifecycle && !target.node.version.empty();
}

/// This aggregate, and this move of it, not over yet.
bool is_meant(const aggregate_record* record, const aggregate_target& target) noexcept {
  return record && record->id == target.id && record->generation == target.generation && is_moving(*record)
         && record->move->relocation == target.relocation;
}

bool is_prepared_for(const move_progress& move, const aggregate_target& target) noexcept {
  return move.stage == move_stage::prepared && move.target == target.node.node && move.target_owner == target.owner;
}

/// True for a row in this aggregate that nothing changes any more: its move is over, or its record is gone.
bool may_leave(const row_record* row, const observed_aggregate& aggregate) noexcept {
  if (!row || row->state != allocation_state::active || !row->aggregate)
    return false;
  return !aggregate.record || (aggregate.record->id == row->aggregate && !is_moving(*aggregate.record));
}

row_record effective(row_record row, const observed_aggregate& aggregate) {
  if (aggregate.record)
    take_effective(row, *aggregate.record);
  return row;
}

} // namespace

prepare_decision create_aggregate(const observed_aggregate& seen, const aggregate_request& r) {
  if (!is_possible(r))
    return refusal::impossible;
  aggregate_record made;
  made.id = r.id;
  made.generation = r.generation;
  made.owner = r.owner;
  made.node = r.node;
  made.authority_before = r.authority_before;
  made.slots = r.slots;
  made.participants = r.participants;
  auto& move = made.move.emplace();
  move.relocation = r.relocation;
  move.list_digest = r.participants.digest;
  if (seen.record)
    return *seen.record == made ? prepare_decision{already_prepared{seen.version}} : refusal::conflict;
  fragment step;
  step.mutations.push_back({aggregate_key(r.id), encode(made), std::nullopt});
  step.conditions.push_back(missing(aggregate_key(r.id)));
  step.conditions.push_back(lease_held(r.owner));
  return step;
}

decision enter_aggregate(const observed_object& seen, const participant& one, const observed_aggregate& aggregate) {
  if (one.kind != object_kind::user_spot && one.kind != object_kind::actor)
    return refusal::impossible;
  const auto& by = aggregate.record;
  const auto* row = row_in(seen);
  if (!by || by->authority || !by->move || by->move->stage != move_stage::preparing)
    return refusal::conflict;
  if (!is_owned(row, {one.kind, one.id, by->owner}) || row->node != by->node || row->closing || is_moving(*row))
    return refusal::conflict;
  if (participant_of(one.id, *row) != one)
    return refusal::conflict;
  auto entered = *row;
  entered.aggregate = by->id;
  auto step = replace_row(seen, object_key(one.kind, one.id), entered);
  step.conditions.push_back(lease_held(by->owner));
  step.conditions.push_back(same_aggregate(by->id, aggregate));
  return step;
}

decision set_aggregate_progress(const observed_aggregate& seen, const owner_token& owner,
                                std::optional<move_stage> stage) {
  if (stage && *stage != move_stage::captured && *stage != move_stage::completed)
    return refusal::impossible; // the others are Prepare, MoveReserve and the commit (S-89)
  const auto& record = seen.record;
  if (!record || record->owner != owner || !record->move || record->move->stage == move_stage::prepared)
    return refusal::conflict;
  const auto from = stage == move_stage::captured ? move_stage::preparing : move_stage::committed;
  if (stage && record->move->stage != from)
    return refusal::conflict;
  auto edited = *record;
  if (stage)
    edited.move->stage = *stage;
  else
    edited.move.reset();
  auto step = replace(seen, edited);
  step.conditions.push_back(lease_held(owner));
  return step;
}

prepare_decision reserve_aggregate_move(const observed_aggregate& seen, const aggregate_target& target) {
  if (!is_possible(target))
    return refusal::impossible;
  const auto& record = seen.record;
  if (!is_meant(record ? &*record : nullptr, target))
    return refusal::conflict;
  if (record->participants != target.participants)
    return refusal::corrupt;
  if (record->node == target.node.node)
    return refusal::impossible;
  const bool again = record->move->stage == move_stage::prepared;
  if (again && !is_prepared_for(*record->move, target))
    return refusal::conflict;
  if (again && record->move->attempt == target.attempt)
    return record->move->reservation == target.reservation ? prepare_decision{already_prepared{seen.version}}
                                                           : refusal::conflict;
  auto edited = *record;
  auto& move = *edited.move;
  move.stage = move_stage::prepared;
  move.attempt = target.attempt;
  move.reservation = target.reservation;
  move.target_owner = target.owner;
  move.target = target.node.node;
  move.slots = record->slots;
  auto step = replace(seen, edited);
  step.conditions.push_back(lease_held(target.owner));
  step.conditions.push_back(descriptor_unchanged(target.node));
  if (!again)
    step.capacity.push_back({target.node.node, move.slots, slot_step::reserve, target.limits});
  return step;
}

decision release_aggregate_move(const observed_aggregate& seen, const detail::unique_id& relocation,
                                detail::attempt_generation attempt) {
  const auto& record = seen.record;
  if (!record || !record->move || record->move->stage != move_stage::prepared || record->move->relocation != relocation
      || record->move->attempt != attempt)
    return refusal::conflict;
  auto edited = *record;
  edited.move.reset();
  auto step = replace(seen, edited);
  step.capacity.push_back({record->move->target, record->move->slots, slot_step::free_reserved, {}});
  return step;
}

decision change_aggregate_owner(const observed_aggregate& seen, const aggregate_target& target) {
  if (!is_possible(target))
    return refusal::impossible;
  const auto& record = seen.record;
  if (!is_meant(record ? &*record : nullptr, target) || !is_prepared_for(*record->move, target)
      || record->move->attempt != target.attempt || record->move->reservation != target.reservation)
    return refusal::conflict;
  if (record->participants != target.participants)
    return refusal::corrupt;
  auto moved = *record;
  moved.owner = target.owner;
  moved.node = target.node.node;
  moved.move->stage = move_stage::committed;
  moved.move->slots = {};
  auto step = replace(seen, moved);
  step.conditions.push_back(lease_held(target.owner)); // not the descriptor: the commit fences identity only (S-97)
  step.issues = issue::authority;
  step.above.authority = std::max(record->authority_before, record->authority);
  step.capacity.push_back({record->move->target, record->move->slots, slot_step::activate, {}});
  step.capacity.push_back({record->node, record->slots, slot_step::free_active, {}});
  return step;
}

decision preserve_aggregate(const observed_aggregate& seen, const owner_token& owner) {
  if (!seen.record || seen.record->owner != owner)
    return refusal::conflict;
  auto fenced = *seen.record;
  if (fenced.move && fenced.move->stage == move_stage::prepared)
    fenced.move->reservation = {}; // whoever reads this version finds that its reservation is not the one that counts
  auto step = replace(seen, fenced);
  step.conditions.push_back(lease_held(owner));
  return step;
}

decision abandon_aggregate_move(const observed_aggregate& seen, const observed_lease& owner_lease) {
  const auto& record = seen.record;
  if (!record || !is_moving(*record))
    return refusal::conflict;
  switch (judge_lease(owner_lease, record->owner)) {
    case lease_health::live: return refusal::owner_live;
    case lease_health::corrupt: return refusal::corrupt;
    case lease_health::over: break;
  }
  auto edited = *record;
  edited.move.reset();
  auto step = replace(seen, edited);
  step.conditions.push_back(as_read(lease_key(record->owner.owner), owner_lease));
  if (record->move->stage == move_stage::prepared)
    step.capacity.push_back({record->move->target, record->move->slots, slot_step::free_reserved, {}});
  return step;
}

decision leave_aggregate(const observed_object& seen, object_kind kind, const std::string& id,
                         const observed_aggregate& aggregate, const owner_token& by) {
  const auto* row = row_in(seen);
  if (!may_leave(row, aggregate) || row->kind != kind)
    return refusal::conflict;
  auto alone = effective(*row, aggregate);
  if (alone.owner != by)
    return refusal::conflict;
  alone.aggregate = {};
  if (aggregate.record && aggregate.record->authority)
    alone.move.reset(); // of an earlier move, if there was one
  auto step = replace_row(seen, object_key(kind, id), alone);
  step.conditions.push_back(lease_held(by));
  step.conditions.push_back(same_aggregate(row->aggregate, aggregate));
  return step;
}

decision drop_aggregate(const observed_aggregate& seen, const owner_token& owner) {
  const auto& record = seen.record;
  if (!record || record->owner != owner || is_moving(*record))
    return refusal::conflict;
  fragment step;
  const auto key = aggregate_key(record->id);
  step.mutations.push_back(erased(key));
  step.conditions.push_back(unchanged(key, seen.version));
  step.conditions.push_back(lease_held(owner));
  return step;
}

decision release_from_aggregate(const observed_object& seen, object_kind kind, const std::string& id,
                                detail::object_generation exact, const observed_aggregate& aggregate,
                                const observed_lease& owner_lease) {
  const auto* row = row_in(seen);
  if (!may_leave(row, aggregate))
    return refusal::conflict;
  auto alone = seen;
  auto& direct = std::get<row_record>(*alone.record);
  direct = effective(*row, aggregate);
  direct.aggregate = {};
  auto decided = release_dead_owner(alone, kind, id, exact, owner_lease);
  if (auto* step = std::get_if<fragment>(&decided))
    step->conditions.push_back(same_aggregate(row->aggregate, aggregate));
  return decided;
}

} // namespace zlink::placement
