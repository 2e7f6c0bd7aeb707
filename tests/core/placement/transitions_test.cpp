// The rules of the single row transitions.
#include "tests/core/placement/scene.hpp"

using namespace zlink;
using namespace zlink::placement;
using namespace zlink::placement::test;

TEST_CASE("S-72 S-74 after a restart of the node the reservation is neither committed nor aborted, but released") {
  for (const auto kind : all_kinds) {
    scene s{kind};
    s.enter(reserved);
    s.source.descriptor.node.lifecycle.value += 2;
    s.w.publish(s.source);
    put_one(s.w.store(), capacity_key(s.source.descriptor.node),
            encode(capacity_record{s.source.descriptor.node.lifecycle, {}, {}, {}}));
    CHECK(std::get<refusal>(commit(s.seen(), s.end(), s.membership(s.source))) == refusal::conflict);
    CHECK(std::get<refusal>(abort(s.seen(), s.end())) == refusal::conflict);
    const lifecycle_evidence evidence{s.w.see<lease_record>(lease_key(s.source.owner.owner)),
                                      s.w.see<descriptor_record>(descriptor_key(s.source.descriptor.node))};
    CHECK(s.w.apply(release(s.seen(), "x", evidence)).what == fragment_outcome::applied);
    CHECK(s.now() == absent);
    CHECK(s.w.counters_match_rows());
  }
}

TEST_CASE("S-74 a reservation is released when lease or descriptor say that its lifecycle is over, never before") {
  const auto evidence_of = [](scene& s) {
    return lifecycle_evidence{s.w.see<lease_record>(lease_key(s.source.owner.owner)),
                              s.w.see<descriptor_record>(descriptor_key(s.source.descriptor.node))};
  };
  scene s{object_kind::user_spot};
  s.enter(reserved);
  CHECK(std::get<refusal>(release(s.seen(), "x", evidence_of(s))) == refusal::owner_live);

  auto corrupt = evidence_of(s);
  corrupt.lease.expires_at.reset();
  CHECK(std::get<refusal>(release(s.seen(), "x", corrupt)) == refusal::corrupt);

  s.w.time->advance(15s);
  const auto evidence = evidence_of(s);
  const auto step = release(s.seen(), "x", evidence);
  // The host came back in between: what was read is no longer so.
  s.w.hold_lease(s.source, 15s);
  CHECK(s.w.apply(step).what == fragment_outcome::conflict);
  CHECK(s.now() == reserved);
  s.w.time->advance(15s);
  // Without its capacity record only the row is left to remove.
  write(s.w.store(), {{}, {deletes(capacity_key(s.source.descriptor.node))}});
  CHECK(s.w.apply(step).what == fragment_outcome::applied);
  CHECK(s.now() == absent);
  CHECK(!s.w.see<capacity_record>(capacity_key(s.source.descriptor.node)).record);
}

TEST_CASE("S-74 S-84 a release that would make a counter negative is corruption and changes nothing") {
  scene s{object_kind::user_spot};
  s.enter(reserved);
  put_one(s.w.store(), capacity_key(s.source.descriptor.node),
          encode(capacity_record{s.source.descriptor.node.lifecycle, {}, {}, {}}));
  s.w.time->advance(15s);
  const auto before = s.w.dump();
  const lifecycle_evidence evidence{{}, s.w.see<descriptor_record>(descriptor_key(s.source.descriptor.node))};
  CHECK(s.w.apply(release(s.seen(), "x", evidence)).what == fragment_outcome::corrupt);
  CHECK(s.w.dump() == before);
}

TEST_CASE("S-75 the same reservation again gives what it got; with other content it is a conflict") {
  for (const auto kind : all_kinds) {
    scene s{kind};
    auto request = s.w.wish(kind, "x", s.source);
    s.run(narrow(reserve(s.seen(), request)));
    const auto issued = row_in(s.seen())->generation;
    const auto again = reserve(s.seen(), request);
    REQUIRE(std::holds_alternative<already_reserved>(again));
    CHECK(std::get<already_reserved>(again).generation == issued);
    CHECK(std::get<already_reserved>(again).version == s.seen().version);
    request.stable_type = "other";
    CHECK(std::get<refusal>(reserve(s.seen(), request)) == refusal::conflict);
    CHECK(std::get<refusal>(reserve(s.seen(), s.w.wish(kind, "x", s.source))) == refusal::row_exists);
  }
}

