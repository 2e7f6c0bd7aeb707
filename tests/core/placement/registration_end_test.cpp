// The records of a mesh node: another token for them, and their end.
#include "tests/core/placement/keeper_host.hpp"

using namespace zlink;
using namespace zlink::placement;
using namespace zlink::placement::test;

namespace {

using outcome = registration_outcome;

/// The host lost its lease, and has another now.
void lose_and_regain(keeper_host& host) {
  const auto former = host.token();
  host.world.write({{}, {deletes(host.lease())}});
  host.world.executor.run_for(5'100ms);
  REQUIRE(host.token() != former);
}

} // namespace

// -- a new token ------------------------------------------------------------------------------------------------------------------

TEST_CASE("S-44 after a loss descriptor and Entry claim get the new token in one batch, RID and lifecycle stay") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  node.published();
  REQUIRE(node.change([](auto& d) { d.placement_weight = 5; }) == outcome::done);
  const auto before = *node.stored().record;
  const auto capacity = node.stored_capacity().version;
  lose_and_regain(a);
  CHECK(node.change([](auto& d) { d.placement_weight = 6; }) == outcome::not_held); // not with the former token
  a.faults->clear_log();
  CHECK(node.register_again() == outcome::done);
  CHECK(a.writes() == 1);
  const auto after = *node.stored().record;
  CHECK(after.owner == a.token());
  CHECK(after.node == before.node);
  CHECK(after.revision > before.revision);
  CHECK(after.placement_weight == 5);
  CHECK(*claim_in(node.stored_entry()) == entry_claim{node.node, a.token()});
  CHECK(node.stored_capacity().version == capacity); // former objects keep their slots
  CHECK(node.records.stamp()->version == node.stored().version);
  CHECK(node.change([](auto& d) { d.placement_weight = 6; }) == outcome::done);
}

TEST_CASE("S-44 a claim that was not published yet is rewritten as a claim") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  CHECK(node.register_again() == outcome::done); // nothing claimed, nothing done
  CHECK(!node.stored().record);
  REQUIRE(node.claim() == outcome::done);
  lose_and_regain(a);
  CHECK(node.register_again() == outcome::done);
  CHECK(node.stored().record->state == node_state::claimed);
  CHECK(node.stored().record->owner == a.token());
  CHECK(node.publish(node.content()) == outcome::done);
}

TEST_CASE("S-44 S-156 a registration whose answer is lost is found, one that vanished is sent again") {
  for (const auto fault : {store_fault::lose_reply, store_fault::vanish}) {
    shared_world w;
    keeper_host a{w};
    test_registration node{a.started(), "rid"};
    node.published();
    lose_and_regain(a);
    a.faults->clear_log();
    a.faults->once(store_operation::write, descriptor_key(node.node), fault);
    CHECK(node.register_again() == outcome::done);
    CHECK(a.writes() == (fault == store_fault::vanish ? 2 : 1));
    CHECK(node.stored().record->owner == a.token());
    CHECK(node.records.stamp()->version == node.stored().version);
  }
}

TEST_CASE("S-44 records that are another's by now are left alone") {
  shared_world w;
  keeper_host a{w}, b{w};
  test_registration mine{a.started(), "rid", "entry"}, other{b.started(), "rid", "entry"};
  mine.published();
  lose_and_regain(a);
  w.write({{}, {deletes(descriptor_key(mine.node)), deletes(spot_key("entry"))}});
  REQUIRE(other.claim() == outcome::done);
  const auto before = other.stored().version;
  CHECK(mine.register_again() == outcome::rid_taken);
  w.write({{}, {deletes(descriptor_key(mine.node))}});
  CHECK(mine.register_again() == outcome::entry_taken);
  CHECK(!mine.stored().record);
  CHECK(*claim_in(mine.stored_entry()) == entry_claim{other.node, b.token()});
  CHECK(before != mine.stored().version);
}

TEST_CASE("S-142 in an emptied store descriptor, Entry claim and capacity are written anew") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  node.published();
  w.wipe();
  w.executor.run_for(21s);
  REQUIRE(a.lost);
  REQUIRE(!node.stored().record);
  CHECK(node.register_again() == outcome::done);
  CHECK(node.stored().record->state == node_state::serving);
  CHECK(node.stored().record->owner == a.token());
  CHECK(*claim_in(node.stored_entry()) == entry_claim{node.node, a.token()});
  CHECK(node.stored_capacity().record == capacity_record{node.node.lifecycle, {}, {}, {}});
}

// -- the end ----------------------------------------------------------------------------------------------------------------------

TEST_CASE("C-54 S-117 withdrawing removes descriptor, Entry claim and capacity in one batch") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  node.published();
  a.faults->clear_log();
  CHECK(node.withdraw() == outcome::done);
  CHECK(a.writes() == 1);
  CHECK(!node.stored().record);
  CHECK(!node.stored_entry().record);
  CHECK(!node.stored_capacity().record);
  CHECK(!node.records.stamp());
  CHECK(node.change([](auto& d) { d.placement_weight = 1; }) == outcome::gone);
  CHECK(node.withdraw() == outcome::done);
}

TEST_CASE("S-117 C-54 a late withdrawal of an old run, lifecycle or lease touches no replacement") {
  shared_world w;
  keeper_host a{w}, b{w};
  test_registration mine{a.started(), "rid", "entry"}, next{b.started(), "rid", "entry"};
  mine.published();
  w.write({{}, {deletes(descriptor_key(mine.node)), deletes(spot_key("entry"))}});
  next.published();
  const auto before = next.stored().version;
  CHECK(mine.withdraw() == outcome::done);
  CHECK(next.stored().version == before);
  CHECK(next.stored_entry().record);

  keeper_host c{w};
  test_registration third{c.started(), "rid 3"};
  third.published();
  const auto former = third.stored().version;
  lose_and_regain(c); // what stands there has the former token
  CHECK(third.withdraw(1s) == outcome::not_held);
  CHECK(third.stored().version == former);
}

TEST_CASE("S-117 a withdrawal does not count on a lease that the store no longer has") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  node.published();
  w.write({{}, {deletes(a.lease())}}); // the host does not know it yet
  CHECK(node.withdraw(1s) == outcome::late);
  CHECK(node.stored().record);
}

TEST_CASE("S-117 S-156 a withdrawal whose answer is lost is found done; so is one of a claim in doubt") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid 1"}, doubtful{a, "rid 2"};
  node.published();
  a.faults->clear_log();
  a.faults->once(store_operation::write, descriptor_key(node.node), store_fault::lose_reply);
  CHECK(node.withdraw() == outcome::done);
  CHECK(a.writes() == 1);
  a.faults->once(store_operation::write, descriptor_key(doubtful.node), store_fault::hold_call);
  CHECK(doubtful.claim(1s) == outcome::late);
  a.faults->release_all();
  REQUIRE(doubtful.stored().record);
  CHECK(doubtful.withdraw() == outcome::done);
  CHECK(!doubtful.stored().record);
  CHECK(!doubtful.stored_entry().record);
}

TEST_CASE("S-119 stop ends a call that waits for the store at once") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  a.faults->set_rule([](const store_call&) { return store_fault::hold_call; });
  std::optional<result<outcome>> end;
  a.begin([&] { return node.records.claim(node.node, node.entry_spot_id, node.in(30s)); }, end);
  w.executor.run();
  CHECK(!end);
  a.infra.post([&] { node.records.stop(); });
  w.executor.run();
  REQUIRE(end);
  CHECK(**end == outcome::late);
}
