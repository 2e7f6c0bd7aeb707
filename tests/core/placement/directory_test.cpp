// The nodes of a mesh as polling shows them.
#include "tests/core/placement/watcher.hpp"

using namespace zlink;
using namespace zlink::placement;
using namespace zlink::placement::test;

namespace {

using rids = std::vector<std::string>;

} // namespace

// -- what is listed ---------------------------------------------------------------------------------------------------------------

TEST_CASE("S-47 a claim is no node, and the Entry Spot id behind it resolves to nothing before the publication") {
  shared_world w;
  watcher all{w};
  keeper_host a{w};
  test_registration node{a.started(), "rid"};
  REQUIRE(node.claim() == registration_outcome::done);
  w.executor.run_for(3s);
  CHECK(all.rids().empty());
  CHECK(all.refresh() == refresh_outcome::complete);
  CHECK(!all.nodes.find("rid"));
  CHECK(!all.nodes.find_entry_spot("rid-entry"));
  REQUIRE(node.publish(node.content()) == registration_outcome::done);
  w.executor.run_for(1s);
  CHECK(all.rids() == rids{"rid"});
  REQUIRE(all.nodes.find_entry_spot("rid-entry"));
  CHECK(all.nodes.find_entry_spot("rid-entry")->descriptor->node == node.node);
  CHECK(all.nodes.find("rid")->stamp().version == node.stored().version);
  CHECK(!all.nodes.find_entry_spot("other"));
}

TEST_CASE("S-56 S-118 nodes that come, change and go in order are seen within the polling interval") {
  shared_world w;
  watcher all{w};
  serving_host a{w, "b"};
  w.executor.run_for(1s);
  CHECK(all.rids() == rids{"b"});
  serving_host b{w, "a"};
  w.executor.run_for(1s);
  CHECK(all.rids() == rids{"a", "b"});
  const auto changes = all.changes;
  REQUIRE(b.node.change([](auto& d) { d.placement_weight = 3; }) == registration_outcome::done);
  w.executor.run_for(1s);
  CHECK(all.changes == changes + 1);
  CHECK(all.nodes.find("a")->descriptor->placement_weight == 3);
  REQUIRE(b.node.withdraw() == registration_outcome::done);
  w.executor.run_for(1s);
  CHECK(all.rids() == rids{"b"});
  CHECK(all.last == all.nodes.snapshot());
  w.executor.run_for(60s);
  CHECK(all.changes == changes + 2); // renewed leases are no change
}

TEST_CASE("S-51 S-50 a crashed host's descriptor stays in the store and is left out") {
  shared_world w;
  watcher all{w};
  serving_host old{w, "rid old"};
  w.executor.run_for(1s);
  CHECK(all.usable() == 1);
  old.crash();
  w.executor.run_for(20s);
  CHECK(old.node.stored().record);
  CHECK(all.rids().empty());
  serving_host next{w, "rid new"}; // same configuration, started again
  w.executor.run_for(1s);
  CHECK(all.rids() == rids{"rid new"});
  watcher late{w}; // one that never saw it alive
  CHECK(late.rids() == rids{"rid new"});
}

TEST_CASE("S-51 a lease of another generation of the same owner does not make a descriptor live") {
  shared_world w;
  serving_host a{w, "rid"};
  auto token = a.host.token();
  ++token.lease.value;
  w.write({{}, {puts(a.host.lease(), encode(lease_record{token}), 60s)}});
  watcher all{w};
  CHECK(all.rids().empty());
}

TEST_CASE("S-51 S-44 a host that lost its lease is left out until it registered again") {
  shared_world w;
  watcher all{w};
  serving_host a{w, "rid"};
  w.executor.run_for(1s);
  w.time->advance(20s);
  w.executor.run_for(2s);
  REQUIRE(a.host.owner->held());
  CHECK(all.rids().empty());
  REQUIRE(a.node.register_again() == registration_outcome::done);
  w.executor.run_for(1s);
  CHECK(all.usable() == 1);
  CHECK(all.nodes.find("rid")->descriptor->owner == a.host.token());
}

TEST_CASE("S-22 C-3 nodes of another mesh are not listed") {
  shared_world w;
  keeper_host a{w};
  test_registration other{a.started(), "rid"};
  other.node.mesh_name = "mm";
  REQUIRE(other.claim() == registration_outcome::done);
  REQUIRE(other.publish(other.content()) == registration_outcome::done);
  watcher all{w};
  CHECK(all.rids().empty());
  CHECK(all.refresh() == refresh_outcome::complete);
}

