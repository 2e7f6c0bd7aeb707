// The records of a mesh node: its claim and its publications.
#include "tests/core/placement/keeper_host.hpp"

#include <stdexcept>

using namespace zlink;
using namespace zlink::placement;
using namespace zlink::placement::test;

namespace {

using outcome = registration_outcome;

} // namespace

// -- claim -------------------------------------------------------------------------------------------------------------------

TEST_CASE("S-47 C-54 a claim is one batch with identity, Entry Spot id and empty capacity, and no descriptor yet") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  a.faults->clear_log();
  CHECK(node.claim() == outcome::done);
  CHECK(a.writes() == 1);
  const auto stored = node.stored();
  REQUIRE(stored.record);
  CHECK(stored.record->state == node_state::claimed);
  CHECK(stored.record->node == node.node);
  CHECK(stored.record->owner == a.token());
  CHECK(stored.record->entry_spot_id.empty());
  REQUIRE(claim_in(node.stored_entry()));
  CHECK(*claim_in(node.stored_entry()) == entry_claim{node.node, a.token()});
  CHECK(node.stored_capacity().record == capacity_record{node.node.lifecycle, {}, {}, {}});
  CHECK(!node.records.stamp());
}

TEST_CASE("C-7 S-47 a RID of a live owner ends the claim after one write, which changes nothing") {
  shared_world w;
  keeper_host a{w}, b{w};
  test_registration first{a.started(), "rid", "entry 1"}, second{b.started(), "rid", "entry 2"};
  REQUIRE(first.claim() == outcome::done);
  const auto before = first.stored();
  b.faults->clear_log();
  CHECK(second.claim() == outcome::rid_taken);
  CHECK(b.writes() == 1);
  CHECK(first.stored().version == before.version);
  CHECK(!second.stored_entry().record);
}

TEST_CASE("C-54 S-47 S-22 an Entry Spot id that is a claim or a row of others ends the claim, and nothing is written") {
  for (const bool is_row : {false, true}) {
    shared_world w;
    keeper_host a{w}, b{w};
    test_registration first{a.started(), "rid 1", "entry"}, second{b.started(), "rid 2", "entry"};
    if (is_row) {
      row_record row;
      row.kind = object_kind::instance_spot;
      row.state = allocation_state::active;
      row.owner = a.token();
      row.generation.value = row.authority.value = 1;
      row.stable_type = "cart";
      row.node = first.node;
      row.slots = slots_of(object_kind::instance_spot, "cart");
      w.put(spot_key("entry"), encode(row));
    } else {
      REQUIRE(first.claim() == outcome::done);
    }
    const auto before = second.stored_entry().version;
    CHECK(second.claim() == outcome::entry_taken);
    CHECK(!second.stored().record);
    CHECK(!second.stored_capacity().record);
    CHECK(second.stored_entry().version == before);
  }
}

TEST_CASE("S-156 S-47 a claim whose answer is lost is found, one that vanished is sent again") {
  shared_world w;
  keeper_host a{w};
  test_registration first{a.started(), "rid 1"}, second{a, "rid 2"};
  a.faults->clear_log();
  a.faults->once(store_operation::write, descriptor_key(first.node), store_fault::lose_reply);
  CHECK(first.claim() == outcome::done);
  CHECK(a.writes() == 1);
  CHECK(first.publish(first.content()) == outcome::done); // under the version that was found
  a.faults->clear_log();
  a.faults->once(store_operation::write, descriptor_key(second.node), store_fault::vanish);
  CHECK(second.claim() == outcome::done);
  CHECK(a.writes() == 2);
}

TEST_CASE("S-156 while a claim is in doubt it is not sent again before it was looked for") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  a.faults->clear_log();
  a.faults->set_rule([&](const store_call& call) {
    if (call.what == store_operation::write)
      return call.touches(a.lease()) && call.key == a.lease() ? store_fault::none : store_fault::lose_reply;
    return call.touches(descriptor_key(node.node)) ? store_fault::vanish : store_fault::none;
  });
  CHECK(node.claim(2s) == outcome::late);
  CHECK(a.writes() == 1);
  a.recover();
  CHECK(node.claim() == outcome::done);
  CHECK(node.stored().record->owner == a.token());
}

