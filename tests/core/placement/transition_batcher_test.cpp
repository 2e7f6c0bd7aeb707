// Many transitions in few batches: merging, folding, bisection, unclear ends.
#include "tests/core/placement/batch_harness.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <stdexcept>

using namespace zlink;
using namespace zlink::placement;
using namespace zlink::placement::test;

TEST_CASE(
  "S-81 many fragments become one batch, the capacity record is written once, and each learns its row's version") {
  harness h;
  for (int i = 0; i < 500; ++i)
    h.add(h.reserve_step(i));
  CHECK(h.writes() == 0);
  h.run();
  CHECK(h.writes() == 1);
  CHECK(h.reads() == 3); // the capacity record and the counters, for the first time
  CHECK(h.ends.count(fragment_outcome::applied) == 500);
  for (int i = 0; i < 500; ++i)
    CHECK(h.ends.all[static_cast<std::size_t>(i)]->row_version == h.w.see(spot, name(i)).version);
  CHECK(h.w.capacity_of(h.node).spots == slot_bucket{0, 500});
  CHECK(h.w.counters_match_rows());
  h.add(h.reserve_step(500));
  h.run();
  CHECK(h.writes() == 2);
  CHECK(h.reads() == 3); // the copies are still right
  CHECK(h.w.batcher.is_idle());
}

TEST_CASE("S-11 more fragments than a batch may hold become several batches") {
  harness h;
  for (int i = 0; i < 5000; ++i)
    h.add(h.reserve_step(i));
  h.run();
  CHECK(h.ends.count(fragment_outcome::applied) == 5000);
  CHECK(h.writes() == 3);
  CHECK(h.w.counters_match_rows());
}

TEST_CASE("S-11 large fragments are split over batches by their bytes, one beyond any batch is refused") {
  harness h;
  for (int i = 0; i < 9; ++i) {
    auto request = h.w.wish(spot, name(i), h.node);
    request_content content;
    content.size = request_content::size_limit;
    request.request_apart.assign(content.size, 'r');
    request.content = content;
    h.add(h.reserve_step(request));
  }
  h.run();
  CHECK(h.ends.count(fragment_outcome::applied) == 9);
  CHECK(h.writes() == 3);
  fragment huge;
  for (const char* key : {"a", "b", "c"})
    huge.mutations.push_back(puts(key, std::string(1024 * 1024, 'v')));
  CHECK_THROWS_AS(h.w.batcher.add(std::move(huge), [](auto) {}), std::invalid_argument);
  CHECK_THROWS_AS(h.w.batcher.add({}, [](auto) {}), std::invalid_argument);
  CHECK_THROWS_AS(h.w.batcher.add({{}, {puts("a", "1"), puts("a", "2")}, {}}, [](auto) {}), std::invalid_argument);
  CHECK(h.w.batcher.is_idle());
}

TEST_CASE("S-10 one failing fragment fails no other, wherever it stands") {
  for (const int culprit : {0, 1, 37, 62, 63}) {
    harness h;
    for (int i = 0; i < 64; ++i)
      h.add(h.reserve_step(i));
    // Somebody was faster.
    zlink::test::put_one(h.w.store(), spot_key(name(culprit)),
                         encode(entry_claim{h.node.descriptor.node, h.node.owner}));
    h.run();
    CHECK(h.ends.count(fragment_outcome::applied) == 63);
    CHECK(h.ends.all[static_cast<std::size_t>(culprit)]->what == fragment_outcome::conflict);
    CHECK(h.w.counters_match_rows());
    // What they share (slots, two counters, lease, descriptor) is read once, not for every half; for the culprit, once it
    // is alone, slots and counters again.
    CHECK(h.reads() == 11);
    CHECK(h.writes() <= 13);
  }
}

TEST_CASE("S-10 S-81 a batch of which many fail, in a pattern, is told apart exactly") {
  harness h;
  std::vector<fragment> steps;
  for (int i = 0; i < 300; ++i)
    steps.push_back(h.reserve_step(i));
  for (int i = 0; i < 300; i += 3) {
    // Another host's doing: the batcher knows nothing of it.
    zlink::test::put_one(h.w.store(), spot_key(name(i)), encode(entry_claim{h.node.descriptor.node, h.node.owner}));
  }
  for (auto& step : steps)
    h.add(std::move(step));
  h.run();
  for (int i = 0; i < 300; ++i)
    CHECK(h.ends.all[static_cast<std::size_t>(i)]->what
          == (i % 3 == 0 ? fragment_outcome::conflict : fragment_outcome::applied));
  CHECK(h.w.capacity_of(h.node).spots == slot_bucket{0, 200});
}