TEST_CASE("S-77 an Entry Spot's id is refused, also when the claim appears after the id was read") {
  scene s{object_kind::user_spot};
  const auto seen = s.seen();
  const auto step = narrow(reserve(seen, s.w.wish(s.kind, "x", s.source)));
  s.enter(claimed);
  CHECK(std::get<refusal>(reserve(s.seen(), s.w.wish(s.kind, "x", s.source))) == refusal::entry_id_taken);
  CHECK(s.w.apply(step).what == fragment_outcome::conflict);
  CHECK(s.now() == claimed);
}

TEST_CASE("S-26 while it is being created an object is its row, its slots and its numbers, nothing else") {
  for (const auto kind : all_kinds) {
    scene s{kind};
    const auto before = s.w.dump();
    s.enter(reserved);
    auto after = s.w.dump();
    CHECK(after.size() == before.size() + 3);
    for (const auto& key : {object_key(kind, "x"), counter_key(sequence::object), counter_key(sequence::authority)})
      CHECK(after.erase(key) == 1);
    for (const auto& [key, value] : before)
      CHECK((after[key] == value) == (key != capacity_key(s.source.descriptor.node)));
  }
}

TEST_CASE("C-68 a request of up to 1 MiB is kept until the reservation ends, in the row or beside it") {
  for (const std::size_t size : {std::size_t{0}, request_content::inline_limit, request_content::inline_limit + 1,
                                 request_content::size_limit}) {
    for (const char how : {'c', 'a', 'r'}) {
      scene s{object_kind::user_spot};
      auto request = s.w.wish(s.kind, "x", s.source);
      const std::string bytes(size, 'r');
      request_content content;
      content.size = static_cast<std::uint32_t>(size);
      (content.is_apart() ? request.request_apart : content.bytes) = bytes;
      request.content = content;
      s.run(narrow(reserve(s.seen(), request)));
      const auto row = *row_in(s.seen());
      CHECK(row.pending->request->size == size);
      const auto apart = read(s.w.store(), content_key(request.reservation));
      CHECK((content.is_apart() ? apart.found->bytes : row.pending->request->bytes) == bytes);
      s.reservation = request.reservation;
      if (how == 'r') {
        kill_host(s, s.source);
        const auto descriptor = s.w.see<descriptor_record>(descriptor_key(s.source.descriptor.node));
        s.run(release(s.seen(), "x", lifecycle_evidence{{}, descriptor}));
      } else {
        s.run(how == 'c' ? commit(s.seen(), s.end(), std::nullopt) : abort(s.seen(), s.end()));
      }
      CHECK(!read(s.w.store(), content_key(request.reservation)).found);
    }
  }
  scene s{object_kind::user_spot};
  auto request = s.w.wish(s.kind, "x", s.source);
  request_content content;
  content.size = request_content::size_limit + 1;
  request.request_apart.assign(content.size, 'r');
  request.content = content;
  CHECK(std::get<refusal>(reserve(s.seen(), request)) == refusal::impossible);
}

TEST_CASE(
  "C-95 S-71 contradicting inputs are found before any I/O: an Instance Spot without its root, a Spot with one") {
  scene s{object_kind::instance_spot};
  auto request = s.w.wish(s.kind, "x", s.source);
  request.content = request_content{"request", 7, {}};
  CHECK(std::get<refusal>(reserve(s.seen(), request)) == refusal::impossible);
  request = s.w.wish(object_kind::user_spot, "x", s.source);
  request.content = recovery_root{"root", {}, 1, 0};
  CHECK(std::get<refusal>(reserve(s.seen(), request)) == refusal::impossible);
  request = s.w.wish(object_kind::user_spot, "x", s.source);
  request.content = request_content{"reques", 7, {}};
  CHECK(std::get<refusal>(reserve(s.seen(), request)) == refusal::impossible);
  request = s.w.wish(s.kind, "", s.source);
  CHECK(std::get<refusal>(reserve(s.seen(), request)) == refusal::impossible);
  request = s.w.wish(s.kind, "x", s.source);
  request.reservation = {};
  CHECK(std::get<refusal>(reserve(s.seen(), request)) == refusal::impossible);
}

