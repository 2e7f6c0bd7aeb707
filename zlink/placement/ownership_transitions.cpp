// Preserve in its forms, Membership, Reincarnate, Delete, and the release of a dead owner's object.
#include "zlink/placement/row_steps.hpp"

namespace zlink::placement {

using namespace steps;

namespace {

/// Preserve: `edit` changes internal data and says whether that is possible from here.
template <class Edit>
decision preserve_with(const observed_object& seen, const owned_object& object, Edit edit) {
  const auto* row = row_in(seen);
  if (!is_owned(row, object))
    return refusal::conflict;
  auto edited = *row;
  if (!edit(edited))
    return refusal::conflict;
  auto step = replace_row(seen, object_key(object.kind, object.id), edited);
  step.conditions.push_back(lease_held(object.owner));
  return step;
}

/// The steps of S-96 that the owner takes alone: the source before the target prepared, the new owner after its commit.
bool may_progress(const row_record& row, const std::optional<move_progress>& next) noexcept {
  if (row.closing)
    return false;
  if (!next)
    return row.move && row.move->stage != move_stage::prepared;
  if (!is_moving(row) && next->stage == move_stage::preparing)
    return true;
  if (!row.move)
    return false;
  if (next->stage == move_stage::completed)
    return row.move->stage == move_stage::committed && row.move->relocation == next->relocation;
  return row.move->stage <= move_stage::captured && row.move->relocation == next->relocation
         && row.move->stage <= next->stage;
}

} // namespace

decision preserve(const observed_object& seen, const owned_object& object) {
  return preserve_with(seen, object, [](row_record& row) {
    if (row.move && row.move->stage == move_stage::prepared)
      row.move->reservation = {}; // whoever reads this version finds that its reservation is not the one that counts
    return true;
  });
}

decision mark_closing(const observed_object& seen, const owned_object& object) {
  return preserve_with(seen, object, [](row_record& row) { return !is_moving(row) && !std::exchange(row.closing, true); });
}

decision advance_cursor(const observed_object& seen, const owned_object& object, std::uint64_t cursor) {
  return preserve_with(seen, object, [&](row_record& row) {
    if (!row.root || row.root->cursor >= cursor)
      return false;
    row.root->cursor = cursor;
    return true;
  });
}

decision retire_root(const observed_object& seen, const owned_object& object) {
  return preserve_with(seen, object, [](row_record& row) {
    // Being enqueued is not enough: the cursor says that the first handler ended (C-97).
    if (!row.root || row.root->cursor == 0)
      return false;
    row.root.reset();
    return true;
  });
}

decision mark_payload_lost(const observed_object& seen, const owned_object& object) {
  return preserve_with(seen, object, [](row_record& row) { return !std::exchange(row.payload_lost, true); });
}

decision set_move_progress(const observed_object& seen, const owned_object& object, std::optional<move_progress> move) {
  // Slots come and go with `prepared` and `committed`: MoveReserve, MoveRelease and NewOwner only (S-81).
  if (move && (move->stage == move_stage::prepared || move->stage == move_stage::committed))
    return refusal::impossible;
  return preserve_with(seen, object, [&](row_record& row) {
    if (!may_progress(row, move))
      return false;
    if (move && move->stage == move_stage::completed)
      row.move->stage = move_stage::completed;
    else
      row.move = std::move(move);
    return true;
  });
}

decision change_membership(const observed_object& seen, const owned_object& actor, const spot_membership& membership,
                           const observed_object& spot) {
  if (actor.kind != object_kind::actor)
    return refusal::impossible;
  const auto* row = row_in(seen);
  if (!is_owned(row, actor) || row->closing || is_moving(*row))
    return refusal::conflict;
  const auto* claim = claim_in(spot);
  const auto* user = row_in(spot);
  if (claim ? claim->node != row->node : !user || user->node != row->node)
    return refusal::conflict;
  if (user
      && (user->kind != object_kind::user_spot || user->state != allocation_state::active || user->closing
          || user->aggregate || user->generation != membership.spot_generation))
    return refusal::conflict;
  if (claim && membership.spot_generation)
    return refusal::impossible;
  auto edited = *row;
  edited.member_of = membership;
  auto step = replace_row(seen, object_key(actor.kind, actor.id), edited);
  step.conditions.push_back(lease_held(actor.owner));
  step.conditions.push_back(unchanged(spot_key(membership.spot_id), spot.version));
  return step;
}

decision reincarnate(const observed_object& seen, const owned_object& object) {
  if (object.kind != object_kind::instance_spot)
    return refusal::impossible;
  const auto* row = row_in(seen);
  if (!is_owned(row, object) || !row->closing)
    return refusal::conflict;
  auto next = *row;
  next.closing = false;
  next.payload_lost = false;
  next.root.reset();
  next.move.reset(); // the former incarnation's
  auto step = replace_row(seen, object_key(object.kind, object.id), next);
  step.conditions.push_back(lease_held(object.owner));
  step.issues = issue::both;
  step.above = {row->generation, row->authority};
  return step;
}

decision remove(const observed_object& seen, const owned_object& object) {
  const auto* row = row_in(seen);
  if (!is_owned(row, object))
    return refusal::conflict;
  auto step = remove_row(seen, object_key(object.kind, object.id));
  step.conditions.push_back(lease_held(object.owner));
  step.capacity.push_back({row->node, row->slots, slot_step::free_active, {}});
  free_move_slots(step, *row);
  return step;
}

decision release_dead_owner(const observed_object& seen, object_kind kind, const std::string& id,
                            detail::object_generation exact, const observed_lease& owner_lease) {
  const auto* row = row_in(seen);
  if (!row || row->kind != kind || row->state != allocation_state::active || row->aggregate)
    return refusal::conflict;
  if (row->generation != exact)
    return refusal::other_incarnation;
  switch (judge_lease(owner_lease, row->owner)) {
    case lease_health::live: return refusal::owner_live;
    case lease_health::corrupt: return refusal::corrupt;
    case lease_health::over: break;
  }
  auto step = remove_row(seen, object_key(kind, id));
  step.conditions.push_back(as_read(lease_key(row->owner.owner), owner_lease));
  step.capacity.push_back({row->node, row->slots, slot_step::free_active, {}});
  free_move_slots(step, *row);
  return step;
}

} // namespace zlink::placement