TEST_CASE("S-40 S-71 a lost lease ends a whole batch with one Conflict and no bisection") {
  harness h;
  for (int i = 0; i < 200; ++i)
    h.add(h.reserve_step(i));
  h.w.time->advance(15s);
  h.run();
  CHECK(h.ends.count(fragment_outcome::conflict) == 200);
  CHECK(h.writes() == 1);
  CHECK(h.reads() <= 8);
}

TEST_CASE("S-73 a capacity record changed by another host costs one repetition, not the callers' operations") {
  harness h;
  h.add(h.reserve_step(0));
  h.run();
  auto record = h.w.capacity_of(h.node);
  record.actors.active += 5; // a remote coordinator reserved and its target committed
  zlink::test::put_one(h.w.store(), capacity_key(h.node.descriptor.node), encode(record));
  const auto before = h.writes();
  for (int i = 1; i < 50; ++i)
    h.add(h.reserve_step(i));
  h.run();
  CHECK(h.ends.count(fragment_outcome::applied) == 50);
  CHECK(h.writes() == before + 2);
  CHECK(h.w.capacity_of(h.node).actors == slot_bucket{5, 0});
  CHECK(h.w.capacity_of(h.node).spots == slot_bucket{0, 50});
}

TEST_CASE("S-82 C-36 of many that want the last slots as many get them as there are, the others learn it for sure") {
  harness h;
  h.node = h.w.add_node("full", 0, 10, 0);
  for (int i = 0; i < 40; ++i)
    h.add(h.reserve_step(i));
  h.run();
  CHECK(h.ends.count(fragment_outcome::applied) == 10);
  CHECK(h.ends.count(fragment_outcome::no_capacity) == 30);
  CHECK(h.w.capacity_of(h.node).spots == slot_bucket{0, 10});
}

TEST_CASE("S-82 nobody is refused by an outdated copy or by a slot whose taker failed") {
  harness h;
  h.node = h.w.add_node("full", 0, 1, 0);
  h.add(h.reserve_step(0));
  h.run();
  CHECK(h.ends.count(fragment_outcome::applied) == 1);
  // Another host frees the slot without this batcher's knowledge.
  zlink::test::put_one(h.w.store(), capacity_key(h.node.descriptor.node),
                       encode(capacity_record{h.node.descriptor.node.lifecycle, {}, {}, {}}));
  write(h.w.store(), {{}, {deletes(spot_key(name(0)))}});
  // The first of two takes the slot in the batch, but its row is there already.
  auto doomed = h.reserve_step(1);
  zlink::test::put_one(h.w.store(), spot_key(name(1)), encode(entry_claim{h.node.descriptor.node, h.node.owner}));
  h.add(std::move(doomed));
  h.add(h.reserve_step(2));
  h.run();
  CHECK(h.ends.all[1]->what == fragment_outcome::conflict);
  CHECK(h.ends.all[2]->what == fragment_outcome::applied);
}

TEST_CASE("S-84 S-21 corrupt slots are told apart from a row that changed; an unreadable record is left alone") {
  harness h;
  const auto reservation = h.w.reserve_object(spot, "x", h.node);
  const reservation_end end{"x", reservation, h.node.owner, h.node.stamp, {}};
  const auto step = std::get<fragment>(commit(h.w.see(spot, "x"), end, std::nullopt));
  const auto key = capacity_key(h.node.descriptor.node);
  auto right = h.w.capacity_of(h.node);
  auto wrong = right;
  wrong.spots = {};
  zlink::test::put_one(h.w.store(), key, encode(wrong));
  CHECK(h.w.apply(step).what == fragment_outcome::corrupt);
  auto newer = encode(right);
  ++newer[1];
  zlink::test::put_one(h.w.store(), key, newer);
  const auto before = h.w.dump();
  CHECK(h.w.apply(step).what == fragment_outcome::corrupt);
  CHECK(h.w.dump() == before);
  zlink::test::put_one(h.w.store(), key, encode(right));
  CHECK(h.w.apply(step).what == fragment_outcome::applied);
  CHECK(h.w.apply(step).what == fragment_outcome::conflict); // its slots are gone because its row is
}

