// A room with members on one host, and the aggregate that takes them to another one, for tests.
#pragma once

#include "tests/core/placement/world.hpp"
#include "zlink/placement/aggregate_transitions.hpp"
#include "zlink/placement/participants.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zlink::placement::test {

/// Of the aggregate.
enum aggregate_state : unsigned {
  unmade = 1,      // no record, rows on their own
  preparing = 2,   // record, rows on their own
  entered = 4,     // every row names it
  captured = 8,    // the same, one stage on
  reserved_there = 16, // MoveReserve
  taken_over = 32, // the target is the owner
  finished = 64,   // `completed`
  called_off = 128, // no move, rows still in it
  parted = 256,    // taken over, and every row has left
  discarded = 512, // called off, and the record is gone before rows left
};
inline constexpr unsigned all_aggregate_states[] = {unmade,     preparing, entered,    captured, reserved_there,
                                                    taken_over, finished,  called_off, parted,   discarded};

struct aggregate_scene {
  explicit aggregate_scene(int members = 3) {
    w.create_object(object_kind::user_spot, "room", source);
    for (int i = 0; i < members; ++i)
      add_member("actor " + std::to_string(i));
    list.push_back(participant_of("room", row(object_kind::user_spot, "room")));
    for (int i = 0; i < members; ++i)
      list.push_back(participant_of("actor " + std::to_string(i), row(object_kind::actor, "actor " + std::to_string(i))));
    encoded = *encode_participants(list);
  }

  void add_member(const std::string& id) {
    w.create_object(object_kind::actor, id, source);
    const auto room = w.see(object_kind::user_spot, "room");
    run(change_membership(w.see(object_kind::actor, id), {object_kind::actor, id, source.owner},
                          {"room", row_in(room)->generation}, room));
  }
  row_record row(object_kind kind, const std::string& id) { return *row_in(w.see(kind, id)); }
  observed_aggregate seen() { return w.see<aggregate_record>(aggregate_key(id)); }
  observed_lease lease(const test_node& node) { return w.see<lease_record>(lease_key(node.owner.owner)); }
  /// The row as a reader sees it.
  row_record effective(const participant& one) {
    auto found = row(one.kind, one.id);
    if (const auto by = seen(); found.aggregate && by.record)
      take_effective(found, *by.record);
    return found;
  }
  aggregate_request request() const {
    return {id,           generation,   relocation, source.owner, source.descriptor.node, encoded.slots,
            encoded.root, encoded.authority_before};
  }
  aggregate_target wish() const {
    return {id,           generation,    relocation, attempt, {4, attempt.value}, target.owner, target.stamp,
            limits_of(target.descriptor, encoded.slots), encoded.root};
  }
  const test_node& owner() {
    const auto now = seen();
    return now.record && now.record->owner == target.owner ? target : source;
  }

  void run(decision step) { REQUIRE(w.apply(std::move(step)).what == fragment_outcome::applied); }
  static decision narrow(prepare_decision wide) {
    if (auto* step = std::get_if<fragment>(&wide))
      return std::move(*step);
    return std::holds_alternative<refusal>(wide) ? std::get<refusal>(wide) : refusal::row_exists;
  }
  void all_enter() {
    for (const auto& one : list)
      run(enter_aggregate(w.see(one.kind, one.id), one, seen()));
  }
  void all_leave() {
    for (const auto& one : list)
      run(leave_aggregate(w.see(one.kind, one.id), one.kind, one.id, seen(), owner().owner));
  }
  void enter(unsigned wanted) {
    if (wanted == unmade)
      return;
    run(narrow(create_aggregate(seen(), request())));
    if (wanted == preparing)
      return;
    all_enter();
    if (wanted == entered)
      return;
    if (wanted & (called_off | discarded)) {
      run(set_aggregate_progress(seen(), source.owner, std::nullopt));
      if (wanted == discarded)
        run(drop_aggregate(seen(), source.owner));
      return;
    }
    run(set_aggregate_progress(seen(), source.owner, move_stage::captured));
    if (wanted == captured)
      return;
    run(narrow(reserve_aggregate_move(seen(), wish())));
    if (wanted == reserved_there)
      return;
    run(change_aggregate_owner(seen(), wish()));
    if (wanted == taken_over)
      return;
    if (wanted == parted)
      return all_leave();
    run(set_aggregate_progress(seen(), target.owner, move_stage::completed));
  }

  world w;
  test_node source = w.add_node("a");
  test_node target = w.add_node("b");
  detail::unique_id id{9, 9};
  detail::aggregate_generation generation{5};
  detail::unique_id relocation{2, 2};
  detail::attempt_generation attempt{3};
  std::vector<participant> list;
  encoded_participants encoded;
};

inline void kill_host(world& w, const test_node& node) {
  write(w.store(), {{}, {deletes(lease_key(node.owner.owner))}});
}

} // namespace zlink::placement::test
