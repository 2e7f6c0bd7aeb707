// Every transition of an aggregate, and of rows into and out of it, from every state and with every fence broken.
#include "tests/core/placement/aggregate_scene.hpp"

#include <functional>

using namespace zlink;
using namespace zlink::placement;
using namespace zlink::placement::test;

namespace {

enum fence : unsigned { no_fence = 0, owner_lease = 1, target_lease = 2, target_descriptor = 4 };

struct transition {
  std::string name;
  unsigned from;
  unsigned fences;
  std::function<decision(aggregate_scene&, const observed_aggregate&)> make;
  bool changes_aggregate = true;
};

constexpr unsigned moving = preparing | entered | captured | reserved_there;
constexpr unsigned over = taken_over | finished | called_off | parted;

const participant& member(const aggregate_scene& s) { return s.list[1]; }

const std::vector<transition>& all_transitions() {
  using seen = const observed_aggregate&;
  static const std::vector<transition> all{
    {"Prepare", unmade | discarded, owner_lease,
     [](aggregate_scene& s, seen o) { return s.narrow(create_aggregate(o, s.request())); }},
    {"enter", preparing, owner_lease,
     [](aggregate_scene& s, seen o) {
       return enter_aggregate(s.w.see(member(s).kind, member(s).id), member(s), o);
     }, false},
    {"enter room", preparing, owner_lease,
     [](aggregate_scene& s, seen o) { return enter_aggregate(s.w.see(object_kind::user_spot, "room"), s.list[0], o); },
     false},
    {"Captured", preparing | entered, owner_lease,
     [](aggregate_scene& s, seen o) { return set_aggregate_progress(o, s.owner().owner, move_stage::captured); }},
    {"no progress", preparing | entered | captured | taken_over | finished | parted, owner_lease,
     [](aggregate_scene& s, seen o) { return set_aggregate_progress(o, s.owner().owner, std::nullopt); }},
    {"Completed", taken_over | parted, owner_lease,
     [](aggregate_scene& s, seen o) { return set_aggregate_progress(o, s.owner().owner, move_stage::completed); }},
    {"Prepared by a stage", 0, owner_lease,
     [](aggregate_scene& s, seen o) { return set_aggregate_progress(o, s.owner().owner, move_stage::prepared); }},
    {"Committed by a stage", 0, owner_lease,
     [](aggregate_scene& s, seen o) { return set_aggregate_progress(o, s.owner().owner, move_stage::committed); }},
    {"MoveReserve", preparing | entered | captured, target_lease | target_descriptor,
     [](aggregate_scene& s, seen o) { return s.narrow(reserve_aggregate_move(o, s.wish())); }},
    {"MoveReserve again", moving, target_lease | target_descriptor,
     [](aggregate_scene& s, seen o) {
       auto next = s.wish();
       next.attempt.value += 1;
       return s.narrow(reserve_aggregate_move(o, next));
     }},
    {"MoveRelease", reserved_there, no_fence,
     [](aggregate_scene& s, seen o) { return release_aggregate_move(o, s.relocation, s.attempt); }},
    {"NewOwner", reserved_there, target_lease,
     [](aggregate_scene& s, seen o) { return change_aggregate_owner(o, s.wish()); }},
    {"Preserve", moving | over, owner_lease,
     [](aggregate_scene& s, seen o) { return preserve_aggregate(o, s.owner().owner); }},
    {"abandon", moving, no_fence, [](aggregate_scene&, seen o) { return abandon_aggregate_move(o, {}); }},
    {"leave", taken_over | finished | called_off | discarded, owner_lease,
     [](aggregate_scene& s, seen o) {
       return leave_aggregate(s.w.see(member(s).kind, member(s).id), member(s).kind, member(s).id, o, s.owner().owner);
     }, false},
    {"release", taken_over | finished | called_off | discarded, no_fence,
     [](aggregate_scene& s, seen o) {
       return release_from_aggregate(s.w.see(member(s).kind, member(s).id), member(s).kind, member(s).id,
                                     member(s).generation, o, {});
     }, false},
    {"drop", over, owner_lease, [](aggregate_scene& s, seen o) { return drop_aggregate(o, s.owner().owner); }},
  };
  return all;
}

bool by_dead_owner(const transition& t) { return t.name == "release" || t.name == "abandon"; }

void for_each_pair(const std::function<void(aggregate_scene&, const transition&, unsigned, bool allowed)>& test) {
  for (const auto& t : all_transitions())
    for (const auto from : all_aggregate_states) {
      INFO(t.name << " in state " << from);
      aggregate_scene s;
      s.enter(from);
      test(s, t, from, (t.from & from) != 0);
    }
}

/// Neither the owner of a member nor the slots of a node may change by anything but the commit.
bool owners_are(aggregate_scene& s, const test_node& node) {
  bool all = true;
  for (const auto& one : s.list) {
    const auto row = s.effective(one);
    all = all && row.owner == node.owner && row.node == node.descriptor.node && row.generation == one.generation
          && row.member_of == one.member_of && (row.authority == one.authority) == (node.owner == s.source.owner);
  }
  return all;
}

} // namespace