TEST_CASE("S-71 fragments of one row go to the store one after the other, the second sees the first") {
  harness h;
  h.add(h.reserve_step(h.w.wish(spot, "same", h.node)));
  h.add(h.reserve_step(h.w.wish(spot, "same", h.node)));
  h.run();
  CHECK(h.ends.all[0]->what == fragment_outcome::applied);
  CHECK(h.ends.all[1]->what == fragment_outcome::conflict);
  CHECK(h.w.counters_match_rows());
}

TEST_CASE("S-71 a fragment that looks at a row and one that changes it are never merged") {
  harness h;
  h.w.create_object(object_kind::actor, "actor", h.node);
  h.w.create_object(spot, "room", h.node);
  const owned_object room{spot, "room", h.node.owner};
  const auto seen_room = h.w.see<object_record>(spot_key("room"));
  const auto join = change_membership(h.w.see(object_kind::actor, "actor"), {object_kind::actor, "actor", h.node.owner},
                                      {"room", row_in(seen_room)->generation}, seen_room);
  h.add(std::get<fragment>(mark_closing(seen_room, room)));
  h.add(std::get<fragment>(join));
  h.run();
  CHECK(h.ends.all[0]->what == fragment_outcome::applied);
  CHECK(h.ends.all[1]->what == fragment_outcome::conflict);
}

TEST_CASE("S-11 C-74 two fragments that keep a terminal under one key go into two batches") {
  harness h;
  std::vector<reservation_end> reserved;
  for (const char* id : {"x", "y"}) {
    reserved.push_back({id, h.w.reserve_object(spot, id, h.node), h.node.owner, h.node.stamp, {}});
    reserved.back().terminal = kept_terminal{"terminal", {}, 5min};
  }
  for (const auto& end : reserved)
    h.add(std::get<fragment>(abort(h.w.see(spot, end.id), end)));
  const auto before = h.writes();
  h.run();
  CHECK(h.ends.count(fragment_outcome::applied) == 2);
  CHECK(h.writes() == before + 2);
}

TEST_CASE("D-19 while a batch is under way the next one collects, and there is never a second one") {
  harness h;
  h.w.faults->once(store_operation::write, "", store_fault::hold_reply);
  h.add(h.reserve_step(0));
  h.run();
  CHECK(h.w.faults->held() == 1);
  for (int i = 1; i < 100; ++i) {
    h.add(h.reserve_step(i));
    h.run();
  }
  CHECK(h.writes() == 1);
  h.w.faults->release();
  h.w.posting->run();
  CHECK(h.ends.count(fragment_outcome::applied) == 100);
  CHECK(h.writes() == 2);
}

TEST_CASE("D-19 completions may add and flush") {
  harness h;
  int chain = 0;
  std::function<void(int)> again = [&](int i) {
    h.w.batcher.add(h.reserve_step(i), [&, i](fragment_result result) {
      CHECK(result.what == fragment_outcome::applied);
      ++chain;
      if (i < 20)
        again(i + 1);
      h.w.batcher.flush();
    });
  };
  again(0);
  h.run();
  CHECK(chain == 21);
}

TEST_CASE("S-156 S-157 after a lost answer the rows are read and every fragment learns the truth") {
  for (const auto fault : {store_fault::lose_reply, store_fault::vanish, store_fault::refuse}) {
    harness h;
    h.w.create_object(spot, "old", h.node);
    for (int i = 0; i < 20; ++i)
      h.add(h.reserve_step(i));
    h.add(std::get<fragment>(remove(h.w.see(spot, "old"), {spot, "old", h.node.owner})));
    h.w.faults->once(store_operation::write, spot_key(name(0)), fault);
    h.run();
    const bool applied = fault == store_fault::lose_reply;
    CHECK(h.ends.count(applied ? fragment_outcome::applied : fragment_outcome::not_applied) == 21);
    for (int i = 0; i < 20; ++i) {
      CHECK(h.exists(i) == applied);
      if (applied)
        CHECK(h.ends.all[static_cast<std::size_t>(i)]->row_version == h.w.see(spot, name(i)).version);
    }
    CHECK(h.w.counters_match_rows());
    const auto before = h.writes();
    h.add(h.reserve_step(100));
    h.run();
    CHECK(h.ends.all.back()->what == fragment_outcome::applied);
    CHECK(h.writes() == before + 1); // by slots that were read again
    CHECK(h.w.counters_match_rows());
  }
}

