// The numbers of incarnations and owners, drawn inside the batch that stores their row.
#include "tests/core/placement/batch_harness.hpp"
#include "tests/core/placement/scene.hpp"

#include <map>
#include <memory>

using namespace zlink;
using namespace zlink::placement;
using namespace zlink::placement::test;

TEST_CASE("S-31 S-33 C-120 hosts that create, end and reincarnate one id in turn never issue a smaller number") {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6, 7, 8}) {
    CAPTURE(seed);
    world w;
    w.random = counting_random{seed};
    const auto node = w.add_node("a");
    std::vector<std::unique_ptr<transition_batcher>> hosts;
    for (int i = 0; i < 3; ++i)
      hosts.push_back(std::make_unique<transition_batcher>(w.posting, [] {}));
    w.faults->set_rule([&](const store_call& call) {
      if (call.what != store_operation::write || w.random.below(8) != 0)
        return store_fault::none;
      return w.random.below(2) == 0 ? store_fault::lose_reply : store_fault::vanish;
    });
    std::map<std::string, std::uint64_t> last;
    std::map<std::uint64_t, int> issued;
    const auto next_step = [&](const std::string& id) -> decision {
      const auto seen = w.see(object_kind::instance_spot, id);
      const auto* row = row_in(seen);
      if (row == nullptr)
        return std::get<fragment>(reserve(seen, w.wish(object_kind::instance_spot, id, node)));
      if (row->state == allocation_state::reserved) {
        const reservation_end end{id, row->pending->reservation, node.owner, node.stamp, {}};
        return w.random.below(3) == 0 ? abort(seen, end) : commit(seen, end, std::nullopt);
      }
      const owned_object owned{object_kind::instance_spot, id, node.owner};
      if (row->closing)
        return w.random.below(2) == 0 ? reincarnate(seen, owned) : placement::remove(seen, owned);
      return mark_closing(seen, owned);
    };
    for (int round = 0; round < 600; ++round) {
      for (auto& host : hosts) {
        const auto id = "i" + std::to_string(w.random.below(4));
        auto step = next_step(id);
        const bool owners = row_in(w.see(object_kind::instance_spot, id)) != nullptr;
        if (auto* some = std::get_if<fragment>(&step); some && (!owners || host == hosts[0])) // the owner is one host
          host->add(std::move(*some), [&, id](fragment_result end) {
            if (end.what != fragment_outcome::applied || !end.numbers.object)
              return;
            CHECK(end.numbers.object.value > std::exchange(last[id], end.numbers.object.value));
            CHECK(++issued[end.numbers.object.value] == 1);
            CHECK(end.numbers.object.value < w.see<counter_record>(counter_key(sequence::object)).record->next);
          });
      }
      for (auto& host : hosts)
        host->flush();
      w.posting->run();
      for (const auto& [id, highest] : last)
        if (const auto seen = w.see(object_kind::instance_spot, id); const auto* row = row_in(seen))
          CHECK(row->generation.value == highest);
    }
    CHECK(issued.size() > 200);
  }
}

TEST_CASE("S-31 numbers come in the batch that stores their row, not from a write of their own") {
  harness h;
  h.w.faults->set_rule([&](const store_call& call) {
    if (call.batch != nullptr) {
      int counters = 0;
      bool row = false;
      for (const auto& mutation : call.batch->mutations) {
        counters += mutation.key == counter_key(sequence::object) || mutation.key == counter_key(sequence::authority);
        row = row || mutation.key == spot_key(name(0));
      }
      CHECK(counters == (row ? 2 : 0));
    }
    return store_fault::none;
  });
  h.add(h.reserve_step(0));
  h.run();
  CHECK(h.writes() == 1);
  CHECK(h.ends.all[0]->numbers.object.value == 1);
  CHECK(row_in(h.w.see(spot, name(0)))->generation == h.ends.all[0]->numbers.object);
  CHECK(row_in(h.w.see(spot, name(0)))->authority == h.ends.all[0]->numbers.authority);
}

TEST_CASE("S-73 a counter advanced by another host costs one repetition, for one fragment as for many") {
  for (const int many : {1, 64}) {
    harness h;
    transition_batcher other{h.w.posting, [] {}};
    for (const int round : {0, 1, 2}) {
      const auto writes = h.writes();
      const auto first = h.ends.all.size();
      for (int i = 0; i < many; ++i)
        h.add(h.reserve_step(round * 1000 + i));
      h.run();
      for (auto i = first; i < h.ends.all.size(); ++i)
        CHECK(h.ends.all[i]->what == fragment_outcome::applied);
      CHECK(h.writes() - writes == (round == 0 ? 1U : 2U));
      std::optional<fragment_outcome> end; // the rival uses the numbers, and slots, too
      other.add(h.reserve_step(round * 1000 + 500), [&](fragment_result r) { end = r.what; });
      other.flush();
      h.w.posting->run();
      CHECK(end == fragment_outcome::applied);
    }
    CHECK(h.w.counters_match_rows());
  }
}