TEST_CASE("S-89 S-71 S-81 each step of an aggregate starts from its states only, and only the commit changes owners") {
  for_each_pair([](aggregate_scene& s, const transition& t, unsigned from, bool allowed) {
    if (by_dead_owner(t))
      kill_host(s.w, s.owner());
    const bool by_source = (from & (taken_over | finished | parted)) == 0;
    CHECK(owners_are(s, by_source ? s.source : s.target));
    CHECK(s.w.counters_match_rows());
    const auto before = s.w.dump();
    const auto step = t.make(s, s.seen());
    CHECK(std::holds_alternative<fragment>(step) == allowed);
    if (!allowed) {
      CHECK(s.w.dump() == before);
      return;
    }
    CHECK(s.w.apply(step).what == fragment_outcome::applied);
    if (t.name != "release" && !(t.name == "drop" && (from & (taken_over | finished))))
      CHECK(owners_are(s, by_source && t.name != "NewOwner" ? s.source : s.target));
    if (!(t.name == "drop" && (from & (taken_over | finished))))
      CHECK(s.w.counters_match_rows());
    CHECK(s.w.apply(step).what == fragment_outcome::conflict); // the same step a second time
  });
}

TEST_CASE("S-71 S-89 an aggregate or a row that changed since it was read refuses every step") {
  for_each_pair([](aggregate_scene& s, const transition& t, unsigned, bool allowed) {
    if (!allowed)
      return;
    if (by_dead_owner(t))
      kill_host(s.w, s.owner());
    for (const bool row_changes : {false, true}) {
      const auto key = row_changes ? object_key(t.name == "enter room" ? object_kind::user_spot : member(s).kind,
                                                 t.name == "enter room" ? "room" : member(s).id)
                                    : aggregate_key(s.id);
      if (row_changes && t.changes_aggregate)
        continue;
      const auto step = t.make(s, s.seen());
      auto there = read(s.w.store(), key);
      put_one(s.w.store(), key, there.found ? there.found->bytes : encode(aggregate_record{}));
      const auto before = s.w.dump();
      CHECK(s.w.apply(step).what == fragment_outcome::conflict);
      CHECK(s.w.dump() == before);
      if (!there.found)
        write(s.w.store(), {{}, {deletes(key)}});
    }
  });
}

TEST_CASE("S-71 S-78 S-40 a lost or foreign lease refuses every step that needs one, a renewed one none") {
  for_each_pair([](aggregate_scene& s, const transition& t, unsigned, bool allowed) {
    if (!allowed || (t.fences & (owner_lease | target_lease)) == 0)
      return;
    const auto node = (t.fences & target_lease) != 0 ? s.target : s.owner();
    const auto step = t.make(s, s.seen());
    auto regained = node;
    regained.owner.lease.value += 1000;
    s.w.hold_lease(regained, 15s);
    CHECK(s.w.apply(step).what == fragment_outcome::conflict);
    kill_host(s.w, node);
    const auto before = s.w.dump();
    CHECK(s.w.apply(step).what == fragment_outcome::conflict);
    CHECK(s.w.dump() == before);
    s.w.hold_lease(node, 10s);
    s.w.hold_lease(node, 15s);
    CHECK(s.w.apply(step).what == fragment_outcome::applied);
  });
}

TEST_CASE("S-72 S-97 MoveReserve of an aggregate notices another descriptor of the target, its commit does not look") {
  for_each_pair([](aggregate_scene& s, const transition& t, unsigned, bool allowed) {
    if (!allowed || (t.fences & (target_lease | target_descriptor)) == 0)
      return;
    const auto step = t.make(s, s.seen());
    s.w.publish(s.target);
    const bool looks = (t.fences & target_descriptor) != 0;
    CHECK(s.w.apply(step).what == (looks ? fragment_outcome::conflict : fragment_outcome::applied));
    if (looks)
      CHECK(s.w.apply(t.make(s, s.seen())).what == fragment_outcome::applied);
  });
}

TEST_CASE("S-71 S-88 nothing but leaving changes a row that is in an aggregate, as it stands or as readers see it") {
  for (const auto from : {entered, captured, reserved_there, taken_over, finished, called_off, discarded}) {
    INFO("state " << from);
    aggregate_scene s;
    s.enter(from);
    for (const auto& one : {s.list[0], s.list[1]})
      for (const bool raw : {true, false}) {
        auto seen = s.w.see(one.kind, one.id);
        if (!raw)
          *seen.record = s.effective(one);
        const owned_object mine{one.kind, one.id, row_in(seen)->owner};
        move_progress progress;
        progress.relocation = {8, 8};
        auto next = s.target;
        const move_target target{one.kind, one.id, s.relocation, s.attempt, {4, 4}, next.owner, next.stamp, {}};
        const auto entry = s.w.see<object_record>(spot_key(s.source.descriptor.entry_spot_id));
        const std::vector<decision> all{
          preserve(seen, mine), mark_closing(seen, mine), mark_payload_lost(seen, mine), placement::remove(seen, mine),
          set_move_progress(seen, mine, progress), reserve_move(seen, target),
          release_move(seen, one.kind, one.id, s.relocation, s.attempt), change_owner(seen, target, one.member_of),
          release_dead_owner(seen, one.kind, one.id, one.generation, {})};
        for (const auto& step : all)
          CHECK(std::holds_alternative<refusal>(step));
        if (one.kind == object_kind::actor)
          CHECK(std::get<refusal>(change_membership(seen, mine, {s.source.descriptor.entry_spot_id, {}}, entry))
                == refusal::conflict);
      }
    // Nor does anybody join the room so long.
    s.w.create_object(object_kind::actor, "late", s.owner());
    auto room = s.w.see(object_kind::user_spot, "room");
    *room.record = s.effective(s.list[0]);
    CHECK(std::get<refusal>(change_membership(s.w.see(object_kind::actor, "late"), {object_kind::actor, "late", s.owner().owner},
                                              {"room", s.list[0].generation}, room))
          == refusal::conflict);
  }
}