TEST_CASE("S-156 a row that others changed while the answer was lost is a conflict, not a success") {
  harness h;
  h.w.create_object(spot, "x", h.node);
  h.add(std::get<fragment>(mark_closing(h.w.see(spot, "x"), {spot, "x", h.node.owner})));
  h.w.faults->once(store_operation::write, "", store_fault::vanish);
  h.w.batcher.flush();
  zlink::test::put_one(h.w.store(), spot_key("x"), encode(entry_claim{h.node.descriptor.node, h.node.owner}));
  h.w.posting->run();
  CHECK(h.ends.all[0]->what == fragment_outcome::conflict);
}

TEST_CASE("S-156 S-100 a fence puts the same bytes: lost before the commit it is not taken for done") {
  for (const auto fault : {store_fault::vanish, store_fault::lose_reply}) {
    harness h;
    h.w.create_object(spot, "x", h.node);
    const auto before = h.w.see(spot, "x").version;
    h.add(std::get<fragment>(preserve(h.w.see(spot, "x"), {spot, "x", h.node.owner})));
    h.w.faults->once(store_operation::write, "", fault);
    h.run();
    const bool done = fault == store_fault::lose_reply;
    CHECK(h.ends.all[0]->what == (done ? fragment_outcome::applied : fragment_outcome::not_applied));
    CHECK((h.w.see(spot, "x").version == before) == !done);
  }
}

TEST_CASE("S-156 S-159 a write that lands late spoils nothing and completes nothing twice") {
  harness h;
  h.w.faults->once(store_operation::write, "", store_fault::late);
  h.add(h.reserve_step(0));
  h.run();
  CHECK(h.ends.all[0]->what == fragment_outcome::not_applied);
  h.add(h.reserve_step(1));
  h.w.batcher.flush();
  h.w.faults->release(); // now the first one happens
  h.w.posting->run();
  CHECK(h.ends.all[1]->what == fragment_outcome::applied);
  CHECK(h.w.counters_match_rows());
}

TEST_CASE("S-156 while not even reads are answered nothing is decided, and resume goes on") {
  harness h;
  bool down = false;
  h.w.faults->set_rule([&](const store_call& call) {
    return down ? (call.what == store_operation::write ? store_fault::lose_reply : store_fault::vanish)
                : store_fault::none;
  });
  h.add(h.reserve_step(0));
  h.run();
  for (int i = 1; i < 10; ++i)
    h.add(h.reserve_step(i));
  down = true;
  h.run();
  CHECK(h.w.batcher.is_stalled());
  CHECK(h.w.stalls == 1);
  h.w.batcher.resume();
  h.w.posting->run();
  CHECK(h.w.stalls == 2);
  CHECK(h.ends.count(fragment_outcome::applied) == 1);
  down = false;
  h.w.batcher.resume();
  h.w.posting->run();
  CHECK(!h.w.batcher.is_stalled());
  CHECK(h.ends.count(fragment_outcome::applied) == 10);
  CHECK(h.w.counters_match_rows());
}

TEST_CASE("S-159 S-119 answers that come after the batcher is gone touch nothing") {
  for (const int answers : {0, 1, 2, 3}) { // gone while it waits for one of three reads, for the write
    world w;
    const auto node = w.add_node("a");
    int ends = 0;
    {
      transition_batcher brief{w.posting, [] {}};
      brief.add(std::get<fragment>(reserve(w.see(spot, "x"), w.wish(spot, "x", node))), [&](auto) { ++ends; });
      brief.flush();
      for (int i = 0; i < answers; ++i)
        w.posting->run_one();
    }
    CHECK(w.faults->count(store_operation::write) == (answers == 3 ? 1U : 0U));
    w.posting->run();
    CHECK(ends == 0);
  }
}