TEST_CASE("S-47 S-43 without a lease no claim is sent; a store that is late ends the claim at its deadline") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a, "rid"};
  CHECK(node.claim() == outcome::not_held);
  CHECK(a.writes() == 0);
  a.started();
  a.lose_store();
  const auto began = w.now();
  CHECK(node.claim(2s) == outcome::late);
  CHECK(w.now() - began == 2s);
  w.executor.run_for(11s); // the deadline has passed, the token is the same
  a.faults->clear_log();
  CHECK(node.claim() == outcome::not_held);
  CHECK(a.writes() == 0);
}

TEST_CASE("S-40 S-47 a lease that is over in the store stops the claim even if the host does not know it yet") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  w.write({{}, {deletes(a.lease())}});
  CHECK(node.claim(1s) == outcome::late);
  CHECK(!node.stored().record);
}

TEST_CASE("C-7 a RID that a dead owner without objects left behind is taken over, one of a live owner is not") {
  shared_world w;
  keeper_host b{w};
  auto a = std::make_unique<keeper_host>(w);
  a->started();
  {
    auto old = std::make_unique<test_registration>(*a, "fixed");
    old->entry_spot_id.clear();
    REQUIRE(old->claim() == outcome::done);
    auto content = old->content();
    content.role = object_role::none;
    content.capabilities.clear();
    REQUIRE(old->publish(content) == outcome::done);
  }
  b.started();
  test_registration next{b, "fixed"};
  next.entry_spot_id.clear();
  CHECK(next.claim() == outcome::rid_taken);
  a.reset();
  w.executor.run_for(20s);
  CHECK(next.claim() == outcome::done);
  CHECK(next.stored().record->owner == b.token());
  CHECK(next.stored().record->node == next.node);
}

TEST_CASE("S-21 a record of another structure version is an explicit failure and stays untouched") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  auto bytes = encode(node.content());
  bytes[1] = static_cast<char>(record_version + 1);
  w.put(descriptor_key(node.node), bytes);
  CHECK(node.claim() == outcome::corrupt);
  CHECK(zlink::test::read(*w.data, descriptor_key(node.node)).found->bytes == bytes);
}

// -- publications -----------------------------------------------------------------------------------------------------------------

TEST_CASE("S-47 S-27 the first publication replaces the claim, conditioned on it") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  CHECK(node.publish(node.content()) == outcome::gone); // no claim yet
  REQUIRE(node.claim() == outcome::done);
  CHECK(node.publish(node.content(node_state::claimed)) == outcome::refused);
  CHECK(node.publish(node.content()) == outcome::done);
  const auto stored = node.stored();
  CHECK(stored.record->state == node_state::serving);
  CHECK(stored.record->revision.value == 1);
  CHECK(stored.record->entry_spot_id == node.entry_spot_id);
  CHECK(stored.record->owner == a.token());
  CHECK(stored.record->updated_unix_ms != 0);
}

TEST_CASE("S-47 a publication on a claim that is gone or another's changes nothing") {
  for (const bool foreign : {false, true}) {
    shared_world w;
    keeper_host a{w};
    test_registration node{a.started(), "rid"};
    REQUIRE(node.claim() == outcome::done);
    if (foreign) {
      auto other = node.content();
      other.node = {"m", "rid", detail::lifecycle_generation{77}};
      other.revision.value = 1;
      other.owner = {{1, 1}, detail::lease_generation{500}};
      w.put(descriptor_key(node.node), encode(other));
    } else {
      w.write({{}, {deletes(descriptor_key(node.node))}});
    }
    const auto before = node.stored().version;
    CHECK(node.publish(node.content()) == outcome::gone);
    CHECK(node.stored().version == before);
  }
}

TEST_CASE("S-72 the stamp is the version that stands in the store") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  node.published();
  REQUIRE(node.records.stamp());
  CHECK(node.records.stamp()->version == node.stored().version);
  CHECK(node.records.stamp()->node == node.node);
  REQUIRE(node.change([](auto& d) { d.placement_weight = 7; }) == outcome::done);
  CHECK(node.records.stamp()->version == node.stored().version);
}