// -- damage ------------------------------------------------------------------------------------------------------------------------

TEST_CASE("S-52 a lease without expiry spoils the read: nothing of it is applied, and selections end in an error") {
  shared_world w;
  serving_host a{w, "a"}, b{w, "b"};
  watcher all{w};
  CHECK(all.usable() == 2);
  w.put(b.host.lease(), encode(lease_record{b.host.token()})); // without expiry
  REQUIRE(a.node.withdraw() == registration_outcome::done);
  serving_host c{w, "c"};
  CHECK(all.refresh() == refresh_outcome::damaged);
  CHECK(all.rids() == rids{"a", "b"}); // as before: existing links are kept
  const auto seen = all.nodes.snapshot();
  CHECK(seen->damaged());
  counting_random random{1};
  const auto choice = choose_node(seen->candidates(w.now()), {"m", object_kind::instance_spot, "cart", {}, {}}, random);
  REQUIRE(std::holds_alternative<no_candidate>(choice));
  CHECK(std::get<no_candidate>(choice).kind() == error_kind::internal_failure);
  w.write({{}, {puts(b.host.lease(), encode(lease_record{b.host.token()}), 15s)}});
  CHECK(all.refresh() == refresh_outcome::complete);
  CHECK(all.rids() == rids{"b", "c"});
  CHECK(!all.nodes.snapshot()->damaged());
}

TEST_CASE("S-21 a descriptor of another structure version, or under a wrong key, is damage") {
  for (const bool misplaced : {false, true}) {
    shared_world w;
    serving_host a{w, "a"};
    watcher all{w};
    auto record = *a.node.stored().record;
    auto bytes = encode(record);
    if (!misplaced)
      bytes[1] = static_cast<char>(record_version + 1);
    w.put(descriptor_key("m", "z"), bytes);
    CHECK(all.refresh() == refresh_outcome::damaged);
    CHECK(all.rids() == rids{"a"});
    CHECK(all.nodes.status().health == store_health::healthy);
  }
}

// -- validity ------------------------------------------------------------------------------------------------------------------------

