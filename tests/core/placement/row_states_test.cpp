// Every row transition from every state, with every fence broken.
#include "tests/core/placement/scene.hpp"

#include <functional>

using namespace zlink;
using namespace zlink::placement;
using namespace zlink::placement::test;

namespace {

/// What a transition is fenced by, besides the row's version.
enum fence : unsigned { no_fence = 0, owner_lease = 1, target_lease = 2, target_descriptor = 4, source_descriptor = 8 };

struct transition {
  std::string name;
  unsigned from; // states it may start from
  unsigned to;   // state it ends in; 0: where it was
  unsigned fences;
  std::vector<object_kind> kinds;
  std::function<decision(scene&, const observed_object&)> make;
};

const std::vector<transition>& all_transitions() {
  using seen = const observed_object&;
  const std::vector<object_kind> instance{object_kind::instance_spot};
  const std::vector<object_kind> actor{object_kind::actor};
  static const std::vector<transition> all{
    {"Reserve", absent, reserved, owner_lease | source_descriptor, all_kinds,
     [](scene& s, seen o) { return narrow(reserve(o, s.w.wish(s.kind, "x", s.source))); }},
    {"Commit", reserved, active, owner_lease | source_descriptor, all_kinds,
     [](scene& s, seen o) { return commit(o, s.end(), s.membership(s.source)); }},
    {"Abort", reserved, absent, owner_lease | source_descriptor, all_kinds,
     [](scene& s, seen o) { return abort(o, s.end()); }},
    {"Release", reserved, absent, no_fence, all_kinds,
     [](scene&, seen o) { return release(o, "x", lifecycle_evidence{}); }},
    {"Preserve", owned_states, 0, owner_lease, all_kinds, [](scene& s, seen o) { return preserve(o, s.owned()); }},
    {"Closing", resting_states, closing, owner_lease, all_kinds, [](scene& s, seen o) { return mark_closing(o, s.owned()); }},
    {"cursor", owned_states, 0, owner_lease, instance,
     [](scene& s, seen o) { return advance_cursor(o, s.owned(), 2); }},
    {"root", owned_states, 0, owner_lease, instance, [](scene& s, seen o) { return retire_root(o, s.owned()); }},
    {"payload lost", owned_states, 0, owner_lease, all_kinds,
     [](scene& s, seen o) { return mark_payload_lost(o, s.owned()); }},
    {"Preparing", resting_states | moving, moving, owner_lease, all_kinds,
     [](scene& s, seen o) { return set_move_progress(o, s.owned(), s.progress(move_stage::preparing)); }},
    {"Captured", moving, moving, owner_lease, all_kinds,
     [](scene& s, seen o) { return set_move_progress(o, s.owned(), s.progress(move_stage::captured)); }},
    {"Completed", committed, completed, owner_lease, all_kinds,
     [](scene& s, seen o) { return set_move_progress(o, s.owned(), s.progress(move_stage::completed)); }},
    {"no progress", moving | committed | completed, active, owner_lease, all_kinds,
     [](scene& s, seen o) { return set_move_progress(o, s.owned(), std::nullopt); }},
    {"Membership", resting_states, 0, owner_lease, actor,
     [](scene& s, seen o) {
       const auto& entry = s.owner().descriptor.entry_spot_id;
       return change_membership(o, s.owned(), {entry, {}}, s.w.see<object_record>(spot_key(entry)));
     }},
    {"Reincarnate", closing, active, owner_lease, instance,
     [](scene& s, seen o) { return reincarnate(o, s.owned()); }},
    {"Delete", owned_states, absent, owner_lease, all_kinds, [](scene& s, seen o) { return remove(o, s.owned()); }},
    {"explicit release", owned_states, absent, no_fence, all_kinds,
     [](scene& s, seen o) {
       const auto* row = row_in(o);
       return release_dead_owner(o, s.kind, "x", row ? row->generation : detail::object_generation{1}, {});
     }},
    {"MoveReserve", moving | prepared, prepared, target_lease | target_descriptor, all_kinds,
     [](scene& s, seen o) { return reserve_move(o, s.move()); }},
    {"MoveRelease", prepared, active, no_fence, all_kinds,
     [](scene& s, seen o) { return release_move(o, s.kind, "x", s.relocation, s.attempt); }},
    {"NewOwner", prepared, committed, target_lease, all_kinds,
     [](scene& s, seen o) { return change_owner(o, s.move(), s.membership(s.target)); }},
  };
  return all;
}

/// Runs `test` for every kind, state and transition, in a world of its own.
void for_each_pair(const std::function<void(scene&, const transition&, state, bool allowed)>& test) {
  for (const auto& t : all_transitions())
    for (const auto kind : t.kinds)
      for (const auto from : {absent, claimed, reserved, active, closing, moving, prepared, committed, completed, aggregated}) {
        if (from == claimed && kind == object_kind::actor)
          continue;
        INFO(t.name << " of kind " << static_cast<int>(kind) << " in state " << from);
        scene s{kind};
        s.enter(from);
        test(s, t, from, (t.from & from) != 0);
      }
}

} // namespace

