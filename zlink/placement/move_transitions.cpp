// MoveReserve, MoveRelease and NewOwner of a single object.
#include "zlink/placement/row_steps.hpp"

namespace zlink::placement {

using namespace steps;

namespace {

bool is_possible(const move_target& target) noexcept {
  return target.relocation && target.attempt && target.reservation && target.owner.owner && target.owner.lease
         && target.node.node.lifecycle && !target.node.version.empty();
}

bool is_movable(const row_record* row, object_kind kind) noexcept {
  return row && row->state == allocation_state::active && row->kind == kind && !row->closing && !row->aggregate;
}

} // namespace

row_record prepared_row(const row_record& row, const move_target& target) {
  auto edited = row;
  auto& move = *edited.move;
  move.stage = move_stage::prepared;
  move.attempt = target.attempt;
  move.reservation = target.reservation;
  move.target_owner = target.owner;
  move.target = target.node.node;
  move.slots = row.slots;
  return edited;
}

decision reserve_move(const observed_object& seen, const move_target& target) {
  if (!is_possible(target))
    return refusal::impossible;
  const auto* row = row_in(seen);
  // The source wrote down that this move is under way; another one that is prepared already excludes it.
  if (!is_movable(row, target.kind) || !row->move || row->move->relocation != target.relocation
      || row->move->stage > move_stage::prepared)
    return refusal::conflict;
  if (row->node == target.node.node)
    return refusal::impossible;
  const bool again = row->move->stage == move_stage::prepared;
  if (again && (row->move->target != target.node.node || row->move->target_owner != target.owner))
    return refusal::conflict;
  if (again && row->move->attempt == target.attempt && row->move->reservation != target.reservation)
    return refusal::conflict; // the source has fenced that attempt off (S-100)
  const auto edited = prepared_row(*row, target);
  auto step = replace_row(seen, object_key(target.kind, target.id), edited);
  step.conditions.push_back(lease_held(target.owner));
  step.conditions.push_back(descriptor_unchanged(target.node));
  if (!again)
    step.capacity.push_back({target.node.node, edited.move->slots, slot_step::reserve, target.limits});
  return step;
}

decision release_move(const observed_object& seen, object_kind kind, const std::string& id,
                      const detail::unique_id& relocation, detail::attempt_generation attempt) {
  const auto* row = row_in(seen);
  if (!row || row->state != allocation_state::active || row->kind != kind || row->aggregate || !row->move
      || row->move->stage != move_stage::prepared || row->move->relocation != relocation
      || row->move->attempt != attempt)
    return refusal::conflict;
  auto edited = *row;
  edited.move.reset();
  auto step = replace_row(seen, object_key(kind, id), edited);
  free_move_slots(step, *row);
  return step;
}

decision change_owner(const observed_object& seen, const move_target& target,
                      std::optional<spot_membership> membership) {
  if (!is_possible(target))
    return refusal::impossible;
  const auto* row = row_in(seen);
  if (!is_movable(row, target.kind) || !row->move || row->move->stage != move_stage::prepared
      || row->move->relocation != target.relocation || row->move->attempt != target.attempt
      || row->move->reservation != target.reservation || row->move->target != target.node.node || row->move->target_owner != target.owner)
    return refusal::conflict;
  if ((row->kind == object_kind::actor) != membership.has_value())
    return refusal::impossible;
  auto moved = *row;
  moved.owner = target.owner;
  moved.node = target.node.node;
  moved.member_of = std::move(membership);
  moved.move->stage = move_stage::committed;
  moved.move->slots = {};
  auto step = replace_row(seen, object_key(target.kind, target.id), moved);
  step.conditions.push_back(lease_held(target.owner)); // not the descriptor: the commit fences identity only (S-97)
  step.issues = issue::authority;
  step.above = {row->generation, row->authority};
  step.capacity.push_back({row->move->target, row->move->slots, slot_step::activate, {}});
  step.capacity.push_back({row->node, row->slots, slot_step::free_active, {}});
  return step;
}

} // namespace zlink::placement