TEST_CASE("S-76 C-72 C-74 the terminal is written with the transition or not at all, and expires by the store") {
  for (const bool commits : {true, false}) {
    scene s{object_kind::user_spot};
    s.enter(reserved);
    auto end = s.end();
    end.terminal = kept_terminal{"terminal", {}, terminal_retention(10s)};
    end.terminal->record.result = commits ? creation_result::rejected : creation_result::failed;
    const auto make = [&] { return commits ? commit(s.seen(), end, std::nullopt) : abort(s.seen(), end); };
    const auto late = make();
    s.w.publish(s.source);
    CHECK(s.w.apply(late).what == fragment_outcome::conflict);
    CHECK(!s.w.see<creation_terminal>("terminal").record);
    CHECK(s.now() == reserved);
    end.target = s.source.stamp;
    s.run(make());
    CHECK(s.w.see<creation_terminal>("terminal").record == end.terminal->record);
    s.w.time->advance(5min + 10s - 1ms);
    CHECK(s.w.see<creation_terminal>("terminal").record);
    s.w.time->advance(1ms);
    CHECK(!s.w.see<creation_terminal>("terminal").record);
    CHECK(s.now() == (commits ? active : absent));
  }
  CHECK(terminal_retention(-1h) == 5min);
}

TEST_CASE("C-97 the root goes only after the first handler's end moved the cursor") {
  scene s{object_kind::instance_spot};
  s.enter(reserved);
  s.run(commit(s.seen(), s.end(), std::nullopt));
  CHECK(row_in(s.seen())->root->reference == "root of x");
  CHECK(std::get<refusal>(retire_root(s.seen(), s.owned())) == refusal::conflict);
  s.run(advance_cursor(s.seen(), s.owned(), 1));
  CHECK(std::get<refusal>(advance_cursor(s.seen(), s.owned(), 1)) == refusal::conflict);
  s.run(retire_root(s.seen(), s.owned()));
  CHECK(!row_in(s.seen())->root);
  CHECK(std::get<refusal>(retire_root(s.seen(), s.owned())) == refusal::conflict);
}

TEST_CASE("S-79 C-113 the object of a dead owner is released by its exact ref, and only then") {
  for (const auto kind : all_kinds) {
    scene s{kind};
    s.enter(active);
    const auto generation = row_in(s.seen())->generation;
    const auto lease = [&] { return s.w.see<lease_record>(lease_key(s.source.owner.owner)); };
    CHECK(std::get<refusal>(release_dead_owner(s.seen(), kind, "x", generation, lease())) == refusal::owner_live);
    s.w.time->advance(15s);
    const detail::object_generation other{generation.value + 1};
    CHECK(std::get<refusal>(release_dead_owner(s.seen(), kind, "x", other, lease())) == refusal::other_incarnation);
    const auto step = release_dead_owner(s.seen(), kind, "x", generation, lease());
    s.w.hold_lease(s.source, 15s);
    CHECK(s.w.apply(step).what == fragment_outcome::conflict);
    s.w.time->advance(15s);
    CHECK(s.w.apply(step).what == fragment_outcome::applied);
    CHECK(s.now() == absent);
    CHECK(s.w.counters_match_rows());
    // The host is back under a new lease: nothing of the old run is its own any more (S-44).
    s.w.hold_lease(s.source, 15s);
    s.enter(active);
    auto regained = s.source;
    regained.owner.lease.value += 1000;
    s.w.hold_lease(regained, 15s);
    CHECK(std::get<refusal>(remove(s.seen(), {kind, "x", regained.owner})) == refusal::conflict);
    const auto now = row_in(s.seen())->generation;
    s.run(release_dead_owner(s.seen(), kind, "x", now, lease()));
  }
}

