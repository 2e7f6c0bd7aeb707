// Aggregates in a store: lists, rows that enter and leave, what readers and sweeps make of them.
#include "tests/core/placement/keeper_host.hpp"
#include "zlink/placement/aggregates.hpp"
#include "zlink/placement/sweep.hpp"

using namespace zlink;
using namespace zlink::placement;
using namespace zlink::placement::test;

namespace {

constexpr auto actor = object_kind::actor;
constexpr auto user_spot = object_kind::user_spot;

/// What a host can run: a coroutine.
template <class T>
task<T> wrapped(task<T> step) {
  co_return co_await std::move(step);
}

/// A host with one node and its sweep.
struct moving_host {
  moving_host(shared_world& w, const std::string& rid)
    : host(w),
      node(host.started(), rid),
      rows(host.infra, host.records, *host.owner, {}, [](const std::string&, const row_record&) {}) {
    node.published();
    rows.add_node(node.node);
  }
  ~moving_host() {
    host.run([this] { return rows.stop(); });
  }
  fragment_result apply(decision step) {
    REQUIRE(std::holds_alternative<fragment>(step));
    return host.run([&] { return wrapped(host.records.apply(std::move(std::get<fragment>(step)))); });
  }
  observed_object read(object_kind kind, const std::string& id) {
    auto outcome = host.run([&] { return wrapped(host.records.read_object(address_of(kind, id))); });
    REQUIRE(seen_in(outcome));
    return *seen_in(outcome);
  }
  capacity_record capacity() { return *node.stored_capacity().record; }