TEST_CASE("S-71 S-81 each transition starts from its states only, ends in its state and keeps counters equal to rows") {
  for_each_pair([](scene& s, const transition& t, state from, bool allowed) {
    const bool by_dead_owner = t.name == "Release" || t.name == "explicit release";
    if (by_dead_owner)
      kill_host(s, s.owner());
    if (t.name == "Release")
      write(s.w.store(), {{}, {deletes(descriptor_key(s.source.descriptor.node))}});
    const auto before = s.w.dump();
    const auto step = t.make(s, s.seen());
    CHECK(std::holds_alternative<fragment>(step) == allowed);
    if (!allowed) {
      CHECK(s.w.dump() == before);
      return;
    }
    CHECK(s.w.apply(step).what == fragment_outcome::applied);
    CHECK(s.now() == (t.to != 0 ? t.to : static_cast<unsigned>(from)));
    CHECK(s.w.counters_match_rows());
    CHECK(s.w.apply(step).what == fragment_outcome::conflict); // the same step a second time
    CHECK(s.w.counters_match_rows());
  });
}

TEST_CASE("S-71 a row that changed since it was read refuses every transition") {
  for_each_pair([](scene& s, const transition& t, state, bool allowed) {
    if (!allowed || t.name == "Reserve")
      return;
    const auto seen = s.seen();
    if (!row_in(seen))
      return;
    auto evidence_free = t.make(s, seen);
    put_one(s.w.store(), object_key(s.kind, "x"), encode(*row_in(seen)));
    const auto before = s.w.dump();
    CHECK(s.w.apply(std::move(evidence_free)).what == fragment_outcome::conflict);
    CHECK(s.w.dump() == before);
  });
}

TEST_CASE("S-71 S-78 S-40 a lost or foreign lease refuses every transition that needs one, a renewed one none") {
  for_each_pair([](scene& s, const transition& t, state, bool allowed) {
    if (!allowed || (t.fences & (owner_lease | target_lease)) == 0)
      return;
    const auto node = (t.fences & target_lease) != 0 ? s.target : s.owner();
    const auto step = t.make(s, s.seen());
    auto regained = node;
    regained.owner.lease.value += 1000;
    s.w.hold_lease(regained, 15s);
    auto before = s.w.dump();
    CHECK(s.w.apply(step).what == fragment_outcome::conflict);
    CHECK(s.w.dump() == before);
    kill_host(s, node);
    before = s.w.dump();
    CHECK(s.w.apply(step).what == fragment_outcome::conflict);
    CHECK(s.w.dump() == before);
    s.w.hold_lease(node, 10s);
    s.w.hold_lease(node, 15s);
    CHECK(s.w.apply(step).what == fragment_outcome::applied);
  });
}

TEST_CASE("S-72 Reserve, Commit, Abort and MoveReserve notice that the target's descriptor is another one") {
  for_each_pair([](scene& s, const transition& t, state, bool allowed) {
    if (!allowed || (t.fences & (source_descriptor | target_descriptor)) == 0)
      return;
    const auto step = t.make(s, s.seen());
    auto& node = (t.fences & source_descriptor) != 0 ? s.source : s.target;
    s.w.publish(node);
    auto before = s.w.dump();
    CHECK(s.w.apply(step).what == fragment_outcome::conflict);
    CHECK(s.w.dump() == before);
    // Same lifecycle, new revision: rebuilt with what was read, it works (S-73).
    CHECK(s.w.apply(t.make(s, s.seen())).what == fragment_outcome::applied);
  });
}