TEST_CASE("S-71 membership changes only towards a live User Spot or Entry Spot on the Actor's node") {
  scene s{object_kind::actor};
  s.enter(active);
  s.w.create_object(object_kind::user_spot, "room", s.source);
  s.w.create_object(object_kind::user_spot, "far", s.target);
  s.w.create_object(object_kind::instance_spot, "cart", s.source);
  const auto join = [&](const std::string& id) {
    const auto spot = s.w.see<object_record>(spot_key(id));
    const auto* row = row_in(spot);
    return change_membership(s.seen(), s.owned(), {id, row ? row->generation : detail::object_generation{}}, spot);
  };
  for (const char* wrong : {"far", "cart", "nobody", "b-entry"})
    CHECK(std::get<refusal>(join(wrong)) == refusal::conflict);
  const auto late = join("room");
  s.run(join("room"));
  CHECK(row_in(s.seen())->member_of->spot_id == "room");
  s.run(join("a-entry"));
  CHECK(row_in(s.seen())->member_of->spot_generation == detail::object_generation{});
  // The room closes between reading and writing.
  const auto racing = join("room");
  s.run(mark_closing(s.w.see(object_kind::user_spot, "room"), {object_kind::user_spot, "room", s.source.owner}));
  CHECK(s.w.apply(racing).what == fragment_outcome::conflict);
  CHECK(s.w.apply(late).what == fragment_outcome::conflict);
  CHECK(std::get<refusal>(join("room")) == refusal::conflict);
  CHECK(s.w.counters_match_rows());
}

TEST_CASE("S-29 S-97 a move keeps the object generation, raises the owner's, and needs no descriptor to commit") {
  for (const auto kind : all_kinds) {
    scene s{kind};
    s.enter(prepared);
    const auto before = *row_in(s.seen());
    s.w.publish(s.target);
    s.run(change_owner(s.seen(), s.move(), s.membership(s.target)));
    const auto after = *row_in(s.seen());
    CHECK(after.generation == before.generation);
    CHECK(after.authority > before.authority);
    CHECK(after.owner == s.target.owner);
    CHECK(after.node == s.target.descriptor.node);
    CHECK(after.stable_type == before.stable_type);
    CHECK(after.root == before.root);
  }
}

TEST_CASE("S-96 S-100 an attempt that was replaced never commits; of fence and commit exactly one wins") {
  scene s{object_kind::user_spot};
  s.enter(prepared);
  const auto first = change_owner(s.seen(), s.move(), std::nullopt);
  s.attempt = detail::attempt_generation{77};
  s.run(reserve_move(s.seen(), s.move()));
  CHECK(s.w.counters_match_rows()); // no second slots
  CHECK(s.w.apply(first).what == fragment_outcome::conflict);
  auto old_attempt = s.move();
  old_attempt.attempt = detail::attempt_generation{3};
  CHECK(std::get<refusal>(change_owner(s.seen(), old_attempt, std::nullopt)) == refusal::conflict);
  CHECK(std::get<refusal>(release_move(s.seen(), s.kind, "x", s.relocation, detail::attempt_generation{3}))
        == refusal::conflict);
  for (const bool fence_first : {true, false}) {
    scene race{object_kind::user_spot};
    race.enter(prepared);
    const auto fence = preserve(race.seen(), race.owned());
    const auto take = change_owner(race.seen(), race.move(), std::nullopt);
    CHECK(race.w.apply(fence_first ? fence : take).what == fragment_outcome::applied);
    CHECK(race.w.apply(fence_first ? take : fence).what == fragment_outcome::conflict);
    CHECK((row_in(race.seen())->owner == race.source.owner) == fence_first);
    if (!fence_first)
      continue;
    // For ever: not with the version after the fence, not by reserving the same attempt again.
    CHECK(std::get<refusal>(change_owner(race.seen(), race.move(), std::nullopt)) == refusal::conflict);
    CHECK(std::get<refusal>(reserve_move(race.seen(), race.move())) == refusal::conflict);
    race.run(release_move(race.seen(), race.kind, "x", race.relocation, race.attempt));
    CHECK(race.w.counters_match_rows());
  }
}