TEST_CASE("S-48 a replay stores nothing and is no error, a smaller revision is refused, a larger one stored") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  REQUIRE(node.claim() == outcome::done);
  auto d = node.content();
  d.revision.value = 5;
  REQUIRE(node.publish(d) == outcome::done);
  const auto before = node.stored().version;
  a.faults->clear_log();
  CHECK(node.publish(d) == outcome::done);
  CHECK(node.publish(d) == outcome::done);
  CHECK(a.writes() == 0);
  d.placement_weight = 1;
  CHECK(node.publish(d) == outcome::refused); // no replay: other content
  d.revision.value = 4;
  CHECK(node.publish(d) == outcome::refused);
  CHECK(node.stored().version == before);
  d.revision.value = 9;
  CHECK(node.publish(d) == outcome::done);
  CHECK(node.stored().record->revision.value == 9);
  d.revision = {};
  d.placement_weight = 2;
  CHECK(node.publish(d) == outcome::done);
  CHECK(node.stored().record->revision.value == 10);
}

TEST_CASE("S-48 after the last revision nothing more is published") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  REQUIRE(node.claim() == outcome::done);
  auto d = node.content();
  d.revision.value = generation_limit;
  REQUIRE(node.publish(d) == outcome::done);
  const auto before = node.stored().version;
  CHECK(node.change([](auto& c) { c.placement_weight = 7; }) == outcome::exhausted);
  CHECK(node.stored().version == before);
}

TEST_CASE("S-27 C-2 immutable fields are refused after the first publication, the listed ones may change") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  node.published();
  const auto before = node.stored().version;
  using edit = std::function<void(descriptor_record&)>;
  for (const auto& change : std::vector<edit>{
         [](auto& d) { d.endpoint = "elsewhere"; }, [](auto& d) { d.role = object_role::client; },
         [](auto& d) {
           d.channels.push_back({"more", 1});
         },
         [](auto& d) { d.channels[0].channel = "other"; }, [](auto& d) { d.capabilities.clear(); },
         [](auto& d) { d.capabilities[0].limit = 3; },
         [](auto& d) { d.capabilities[0].policy = relocation_policy::disabled; }, [](auto& d) { d.actor_limit = 1; },
         [](auto& d) { d.spot_limit = 1; }, [](auto& d) { d.activation_limit = 1; },
         [](auto& d) { d.application_version = "2"; }, [](auto& d) { d.security_identity = "x"; }})
    CHECK(node.change(change) == outcome::refused);
  CHECK(node.stored().version == before);
  std::uint64_t revision = 1;
  for (const auto& change :
       std::vector<edit>{[](auto& d) { d.placement_weight = 0; }, [](auto& d) { d.channels[0].weight = 0; },
                         [](auto& d) { d.state = node_state::draining; }, [](auto& d) { d.maintenance_wave = 3; }}) {
    CHECK(node.change(change) == outcome::done);
    CHECK(node.stored().record->revision.value == ++revision);
  }
}

TEST_CASE("S-27 content that no reader could decode or keep is refused") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  REQUIRE(node.claim() == outcome::done);
  auto many = node.content();
  for (std::size_t i = 0; i <= descriptor_record::capability_limit; ++i)
    many.capabilities.push_back({object_kind::user_spot, std::to_string(i), relocation_policy::disabled, false, 0, {}});
  CHECK(node.publish(many) == outcome::refused);
  auto large = node.content();
  large.application_version.assign(store_bounds::value_bytes, 'x');
  CHECK(node.publish(large) == outcome::refused);
  CHECK(node.publish(node.content()) == outcome::done);
}

TEST_CASE("S-49 a weight change is in the store when the call ends, without any time passing") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  node.published();
  const auto began = w.now();
  CHECK(node.change([](auto& d) { d.placement_weight = 3; }) == outcome::done);
  CHECK(w.now() == began);
  CHECK(node.stored().record->placement_weight == 3);
}