TEST_CASE("S-53 S-38 a node is usable until the deadline computed from the read of its lease, and no longer") {
  shared_world w;
  serving_host a{w, "a"};
  watcher all{w};
  const auto end = all.nodes.find("a")->usable_until;
  CHECK(end == w.now() + 10s);
  all.host.lose_store();
  w.executor.run_for(9'999ms);
  CHECK(all.usable() == 1);
  w.executor.run_for(1ms);
  CHECK(all.usable() == 0);
}

TEST_CASE("S-53 while a lease read is good enough it is not repeated; before it runs out it is") {
  shared_world w;
  serving_host a{w, "a"};
  watcher all{w};
  all.host.faults->clear_log();
  w.executor.run_for(7s);
  CHECK(all.lease_reads(a.host) == 0);
  CHECK(all.host.faults->count(store_operation::scan) == 7);
  for (int i = 0; i < 600; ++i) {
    w.executor.run_for(100ms);
    REQUIRE(all.usable() == 1);
  }
  CHECK(all.lease_reads(a.host) < 20);
}

TEST_CASE("S-51 a lease once over is not asked for again with every poll, but by a refresh") {
  shared_world w;
  serving_host a{w, "a"};
  a.crash();
  w.executor.run_for(20s);
  watcher all{w};
  all.host.faults->clear_log();
  w.executor.run_for(60s);
  CHECK(all.lease_reads(a.host) == 0);
  CHECK(all.refresh() == refresh_outcome::complete);
  CHECK(all.lease_reads(a.host) == 1);
}

TEST_CASE("S-51 a live lease too short for any validity is listed but not usable") {
  shared_world w;
  serving_host a{w, "a"};
  w.write({{}, {puts(a.host.lease(), encode(lease_record{a.host.token()}), 4s)}});
  watcher all{w};
  CHECK(all.rids() == rids{"a"});
  CHECK(all.usable() == 0);
}

// -- consistent lists ------------------------------------------------------------------------------------------------------------------

TEST_CASE("S-55 S-14 a list of many pages shows one point in time although nodes change meanwhile") {
  shared_world w;
  std::vector<std::unique_ptr<serving_host>> hosts;
  for (const char* rid : {"a", "b", "c", "d"})
    hosts.push_back(std::make_unique<serving_host>(w, rid));
  directory_settings settings;
  settings.page_items = 1;
  watcher all{w, settings};
  CHECK(all.rids() == rids{"a", "b", "c", "d"});
  CHECK(all.host.faults->count(store_operation::scan) >= 4);
  int pages = 0;
  all.host.faults->set_rule([&](const store_call& call) {
    if (call.what == store_operation::scan && ++pages == 3) { // "a" and "b" were read already
      w.write({{}, {deletes(descriptor_key("m", "a")), deletes(descriptor_key("m", "d"))}});
    }
    return store_fault::none;
  });
  w.executor.run_for(1s);
  CHECK(all.rids() == rids{"a", "b", "c", "d"}); // not without "d" but with "a"
  w.executor.run_for(1s);
  CHECK(all.rids() == rids{"b", "c"});
}

TEST_CASE("S-55 S-14 a list whose snapshot is lost half way is read again from the start") {
  shared_world w;
  serving_host a{w, "a"}, b{w, "b"}, c{w, "c"};
  directory_settings settings;
  settings.page_items = 1;
  watcher all{w, settings};
  int pages = 0;
  all.host.faults->set_rule([&](const store_call& call) {
    return call.what == store_operation::scan && ++pages == 3 ? store_fault::conflict : store_fault::none;
  });
  all.host.faults->clear_log();
  CHECK(all.refresh() == refresh_outcome::complete);
  CHECK(pages >= 6);
  CHECK(all.rids() == rids{"a", "b", "c"});
  all.host.faults->set_rule([](const store_call& call) {
    return call.what == store_operation::scan ? store_fault::conflict : store_fault::none;
  });
  CHECK(all.refresh() == refresh_outcome::unavailable); // not for ever
  CHECK(all.rids() == rids{"a", "b", "c"});
}

// -- outages ---------------------------------------------------------------------------------------------------------------------------

TEST_CASE("S-68 without store the last list stays, beyond the grace, while nodes stop being usable and none is added") {
  shared_world w;
  serving_host a{w, "a"};
  watcher all{w};
  const auto changes = all.changes;
  all.host.lose_store();
  serving_host b{w, "b"};
  w.executor.run_for(2s);
  CHECK(all.nodes.status().health == store_health::degraded);
  CHECK(all.rids() == rids{"a"});
  w.executor.run_for(60s);
  CHECK(all.nodes.status().health == store_health::failed);
  CHECK(all.rids() == rids{"a"});
  CHECK(all.usable() == 0);
  CHECK(all.changes == changes);
  CHECK(all.refresh() == refresh_outcome::unavailable);
  all.host.recover();
  w.executor.run_for(1s);
  CHECK(all.nodes.status().health == store_health::healthy);
  CHECK(all.rids() == rids{"a", "b"});
  CHECK(all.usable() == 2);
}

TEST_CASE("S-68 a read that fails half way, at a lease, changes nothing") {
  shared_world w;
  serving_host a{w, "a"};
  watcher all{w};
  serving_host b{w, "b"};
  all.host.faults->set_rule(
    [&](const store_call& call) { return call.touches(b.host.lease()) ? store_fault::vanish : store_fault::none; });
  REQUIRE(a.node.withdraw() == registration_outcome::done);
  w.executor.run_for(3s);
  CHECK(all.rids() == rids{"a"});
  CHECK(all.nodes.status().health == store_health::degraded);
}

TEST_CASE("S-68 S-70 a store that hangs ends a read after its timeout, and the next one follows") {
  shared_world w;
  serving_host a{w, "a"};
  watcher all{w};
  all.host.faults->set_rule([](const store_call&) { return store_fault::hold_call; });
  w.executor.run_for(7s);
  CHECK(all.nodes.status().health == store_health::degraded);
  CHECK(all.rids() == rids{"a"});
  all.host.recover();
  w.executor.run_for(6s);
  CHECK(all.nodes.status().health == store_health::healthy);
}

TEST_CASE("S-69 what the first lists after an outage miss keeps its intent for one lease TTL, and is no candidate") {
  shared_world w;
  serving_host a{w, "a"}, b{w, "b"};
  watcher all{w};
  all.host.lose_store();
  w.executor.run_for(2s);
  const auto record = encode(*a.node.stored().record);
  w.write({{}, {deletes(descriptor_key("m", "a"))}});
  all.host.recover();
  w.executor.run_for(1s);
  CHECK(all.rids() == rids{"a (lingering)", "b"});
  CHECK(all.usable() == 1);
  CHECK(!all.nodes.find_entry_spot("a-entry"));
  w.executor.run_for(13s);
  CHECK(all.rids() == rids{"a (lingering)", "b"});
  w.put(descriptor_key("m", "a"), record); // back in time: the intent never went away
  w.executor.run_for(1s);
  CHECK(all.rids() == rids{"a", "b"});
  w.write({{}, {deletes(descriptor_key("m", "a"))}});
  w.executor.run_for(3s);
  CHECK(all.rids() == rids{"b"}); // the TTL is over: an ordinary removal again
}

TEST_CASE("S-142 S-69 a list without any node is that of an emptied store: what was known lingers until all may be back") {
  shared_world w;
  serving_host a{w, "a"}, b{w, "b"};
  watcher all{w};
  w.wipe();
  w.executor.run_for(2s);
  CHECK(all.rids() == rids{"a (lingering)", "b (lingering)"});
  CHECK(all.usable() == 0);
  w.executor.run_for(26s);
  CHECK(all.rids() == rids{"a (lingering)", "b (lingering)"});
  REQUIRE(b.node.register_again() == registration_outcome::done);
  w.executor.run_for(1'500ms);
  CHECK(all.rids() == rids{"a (lingering)", "b"});
  w.executor.run_for(3s);
  CHECK(all.rids() == rids{"b"}); // it did not come back
}

TEST_CASE("S-69 S-142 hosts that register again in an emptied store never leave the list") {
  shared_world w;
  serving_host a{w, "a"};
  watcher all{w};
  bool always = true;
  w.wipe();
  all.host.lose_store(); // a restart takes a moment
  w.executor.run_for(1'500ms);
  all.host.recover();
  for (int i = 0; i < 60; ++i) {
    w.executor.run_for(500ms);
    always = always && all.nodes.find("a");
    if (a.host.lost && a.host.owner->held() && !a.node.stored().record)
      REQUIRE(a.node.register_again() == registration_outcome::done);
  }
  CHECK(always);
  CHECK(all.usable() == 1);
}

// -- refresh and end -----------------------------------------------------------------------------------------------------------------------

TEST_CASE("S-51 a refresh shows what was stored before it was asked for, also while another read is under way") {
  shared_world w;
  serving_host a{w, "a"};
  watcher all{w};
  all.host.faults->once(store_operation::scan, descriptor_prefix("m"), store_fault::hold_reply);
  w.executor.run_for(1s); // a poll whose list was made before "b" came
  REQUIRE(all.host.faults->held() == 1);
  serving_host b{w, "b"};
  std::optional<result<refresh_outcome>> first, second;
  all.host.begin([&] { return all.nodes.refresh(); }, first);
  all.host.begin([&] { return all.nodes.refresh(); }, second);
  w.executor.run();
  CHECK(!first);
  all.host.faults->clear_log();
  const auto began = w.now();
  all.host.faults->release_all();
  w.executor.run();
  CHECK(w.now() == began);
  REQUIRE(first);
  REQUIRE(second);
  CHECK(**first == refresh_outcome::complete);
  CHECK(all.rids() == rids{"a", "b"});
  CHECK(all.host.faults->count(store_operation::scan) == 1); // one read for both
}

TEST_CASE("S-119 stop waits for no answer, ends who waits, and nothing is read after it") {
  shared_world w;
  serving_host a{w, "a"};
  watcher all{w};
  all.host.faults->set_rule([](const store_call&) { return store_fault::hold_call; });
  std::optional<result<refresh_outcome>> end;
  all.host.begin([&] { return all.nodes.refresh(); }, end);
  w.executor.run();
  const auto began = w.now();
  all.host.run([&] { return all.nodes.stop(); });
  CHECK(w.now() == began);
  REQUIRE(end);
  CHECK(**end == refresh_outcome::unavailable);
  all.host.recover();
  all.host.faults->release_all();
  const auto calls = all.host.faults->log().size();
  w.executor.run_for(60s);
  CHECK(all.host.faults->log().size() == calls);
  CHECK(all.refresh() == refresh_outcome::unavailable);
  CHECK(all.rids() == rids{"a"});
}
