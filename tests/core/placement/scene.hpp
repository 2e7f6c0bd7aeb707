// One object in any state of its row, between two hosts, for tests of transitions.
#pragma once

#include "tests/core/placement/world.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zlink::placement::test {

inline const std::vector<object_kind> all_kinds{object_kind::actor, object_kind::user_spot, object_kind::instance_spot};

enum state : unsigned {
  absent = 1,
  claimed = 2, // the id is an Entry Spot's
  reserved = 4,
  active = 8,
  closing = 16,
  moving = 32,      // the source wrote its progress
  prepared = 64,    // MoveReserve
  committed = 128,  // NewOwner: the move is over, its id still there
  completed = 256,  // the new owner is done with it
  aggregated = 512, // names an aggregate record
};
inline constexpr unsigned owned_states = active | closing | moving | prepared | committed | completed;
inline constexpr unsigned resting_states = active | committed | completed; // active, and not in a move

/// An object "x" in one of the states, on `source`; moves go to `target`.
struct scene {
  world w;
  object_kind kind;
  test_node source = w.add_node("a");
  test_node target = w.add_node("b");
  detail::unique_id reservation{1, 1};
  detail::unique_id relocation{2, 2};
  detail::attempt_generation attempt{3};

  explicit scene(object_kind which) : kind(which) {}

  observed_object seen() { return w.see(kind, "x"); }
  const test_node& owner() {
    const auto now = seen();
    const auto* row = row_in(now);
    return row && row->owner == target.owner ? target : source;
  }
  owned_object owned() { return {kind, "x", owner().owner}; }
  reservation_end end() { return {"x", reservation, source.owner, source.stamp, {}}; }
  std::optional<spot_membership> membership(const test_node& node) { return world::first_membership(kind, node); }
  move_target move() { return {kind, "x", relocation, attempt, {4, 4}, target.owner, target.stamp, {}}; }
  move_progress progress(move_stage stage) {
    move_progress p;
    p.relocation = relocation;
    p.stage = stage;
    return p;
  }

  void enter(state wanted) {
    if (wanted == absent)
      return;
    if (wanted == claimed) {
      put_one(w.store(), spot_key("x"), encode(entry_claim{source.descriptor.node, source.owner}));
      return;
    }
    reservation = w.reserve_object(kind, "x", source);
    if (wanted == reserved)
      return;
    run(commit(seen(), end(), membership(source)));
    if (kind == object_kind::instance_spot)
      run(advance_cursor(seen(), owned(), 1));
    if (wanted == closing)
      run(mark_closing(seen(), owned()));
    if (wanted & (moving | prepared | committed | completed))
      run(set_move_progress(seen(), owned(), progress(move_stage::preparing)));
    if (wanted & (prepared | committed | completed))
      run(reserve_move(seen(), move()));
    if (wanted & (committed | completed))
      run(change_owner(seen(), move(), membership(target)));
    if (wanted == completed)
      run(set_move_progress(seen(), owned(), progress(move_stage::completed)));
    if (wanted == aggregated) {
      auto row = *row_in(seen());
      row.aggregate = {9, 9};
      put_one(w.store(), object_key(kind, "x"), encode(row));
    }
  }
  void run(decision step) { REQUIRE(w.apply(std::move(step)).what == fragment_outcome::applied); }

  /// The state by what is stored.
  unsigned now() {
    const auto now = seen();
    const auto* row = row_in(now);
    if (!row)
      return claim_in(now) ? claimed : absent;
    if (row->aggregate)
      return aggregated;
    if (row->state == allocation_state::reserved)
      return reserved;
    if (row->closing)
      return closing;
    if (!row->move)
      return active;
    switch (row->move->stage) {
      case move_stage::prepared: return prepared;
      case move_stage::committed: return committed;
      case move_stage::completed: return completed;
      default: return moving;
    }
  }
};

inline decision narrow(reserve_decision wide) {
  if (auto* step = std::get_if<fragment>(&wide))
    return std::move(*step);
  return std::holds_alternative<refusal>(wide) ? std::get<refusal>(wide) : refusal::row_exists;
}

inline void kill_host(scene& s, const test_node& node) {
  write(s.w.store(), {{}, {deletes(lease_key(node.owner.owner))}});
}

} // namespace zlink::placement::test