TEST_CASE("S-49 counts and activations alone never publish; they go with the next publication") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  node.published();
  const auto before = node.stored();
  a.faults->clear_log();
  for (std::uint32_t i = 1; i <= 1'000; ++i)
    CHECK(node.change([&](auto& d) {
      d.spots.active = d.capabilities[0].slots.active = i;
      d.activations = i % 3;
    }) == outcome::done);
  CHECK(a.writes() == 0);
  CHECK(node.stored().version == before.version);
  CHECK(node.change([](auto& d) { d.placement_weight = 3; }) == outcome::done);
  CHECK(node.stored().record->revision.value == before.record->revision.value + 1);
  CHECK(node.stored().record->spots.active == 1'000);
}

TEST_CASE("S-49 C-11 changes that come together are published one after the other, and none gets lost") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  node.published();
  std::vector<std::optional<result<outcome>>> ends(3);
  const auto until = node.in(5s);
  a.begin([&] { return node.records.change([](auto& d) { d.placement_weight = 1; }, until); }, ends[0]);
  a.begin([&] { return node.records.change([](auto& d) { d.channels[0].weight = 2; }, until); }, ends[1]);
  a.begin([&] { return node.records.change([](auto& d) { d.state = node_state::draining; }, until); }, ends[2]);
  w.executor.run();
  for (const auto& end : ends) {
    REQUIRE(end);
    CHECK(**end == outcome::done);
  }
  const auto stored = *node.stored().record;
  CHECK(stored.placement_weight == 1);
  CHECK(stored.channels[0].weight == 2);
  CHECK(stored.state == node_state::draining);
  CHECK(stored.revision.value == 4);
}

TEST_CASE("S-49 an edit that throws changes nothing and blocks no later one") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  node.published();
  std::optional<result<outcome>> end;
  a.begin([&] { return node.records.change([](descriptor_record&) { throw std::runtime_error{"no"}; }, node.in(5s)); },
          end);
  w.executor.run();
  REQUIRE(end);
  CHECK(!*end);
  CHECK(node.change([](auto& d) { d.placement_weight = 1; }) == outcome::done);
}

TEST_CASE(
  "S-156 S-48 a publication whose answer is lost is found and not stored twice, one that vanished is repeated") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  node.published();
  a.faults->clear_log();
  a.faults->once(store_operation::write, descriptor_key(node.node), store_fault::lose_reply);
  CHECK(node.change([](auto& d) { d.placement_weight = 1; }) == outcome::done);
  CHECK(a.writes() == 1);
  CHECK(node.records.stamp()->version == node.stored().version);
  a.faults->once(store_operation::write, descriptor_key(node.node), store_fault::vanish);
  CHECK(node.change([](auto& d) { d.placement_weight = 2; }) == outcome::done);
  CHECK(a.writes() == 3);
  CHECK(node.stored().record->revision.value == 3);
}

TEST_CASE("C-11 S-156 S-159 a publication that comes through late never gives a revision two contents") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  node.published();
  a.faults->once(store_operation::write, descriptor_key(node.node), store_fault::hold_call);
  CHECK(node.change([](auto& d) { d.placement_weight = 1; }, 2s) == outcome::late);
  auto other = node.content();
  other.revision.value = 2;
  other.placement_weight = 5;
  CHECK(node.publish(other) == outcome::refused);
  a.faults->release_all(); // revision 2 with weight 1 is in the store now
  w.executor.run();
  REQUIRE(node.stored().record->revision.value == 2);
  CHECK(node.change([](auto& d) { d.placement_weight = 9; }) == outcome::done);
  CHECK(node.stored().record->revision.value == 3);
  CHECK(node.stored().record->placement_weight == 9);
  CHECK(node.records.stamp()->version == node.stored().version);
}

TEST_CASE("S-40 nothing is published without a lease") {
  shared_world w;
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  node.published();
  const auto before = node.stored().version;
  a.lose_store();
  w.executor.run_for(11s);
  a.faults->clear_log();
  CHECK(node.change([](auto& d) { d.placement_weight = 1; }) == outcome::not_held);
  CHECK(node.stored().version == before);
  CHECK(a.writes() == 0);
  a.recover();
  w.executor.run_for(5s);
  REQUIRE(a.owner->held());
  const auto now = node.stored().version;
  w.write({{}, {deletes(a.lease())}}); // and the host does not know it yet
  CHECK(node.change([](auto& d) { d.placement_weight = 2; }, 1s) == outcome::late);
  CHECK(node.stored().version == now);
}