TEST_CASE("S-80 S-81 S-156 random transitions of three hosts with random faults keep counters equal to rows") {
  world w;
  std::vector<test_node> nodes{w.add_node("a", 30, 20, 12), w.add_node("b", 30, 20, 12), w.add_node("c")};
  transition_batcher second{w.posting, [&] { ++w.stalls; }}; // another host, with copies of its own
  const std::vector<object_kind> kinds{object_kind::actor, object_kind::user_spot, object_kind::instance_spot};
  w.faults->set_rule([&](const store_call& call) {
    if (call.what != store_operation::write || w.random.below(6) != 0)
      return store_fault::none;
    constexpr store_fault faults[]{store_fault::lose_reply, store_fault::vanish, store_fault::refuse,
                                   store_fault::conflict};
    return faults[w.random.below(4)];
  });
  std::array<int, 6> outcomes{};
  int added = 0;
  const auto any_step = [&](object_kind kind, const std::string& id) -> decision {
    const auto seen = w.see(kind, id);
    const auto* row = row_in(seen);
    const auto& node = nodes[w.random.below(nodes.size())];
    if (!row)
      return std::get<fragment>(reserve(seen, w.wish(kind, id, node)));
    const auto home =
      std::find_if(nodes.begin(), nodes.end(), [&](const test_node& n) { return n.owner == row->owner; });
    const owned_object owned{kind, id, row->owner};
    if (row->state == allocation_state::reserved) {
      const reservation_end end{id, row->pending->reservation, row->owner, home->stamp, {}};
      return w.random.below(4) == 0 ? abort(seen, end) : commit(seen, end, world::first_membership(kind, *home));
    }
    const detail::unique_id relocation{1, 1};
    const detail::attempt_generation attempt{w.random.next() | 1};
    const auto limits = limits_of(node.descriptor, row->slots);
    const move_target target{kind, id, relocation, attempt, {2, 2}, node.owner, node.stamp, limits};
    if (row->move && row->move->stage == move_stage::prepared && w.random.below(3) != 0) {
      const auto to =
        std::find_if(nodes.begin(), nodes.end(), [&](const auto& n) { return n.owner == row->move->target_owner; });
      const move_target same{kind, id, relocation, row->move->attempt, {2, 2}, to->owner, to->stamp, {}};
      return w.random.below(3) == 0 ? release_move(seen, kind, id, relocation, row->move->attempt)
                                    : change_owner(seen, same, world::first_membership(kind, *to));
    }
    move_progress preparing;
    preparing.relocation = relocation;
    switch (w.random.below(6)) {
      case 0: return remove(seen, owned);
      case 1: return mark_closing(seen, owned);
      case 2: return reincarnate(seen, owned);
      case 3: return set_move_progress(seen, owned, std::nullopt);
      case 4: return set_move_progress(seen, owned, preparing);
      default: return reserve_move(seen, target);
    }
  };
  for (int round = 0; round < 400; ++round) {
    for (auto n = w.random.below(30); n > 0; --n) {
      const auto kind = kinds[w.random.below(kinds.size())];
      auto step = any_step(kind, (kind == object_kind::user_spot ? "u" : "i") + std::to_string(w.random.below(60)));
      if (auto* some = std::get_if<fragment>(&step)) {
        ++added;
        (w.random.below(2) == 0 ? w.batcher : second).add(std::move(*some), [&](fragment_result result) {
          ++outcomes[static_cast<std::size_t>(result.what)];
        });
      }
    }
    w.batcher.flush();
    second.flush();
    w.posting->run();
    REQUIRE(w.counters_match_rows());
    CHECK(w.capacity_of(nodes[0]).actors.active + w.capacity_of(nodes[0]).actors.reserved <= 30);
    CHECK(w.capacity_of(nodes[1]).spots.active + w.capacity_of(nodes[1]).spots.reserved <= 20);
  }
  CHECK(w.batcher.is_idle());
  CHECK(second.is_idle());
  CHECK(outcomes[static_cast<std::size_t>(fragment_outcome::applied)] > 1000);
  CHECK(outcomes[static_cast<std::size_t>(fragment_outcome::conflict)] > 50);
  CHECK(outcomes[static_cast<std::size_t>(fragment_outcome::no_capacity)] > 0);
  CHECK(outcomes[static_cast<std::size_t>(fragment_outcome::not_applied)] > 50);
  CHECK(outcomes[static_cast<std::size_t>(fragment_outcome::corrupt)] == 0);
  CHECK(std::accumulate(outcomes.begin(), outcomes.end(), 0) == added);
}