  keeper_host host;
  test_registration node;
  sweep rows;
};

/// A room with members on `a`, to go to `b`. Their rows are put as Reserve, Commit and Joins would leave them.
struct moving_room {
  explicit moving_room(int members) {
    const auto put = [&](object_kind kind, const std::string& id, std::uint64_t number) {
      row_record row;
      row.state = allocation_state::active;
      row.kind = kind;
      row.owner = a.host.token();
      row.node = a.node.node;
      row.generation.value = row.authority.value = number;
      row.stable_type = "type";
      row.slots = slots_of(kind, "type");
      if (kind == actor)
        row.member_of = spot_membership{"room", {1}};
      w.put(object_key(kind, id), encode(row));
      list.push_back(participant_of(id, row));
    };
    put(user_spot, "room", 1);
    for (int i = 0; i < members; ++i)
      put(actor, std::to_string(i), static_cast<std::uint64_t>(i) + 2);
    encoded = *encode_participants(list);
    auto full = a.capacity();
    CHECK(placement::apply(full, {a.node.node, encoded.slots, slot_step::reserve, {}}) == capacity_outcome::done);
    CHECK(placement::apply(full, {a.node.node, encoded.slots, slot_step::activate, {}}) == capacity_outcome::done);
    w.put(capacity_key(a.node.node), encode(full));
    w.put(counter_key(sequence::authority), encode(counter_record{100'000}));
    w.put(counter_key(sequence::object), encode(counter_record{100'000}));
  }
  observed_aggregate seen() { return w.see<aggregate_record>(aggregate_key(id)); }
  aggregate_target wish() {
    return {id, generation, relocation, {3}, {4, 4}, b.host.token(), *b.node.records.stamp(), {}, encoded.root};
  }
  fragment_result prepare(moving_host& by, prepare_decision step) {
    REQUIRE(std::holds_alternative<fragment>(step));
    return by.apply(std::get<fragment>(std::move(step)));
  }
  void begin() {
    REQUIRE(a.host.run([&] { return store_participants(a.host.records, id, encoded.pages); }) == step_end::done);
    const aggregate_request request{id, generation, relocation, a.host.token(), a.node.node, encoded.slots, encoded.root,
                                    encoded.authority_before};
    REQUIRE(prepare(a, create_aggregate(seen(), request)).what == fragment_outcome::applied);
    REQUIRE(a.host.run([&] { return enter_all(a.host.records, id, list); }) == step_end::done);
  }
  void reserve() { REQUIRE(prepare(b, reserve_aggregate_move(seen(), wish())).what == fragment_outcome::applied); }
  fragment_result commit() { return b.apply(change_aggregate_owner(seen(), wish())); }
  void move() {
    begin();
    reserve();
    REQUIRE(commit().what == fragment_outcome::applied);
  }
  participants_outcome read_list(moving_host& by) {
    return by.host.run([&] { return read_participants(by.host.records, id, encoded.root); });
  }
  bool is_lost(moving_host& by) {
    const auto outcome = read_list(by);
    const auto* fault = std::get_if<payload_fault>(&outcome);
    return fault != nullptr && *fault == payload_fault::lost;
  }
  row_record row(const participant& one) { return *row_in(w.see<object_record>(object_key(one.kind, one.id))); }

  shared_world w;
  moving_host a{w, "a"}, b{w, "b"}, c{w, "c"};
  detail::unique_id id{9, 9};
  detail::aggregate_generation generation{5};
  detail::unique_id relocation{2, 2};
  std::vector<participant> list;
  encoded_participants encoded;
};

} // namespace

TEST_CASE("S-88 S-91 L-147 L-155 5,000 members change hands in one small batch, and all at once") {
  moving_room m{5'000};
  m.begin();
  m.reserve();
  CHECK(m.w.see<aggregate_record>(aggregate_key(m.id)).record->participants.count == 5'001);
  CHECK(m.a.capacity().actors == slot_bucket{5'000, 0});
  CHECK(m.b.capacity().actors == slot_bucket{0, 5'000});
  std::size_t batches = 0;
  m.b.host.faults->set_rule([&](const store_call& call) {
    if (call.what == store_operation::write && call.touches(aggregate_key(m.id))) {
      ++batches;
      CHECK(call.batch->mutations.size() == 4);  // the record, two capacity records, the counter
      CHECK(call.batch->conditions.size() == 5); // theirs, and the target's lease
      CHECK(!call.touches(actor_prefix()));
      CHECK(!call.touches(spot_key("room")));
    }
    return store_fault::none;
  });
  REQUIRE(m.commit().what == fragment_outcome::applied);
  CHECK(batches == 1);
  m.b.host.faults->set_rule({});
  // A third host, which has read nothing before.
  const auto authority = m.seen().record->authority;
  bool all = true;
  for (const auto& one : m.list) {
    const auto now = m.c.read(one.kind, one.id);
    const auto& row = *row_in(now);
    all = all && row.owner == m.b.host.token() && row.node == m.b.node.node && row.generation == one.generation
          && row.authority == authority && row.authority > one.authority && row.member_of == one.member_of
          && row.aggregate == m.id && now.version == m.w.see<object_record>(object_key(one.kind, one.id)).version;
  }
  CHECK(all);
  CHECK(m.a.capacity() == capacity_record{m.a.node.node.lifecycle, {}, {}, {}});
  CHECK(m.b.capacity().actors == slot_bucket{5'000, 0});
  CHECK(m.b.capacity().spots == slot_bucket{1, 0});

  // Afterwards, and never needed for that: the rows become their own again.
  const auto capacity = m.b.capacity();
  m.b.host.faults->clear_log();
  REQUIRE(m.b.host.run([&] { return leave_all(m.b.host.records, m.id, m.list, m.b.host.token()); }) == step_end::done);
  CHECK(m.b.host.faults->count(store_operation::write) < 60); // many in a batch
  CHECK(m.b.host.faults->count(store_operation::read) < 5'001 + 60); // each row once
  REQUIRE(m.b.host.run([&] { return drop_all(m.b.host.records, m.id, m.b.host.token()); }) == step_end::done);
  CHECK(m.b.capacity() == capacity);
  for (const auto& one : m.list) {
    const auto row = m.row(one);
    all = all && !row.aggregate && row.owner == m.b.host.token() && row.node == m.b.node.node
          && row.authority == authority && row.slots == slots_of(one.kind, "type");
  }
  CHECK(all);
  CHECK(!m.seen().record);
  for (std::uint32_t i = 0; i < m.encoded.root.pages; ++i)
    CHECK(!read(*m.w.data, aggregate_page_key(m.id, i)).found);
}

TEST_CASE("S-86 S-87 L-151 a stored list is read as a whole, or not at all") {
  moving_room m{2'500};
  m.begin();
  auto outcome = m.read_list(m.b);
  REQUIRE(std::holds_alternative<std::vector<participant>>(outcome));
  CHECK(std::get<std::vector<participant>>(outcome) == m.list);
  // Pages are immutable: the same again is done, another one is refused.
  CHECK(m.a.host.run([&] { return store_participants(m.a.host.records, m.id, m.encoded.pages); }) == step_end::done);
  auto pages = m.encoded.pages;
  std::swap(pages[0], pages[1]);
  CHECK(m.a.host.run([&] { return store_participants(m.a.host.records, m.id, pages); }) == step_end::refused);
  CHECK(!m.is_lost(m.b));
  const auto key = aggregate_page_key(m.id, 1);
  auto page = m.w.see<participant_page>(key);
  page.record->entries[5].id += "!";
  m.w.put(key, encode(*page.record));
  CHECK(m.is_lost(m.b));
  m.w.put(key, "damaged");
  CHECK(m.is_lost(m.b));
  m.w.write({{}, {deletes(key)}});
  CHECK(m.is_lost(m.b));
  m.w.put(key, m.encoded.pages[1]);
  CHECK(!m.is_lost(m.b));
  m.b.host.lose_store();
  outcome = m.read_list(m.b);
  CHECK(std::get<payload_fault>(outcome) == payload_fault::unavailable);
}

TEST_CASE("S-85 S-96 one row that is not what the list says refuses the whole move, and all of it can be taken back") {
  moving_room m{40};
  auto changed = m.row(m.list[17]);
  changed.generation.value += 1'000;
  m.w.put(object_key(actor, m.list[17].id), encode(changed));
  REQUIRE(m.a.host.run([&] { return store_participants(m.a.host.records, m.id, m.encoded.pages); }) == step_end::done);
  const aggregate_request request{m.id, m.generation, m.relocation, m.a.host.token(), m.a.node.node, m.encoded.slots,
                                  m.encoded.root, m.encoded.authority_before};
  REQUIRE(m.prepare(m.a, create_aggregate(m.seen(), request)).what == fragment_outcome::applied);
  CHECK(m.a.host.run([&] { return enter_all(m.a.host.records, m.id, m.list); }) == step_end::refused);
  CHECK(m.a.host.run([&] { return leave_all(m.a.host.records, m.id, m.list, m.a.host.token()); }) == step_end::refused); // not yet
  REQUIRE(m.a.host.run([&] { return end_aggregate_move(m.a.host.records, m.id, m.a.host.token()); }) == step_end::done);
  REQUIRE(m.a.host.run([&] { return leave_all(m.a.host.records, m.id, m.list, m.a.host.token()); }) == step_end::done);
  REQUIRE(m.a.host.run([&] { return drop_all(m.a.host.records, m.id, m.a.host.token()); }) == step_end::done);
  for (std::size_t i = 0; i < m.list.size(); ++i)
    if (i != 17) {
      CHECK(participant_of(m.list[i].id, m.row(m.list[i])) == m.list[i]);
      CHECK(!m.row(m.list[i]).aggregate);
      CHECK(m.row(m.list[i]).owner == m.a.host.token());
    }
}

TEST_CASE("S-156 entering, leaving and ending a move with lost answers come to the same") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    moving_room m{30};
    counting_random random{seed};
    const auto spoil = [&](const store_call& call) {
      if (call.what != store_operation::write || random.below(3) != 0 || call.touches("l"))
        return store_fault::none;
      return store_fault::lose_reply;
    };
    const auto until_done = [&](moving_host& by, auto make) {
      for (int i = 0; i < 50; ++i) {
        const auto end = by.host.run(make);
        REQUIRE(end != step_end::refused);
        if (end == step_end::done)
          return;
      }
      FAIL("never done");
    };
    REQUIRE(m.a.host.run([&] { return store_participants(m.a.host.records, m.id, m.encoded.pages); }) == step_end::done);
    const aggregate_request request{m.id, m.generation, m.relocation, m.a.host.token(), m.a.node.node, m.encoded.slots,
                                    m.encoded.root, m.encoded.authority_before};
    REQUIRE(m.prepare(m.a, create_aggregate(m.seen(), request)).what == fragment_outcome::applied);
    m.a.host.faults->set_rule(spoil);
    m.b.host.faults->set_rule(spoil);
    until_done(m.a, [&] { return enter_all(m.a.host.records, m.id, m.list); });
    const bool moves = random.below(2) == 0;
    m.reserve();
    if (moves)
      REQUIRE(m.commit().what == fragment_outcome::applied);
    auto& owner = moves ? m.b : m.a;
    until_done(owner, [&] { return end_aggregate_move(owner.host.records, m.id, owner.host.token()); });
    until_done(owner, [&] { return leave_all(owner.host.records, m.id, m.list, owner.host.token()); });
    until_done(owner, [&] { return drop_all(owner.host.records, m.id, owner.host.token()); });
    for (const auto& one : m.list) {
      CHECK(m.row(one).owner == owner.host.token());
      CHECK(!m.row(one).aggregate);
    }
    CHECK(m.a.capacity().actors == slot_bucket{moves ? 0U : 30U, 0});
    CHECK(m.b.capacity().actors == slot_bucket{moves ? 30U : 0U, 0});
  }
}

TEST_CASE("S-88 S-87 an aggregate is dissolved by its owner, once it is decided, and only with all of its list") {
  moving_room m{1'500};
  const auto dissolving = [&](moving_host& by) {
    return by.host.run([&] { return dissolve(by.host.records, m.id, by.host.token()); });
  };
  CHECK(dissolving(m.a) == step_end::done); // there is none
  m.begin();
  CHECK(dissolving(m.a) == step_end::refused);
  m.reserve();
  CHECK(dissolving(m.a) == step_end::refused);
  REQUIRE(m.commit().what == fragment_outcome::applied);
  CHECK(dissolving(m.a) == step_end::refused);
  const auto key = aggregate_page_key(m.id, 1);
  m.w.write({{}, {deletes(key)}});
  CHECK(dissolving(m.b) == step_end::refused); // some row might still need the record
  CHECK(m.seen().record);
  m.w.put(key, m.encoded.pages[1]);
  m.b.host.faults->once(store_operation::read, actor_key("700"), store_fault::vanish);
  CHECK(dissolving(m.b) == step_end::failed);
  CHECK(m.seen().record);
  CHECK(dissolving(m.b) == step_end::done);
  CHECK(!m.seen().record);
  for (const auto& one : m.list)
    if (const auto row = m.row(one); row.aggregate || row.owner != m.b.host.token())
      FAIL("left behind: " << one.id);
  CHECK(dissolving(m.b) == step_end::done);
}

TEST_CASE("S-88 S-91 whoever reads while the owner changes sees one owner or the other, never parts of both") {
  moving_room m{5};
  m.begin();
  m.reserve();
  const auto before = m.a.host.token();
  for (const bool at_aggregate : {false, true}) {
    bool committed = false;
    m.c.host.faults->set_rule([&](const store_call& call) {
      const auto wanted = at_aggregate ? aggregate_key(m.id) : actor_key("3");
      if (call.what == store_operation::read && call.key == wanted && at_aggregate && !committed) {
        committed = true;
        // The commit comes between the reader's two reads.
        auto record = *m.seen().record;
        record.owner = m.b.host.token();
        record.node = m.b.node.node;
        record.authority.value = 99'999;
        m.w.put(aggregate_key(m.id), encode(record));
      }
      return store_fault::none;
    });
    const auto now = m.c.read(actor, "3");
    const auto& row = *row_in(now);
    CHECK(committed == at_aggregate);
    CHECK(row.owner == (at_aggregate ? m.b.host.token() : before));
    CHECK(row.node == (at_aggregate ? m.b.node.node : m.a.node.node));
    CHECK(row.authority.value == (at_aggregate ? 99'999 : 5));
  }
}

TEST_CASE("S-88 a row whose aggregate has no record is its own, unless it left while it was read") {
  moving_room m{3};
  m.move();
  bool gone = false;
  m.c.host.faults->set_rule([&](const store_call& call) {
    if (call.what == store_operation::read && call.key == aggregate_key(m.id) && !gone) {
      gone = true; // the row was read; now it leaves, and the record goes
      for (const auto& one : m.list) {
        const auto seen = m.w.see<object_record>(object_key(one.kind, one.id));
        m.b.apply(leave_aggregate(seen, one.kind, one.id, m.seen(), m.b.host.token()));
      }
      m.b.apply(drop_aggregate(m.seen(), m.b.host.token()));
    }
    return store_fault::none;
  });
  const auto moved = m.c.read(actor, "1");
  CHECK(gone);
  CHECK(row_in(moved)->owner == m.b.host.token());
  CHECK(!row_in(moved)->aggregate);
  CHECK(moved.version == m.w.see<object_record>(actor_key("1")).version);

  moving_room called_off{3};
  called_off.begin();
  auto& a = called_off.a;
  REQUIRE(a.host.run([&] { return end_aggregate_move(a.host.records, called_off.id, a.host.token()); }) == step_end::done);
  REQUIRE(a.host.run([&] { return drop_all(a.host.records, called_off.id, a.host.token()); }) == step_end::done);
  const auto left_behind = called_off.c.read(actor, "1");
  CHECK(row_in(left_behind)->owner == a.host.token());
  CHECK(row_in(left_behind)->aggregate == called_off.id); // so nobody writes it before it has left
  CHECK(row_in(left_behind)->authority.value == 3);
  REQUIRE(a.host.run([&] { return leave_all(a.host.records, called_off.id, called_off.list, a.host.token()); }) == step_end::done);
  CHECK(!row_in(called_off.c.read(actor, "1"))->aggregate);
}

TEST_CASE("S-21 S-88 an aggregate record that cannot be used makes its rows unusable, and a store that is silent unknown") {
  moving_room m{3};
  m.move();
  const auto read_one = [&] { return m.c.host.run([&] { return wrapped(m.c.host.records.read_object(address_of(actor, "1"))); }); };
  m.c.host.faults->set_rule([&](const store_call& call) {
    return call.key == aggregate_key(m.id) ? store_fault::vanish : store_fault::none;
  });
  CHECK(std::holds_alternative<store_failure>(read_one()));
  m.c.host.faults->set_rule({});
  auto other = *m.seen().record;
  const auto good = encode(other);
  other.id = {1, 1};
  m.w.put(aggregate_key(m.id), encode(other));
  CHECK(std::get<record_fault>(read_one()) == record_fault::corrupt);
  auto newer = good;
  ++newer[1];
  m.w.put(aggregate_key(m.id), newer);
  CHECK(std::get<record_fault>(read_one()) == record_fault::unknown_version);
  m.w.put(aggregate_key(m.id), good);
  CHECK(row_in(*seen_in(read_one()))->owner == m.b.host.token());
}

TEST_CASE("S-117 S-78 at shutdown a host removes what it owns by an aggregate, whatever the rows say") {
  for (const bool moved : {true, false}) {
    CAPTURE(moved);
    moving_room m{250};
    m.begin();
    m.reserve();
    if (moved)
      REQUIRE(m.commit().what == fragment_outcome::applied);
    auto& owner = moved ? m.b : m.a;
    auto& other = moved ? m.a : m.b;
    const auto nothing = other.host.run([&] { return other.rows.remove_own(m.w.now() + 10s); });
    CHECK(nothing.complete);
    CHECK(nothing.removed == 0);
    const auto report = owner.host.run([&] { return owner.rows.remove_own(m.w.now() + 10s); });
    CHECK(report.complete);
    CHECK(report.removed == 251);
    CHECK(report.unusable == 0);
    for (const auto& one : m.list)
      CHECK(!m.w.see<object_record>(object_key(one.kind, one.id)).record);
    CHECK(m.a.capacity() == capacity_record{m.a.node.node.lifecycle, {}, {}, {}});
    CHECK(m.b.capacity() == capacity_record{m.b.node.node.lifecycle, {}, {}, {}});
  }
}

TEST_CASE("S-116 a pass over the store lets rows leave an aggregate that is decided, and no other") {
  moving_room m{10};
  m.begin();
  m.reserve();
  CHECK(m.a.host.run([&] { return m.a.rows.scan(); }).complete);
  CHECK(m.row(m.list[4]).aggregate);
  REQUIRE(m.commit().what == fragment_outcome::applied);
  CHECK(m.a.host.run([&] { return m.a.rows.scan(); }).complete); // not its own any more
  CHECK(m.row(m.list[4]).aggregate);
  CHECK(m.b.host.run([&] { return m.b.rows.scan(); }).complete);
  for (const auto& one : m.list) {
    CHECK(!m.row(one).aggregate);
    CHECK(m.row(one).owner == m.b.host.token());
  }
}

TEST_CASE("S-79 S-115 L-164 members of a dead owner's aggregate are released by their exact refs, before and after the commit") {
  for (const bool moved : {true, false}) {
    CAPTURE(moved);
    moving_room m{3};
    m.begin();
    m.reserve();
    if (moved)
      REQUIRE(m.commit().what == fragment_outcome::applied);
    const auto release = [&](const participant& one, std::uint64_t more = 0) {
      const detail::object_generation exact{one.generation.value + more};
      return m.c.host.run([&] { return release_dead_member(m.c.host.records, one.kind, one.id, exact); });
    };
    CHECK(release(m.list[1]) == step_end::refused);
    const auto& alive = moved ? m.a : m.b; // by the rows' own fields the dead one may live, and the other way round
    (moved ? m.b : m.a).host.lose_store();
    m.w.executor.run_for(20s);
    CHECK(alive.host.owner->held());
    const auto attempt = change_aggregate_owner(m.seen(), m.wish());
    CHECK(release(m.list[1], 7) == step_end::refused);
    CHECK((m.seen().record->move && m.seen().record->move->stage == (moved ? move_stage::committed : move_stage::prepared)));
    for (const auto& one : m.list) {
      CHECK(release(one) == step_end::done);
      CHECK(release(one) == step_end::refused);
    }
    CHECK(m.a.capacity() == capacity_record{m.a.node.node.lifecycle, {}, {}, {}});
    CHECK(m.b.capacity() == capacity_record{m.b.node.node.lifecycle, {}, {}, {}});
    if (!moved) // what was reserved there can never be committed
      CHECK(m.b.apply(attempt).what == fragment_outcome::conflict);
  }
}