TEST_CASE("S-30 C-120 nobody is refused by an outdated copy of a counter") {
  harness h;
  h.add(h.reserve_step(0));
  h.run(); // this host knows the counters now
  transition_batcher other{h.w.posting, [] {}};
  const auto by_other = [&](fragment step) {
    std::optional<fragment_outcome> end;
    other.add(std::move(step), [&](fragment_result r) { end = r.what; });
    other.flush();
    h.w.posting->run();
    REQUIRE(end == fragment_outcome::applied);
  };
  // The other one creates and closes "i" with numbers that this one has never seen, then this one reincarnates it.
  const auto wish = h.w.wish(object_kind::instance_spot, "i", h.node);
  by_other(std::get<fragment>(reserve(h.w.see(wish.kind, "i"), wish)));
  const owned_object owned{wish.kind, "i", h.node.owner};
  by_other(std::get<fragment>(
    commit(h.w.see(wish.kind, "i"), {"i", wish.reservation, h.node.owner, h.node.stamp, {}}, std::nullopt)));
  by_other(std::get<fragment>(mark_closing(h.w.see(wish.kind, "i"), owned)));
  const auto before = *row_in(h.w.see(wish.kind, "i"));
  h.add(std::get<fragment>(reincarnate(h.w.see(wish.kind, "i"), owned)));
  h.run();
  CHECK(h.ends.all.back()->what == fragment_outcome::applied);
  CHECK(row_in(h.w.see(wish.kind, "i"))->generation > before.generation);
}

TEST_CASE("S-21 a counter of another structure version refuses what needs numbers and lets the rest pass") {
  harness h;
  h.add(h.reserve_step(0));
  h.run();
  auto damaged = encode(counter_record{500});
  damaged[1] = static_cast<char>(record_version + 1);
  zlink::test::put_one(h.w.store(), counter_key(sequence::object), damaged);
  transition_batcher other{h.w.posting, [] {}};
  std::vector<fragment_outcome> ends;
  const auto row = *row_in(h.w.see(spot, name(0)));
  const reservation_end end{name(0), row.pending->reservation, h.node.owner, h.node.stamp, {}};
  other.add(h.reserve_step(1), [&](fragment_result r) { ends.push_back(r.what); });
  other.add(std::get<fragment>(commit(h.w.see(spot, name(0)), end, std::nullopt)),
            [&](fragment_result r) { ends.push_back(r.what); });
  other.flush();
  h.w.posting->run();
  CHECK(std::count(ends.begin(), ends.end(), fragment_outcome::corrupt) == 1);
  CHECK(std::count(ends.begin(), ends.end(), fragment_outcome::applied) == 1);
  CHECK(zlink::test::read(h.w.store(), counter_key(sequence::object)).found->bytes == damaged);
  CHECK(!h.exists(1));
}

TEST_CASE("S-30 without a number left nothing is reserved, reincarnated or given another owner, and nothing changes") {
  for (const auto which : {sequence::object, sequence::authority}) {
    scene fresh{object_kind::instance_spot};
    scene closed{object_kind::instance_spot};
    scene moved{object_kind::instance_spot};
    closed.enter(closing);
    moved.enter(prepared);
    for (auto* s : {&fresh, &closed, &moved}) {
      put_one(s->w.store(), counter_key(which), encode(counter_record{generation_limit}));
      const auto before = s->w.dump();
      const auto step = s == &fresh    ? narrow(reserve(s->seen(), s->w.wish(s->kind, "x", s->source)))
                        : s == &closed ? reincarnate(s->seen(), s->owned())
                                       : change_owner(s->seen(), s->move(), std::nullopt);
      // Another host, whose copies of the counters are up to date.
      transition_batcher other{s->w.posting, [] {}};
      std::optional<fragment_outcome> end;
      other.add(std::get<fragment>(step), [&](fragment_result r) { end = r.what; });
      other.flush();
      s->w.posting->run();
      const bool may = s == &moved && which == sequence::object; // which a move does not issue
      CHECK(end == (may ? fragment_outcome::applied : fragment_outcome::exhausted));
      CHECK((s->w.dump() == before) == !may);
    }
  }
}

TEST_CASE("S-30 S-31 the last number is issued, then the counter stands at its mark for good") {
  scene s{object_kind::user_spot};
  put_one(s.w.store(), counter_key(sequence::object), encode(counter_record{generation_limit - 2}));
  std::vector<fragment_result> ends;
  for (int i = 0; i < 4; ++i) {
    const auto id = "x" + std::to_string(i);
    s.w.batcher.add(std::get<fragment>(reserve(s.w.see(s.kind, id), s.w.wish(s.kind, id, s.source))),
                    [&](fragment_result r) { ends.push_back(std::move(r)); });
  }
  s.w.batcher.flush();
  s.w.posting->run();
  REQUIRE(ends.size() == 4);
  int applied = 0;
  for (const auto& end : ends)
    applied += end.what == fragment_outcome::applied;
  CHECK(applied == 2);
  CHECK(s.w.see(s.kind, "x0").record);
  CHECK(row_in(s.w.see(s.kind, "x1"))->generation.value == generation_limit - 1);
  CHECK(s.w.see<counter_record>(counter_key(sequence::object)).record->next == generation_limit);
  CHECK(s.w.counters_match_rows());
}

TEST_CASE("C-120 a counter that fell behind the row is corruption and changes nothing") {
  scene s{object_kind::instance_spot};
  s.enter(closing);
  put_one(s.w.store(), counter_key(sequence::object), encode(counter_record{1}));
  const auto before = s.w.dump();
  transition_batcher other{s.w.posting, [] {}};
  std::optional<fragment_outcome> end;
  other.add(std::get<fragment>(reincarnate(s.seen(), s.owned())), [&](fragment_result r) { end = r.what; });
  other.flush();
  s.w.posting->run();
  CHECK(end == fragment_outcome::corrupt);
  CHECK(s.w.dump() == before);
}
