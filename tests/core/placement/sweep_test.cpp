// Scans of rows: dead reservations, own first activations, the host's own rows at shutdown.
#include "tests/core/placement/keeper_host.hpp"
#include "zlink/placement/sweep.hpp"

#include <algorithm>

using namespace zlink;
using namespace zlink::placement;
using namespace zlink::placement::test;

namespace {

/// A host with one node and its sweep.
struct sweeping_host {
  sweeping_host(shared_world& w, const std::string& rid, sweep_settings settings = {})
    : host(w),
      node(host.started(), rid),
      rows(host.infra, host.records, *host.owner, settings,
           [this](const std::string& id, const row_record&) { found.push_back(id); }) {
    node.published();
    rows.add_node(node.node);
  }
  ~sweeping_host() {
    host.run([this] { return rows.stop(); });
  }
  fragment_result apply(fragment step) {
    return host.run([&]() -> task<fragment_result> { return wrap(host.records.apply(std::move(step))); });
  }
  static task<fragment_result> wrap(task<fragment_result> step) { co_return co_await std::move(step); }

  observed_object see(object_kind kind, const std::string& id) {
    return host.world.see<object_record>(object_key(kind, id));
  }
  detail::unique_id reserve_row(object_kind kind, const std::string& id) {
    reserve_request r;
    r.kind = kind;
    r.id = id;
    r.stable_type = "type";
    r.reservation = host.world.random.next_id();
    r.target_owner = host.token();
    r.target = *node.records.stamp();
    if (kind == object_kind::instance_spot)
      r.content = recovery_root{"root of " + id, {}, 100, 0};
    else
      r.content = request_content{"request", 7, {}};
    auto decided = reserve(see(kind, id), r);
    REQUIRE(std::holds_alternative<fragment>(decided));
    REQUIRE(apply(std::get<fragment>(decided)).what == fragment_outcome::applied);
    return r.reservation;
  }
  void create_row(object_kind kind, const std::string& id) {
    reservation_end end;
    end.id = id;
    end.reservation = reserve_row(kind, id);
    end.target_owner = host.token();
    end.target = *node.records.stamp();
    std::optional<spot_membership> membership;
    if (kind == object_kind::actor)
      membership = spot_membership{node.entry_spot_id, {}};
    auto decided = commit(see(kind, id), end, membership);
    REQUIRE(std::holds_alternative<fragment>(decided));
    REQUIRE(apply(std::get<fragment>(decided)).what == fragment_outcome::applied);
  }
  /// An Instance Spot whose first record was handled.
  void create_settled(const std::string& id) {
    create_row(object_kind::instance_spot, id);
    const owned_object spot{object_kind::instance_spot, id, host.token()};
    for (const auto& step : {advance_cursor, +[](const observed_object&seen, const owned_object&object, std::uint64_t) {
                               return retire_root(seen, object);
                             }}) {
      auto decided = step(see(object_kind::instance_spot, id), spot, 1);
      REQUIRE(std::holds_alternative<fragment>(decided));
      REQUIRE(apply(std::get<fragment>(decided)).what == fragment_outcome::applied);
    }
  }
  sweep_report scan() {
    return host.run([this] { return rows.scan(); });
  }
  sweep_report remove_own(steady_duration time = 10s) {
    return host.run([&] { return rows.remove_own(host.world.now() + time); });
  }
  bool exists(object_kind kind, const std::string& id) { return see(kind, id).record.has_value(); }
  capacity_record capacity() { return *node.stored_capacity().record; }

  keeper_host host;
  test_registration node;
  std::vector<std::string> found;
  sweep rows;
  std::uint64_t issued = 0;
};

constexpr auto actor = object_kind::actor;
constexpr auto user_spot = object_kind::user_spot;
constexpr auto instance_spot = object_kind::instance_spot;

} // namespace

TEST_CASE(
  "S-116 S-74 S-115 C-98 a scan releases dead reservations, reports own rows, leaves all else alone") {
  shared_world w;
  sweeping_host dead{w, "dead"}, a{w, "a"}, b{w, "b"};
  dead.reserve_row(actor, "dead actor");
  dead.reserve_row(user_spot, "dead user spot");
  dead.reserve_row(instance_spot, "dead instance");
  dead.create_row(actor, "ready actor of the dead");
  dead.create_row(instance_spot, "fresh instance of the dead");
  dead.create_settled("settled instance of the dead");
  b.reserve_row(instance_spot, "being created elsewhere");
  a.reserve_row(actor, "own actor being created");
  a.reserve_row(instance_spot, "own creating");
  a.create_row(instance_spot, "own fresh");
  a.create_settled("own settled");
  dead.host.lose_store();
  w.executor.run_for(20s);

  const auto report = a.scan();
  CHECK(report.complete);
  CHECK(report.removed == 3);
  CHECK(report.unusable == 0);
  CHECK(!a.exists(actor, "dead actor"));
  CHECK(!a.exists(user_spot, "dead user spot"));
  CHECK(!a.exists(instance_spot, "dead instance"));
  CHECK(a.exists(actor, "ready actor of the dead"));
  CHECK(a.exists(instance_spot, "fresh instance of the dead"));
  CHECK(a.exists(instance_spot, "settled instance of the dead"));
  CHECK(a.exists(instance_spot, "being created elsewhere"));
  CHECK(a.exists(actor, "own actor being created"));
  std::sort(a.found.begin(), a.found.end());
  CHECK(a.found == std::vector<std::string>{"own actor being created", "own creating", "own fresh", "own settled"}); // whose host knows which it has
  const auto left = dead.capacity();
  CHECK(left.actors == slot_bucket{1, 0});
  CHECK(left.spots == slot_bucket{2, 0});
  CHECK(a.scan().removed == 0);
}

TEST_CASE("S-74 a reservation is dead, too, when its node has another lifecycle or none, under a lease that lives on") {
  for (const bool gone : {false, true}) {
    shared_world w;
    sweeping_host target{w, "target"}, a{w, "a"};
    target.reserve_row(user_spot, "spot");
    CHECK(a.scan().removed == 0);
    auto next = *target.node.stored().record;
    next.node.lifecycle.value ^= 2;
    if (gone)
      w.write({{}, {deletes(descriptor_key(next.node)), deletes(capacity_key(next.node))}});
    else
      w.put(descriptor_key(next.node), encode(next));
    CHECK(a.scan().removed == 1);
    CHECK(!a.exists(user_spot, "spot"));
  }
}

TEST_CASE("S-74 S-14 a row that changed since it was listed is judged by what it is now") {
  shared_world w;
  sweeping_host dead{w, "dead"}, a{w, "a"}, b{w, "b"};
  dead.reserve_row(user_spot, "spot");
  dead.host.lose_store();
  w.executor.run_for(20s);
  bool replaced = false;
  a.host.faults->set_rule([&](const store_call& call) {
    if (call.what == store_operation::read && call.key == spot_key("spot") && !replaced) {
      replaced = true;
      w.write({{}, {deletes(spot_key("spot")), deletes(capacity_key(dead.node.node))}});
      b.reserve_row(user_spot, "spot");
    }
    return store_fault::none;
  });
  CHECK(a.scan().removed == 0);
  CHECK(replaced);
  CHECK(a.exists(user_spot, "spot"));
}

TEST_CASE("S-74 S-156 a release whose answer is lost happens once") {
  shared_world w;
  sweeping_host dead{w, "dead"}, a{w, "a"};
  dead.reserve_row(user_spot, "spot");
  dead.host.lose_store();
  w.executor.run_for(20s);
  a.host.faults->once(store_operation::write, spot_key("spot"), store_fault::lose_reply);
  CHECK(a.scan().complete);
  CHECK(a.host.faults->script_done());
  CHECK(!a.exists(user_spot, "spot"));
  CHECK(dead.capacity().spots == slot_bucket{0, 0});
}

TEST_CASE("C-98 S-44 rows of a former token, and of another lifecycle, are not resumed") {
  shared_world w;
  sweeping_host a{w, "a"};
  a.create_row(instance_spot, "old");
  CHECK(a.scan().complete);
  CHECK(a.found.size() == 1);
  bool found = false;
  sweep without_node{a.host.infra, a.host.records, *a.host.owner, {}, [&](auto&, auto&) { found = true; }};
  CHECK(a.host.run([&] { return without_node.scan(); }).complete);
  CHECK(!found);
  w.time->advance(20s);
  w.executor.run_for(1s);
  REQUIRE(a.host.owner->held());
  REQUIRE(a.node.register_again() == registration_outcome::done);
  a.found.clear();
  CHECK(a.scan().complete);
  CHECK(a.found.empty());
  CHECK(a.exists(instance_spot, "old"));
}

TEST_CASE("S-21 S-116 a row that cannot be decoded is counted and stays") {
  shared_world w;
  sweeping_host a{w, "a"};
  w.put(actor_key("x"), "no record");
  const auto report = a.scan();
  CHECK(report.complete);
  CHECK(report.unusable == 1);
  CHECK(zlink::test::read(*w.data, actor_key("x")).found);
}

TEST_CASE("S-40 without a lease nothing is scanned or changed") {
  shared_world w;
  sweeping_host a{w, "a"};
  a.create_row(actor, "x");
  a.host.lose_store();
  w.executor.run_for(11s);
  a.host.faults->clear_log();
  CHECK(!a.scan().complete);
  CHECK(!a.remove_own().complete);
  CHECK(a.host.faults->count(store_operation::scan) == 0);
}

TEST_CASE("S-14 a scan whose snapshot is lost is begun again, though not for ever; a store failure ends it") {
  sweep_settings settings;
  settings.page_items = 2;
  shared_world w;
  sweeping_host a{w, "a", settings};
  for (int i = 0; i < 6; ++i)
    a.reserve_row(actor, std::to_string(i));
  int pages = 0;
  a.host.faults->set_rule([&](const store_call& call) {
    return call.what == store_operation::scan && ++pages == 2 ? store_fault::conflict : store_fault::none;
  });
  CHECK(a.scan().complete);
  CHECK(pages >= 6);
  a.host.faults->set_rule([&](const store_call& call) {
    return call.what == store_operation::scan ? store_fault::conflict : store_fault::none;
  });
  CHECK(!a.scan().complete);
  a.host.lose_store();
  CHECK(!a.scan().complete);
}

TEST_CASE("S-116 the background pass goes slowly, page by page, and finds what died since the start") {
  sweep_settings settings;
  settings.page_items = 2;
  settings.page_pause = 1s;
  settings.pass_interval = 60s;
  shared_world w;
  sweeping_host dead{w, "dead"}, a{w, "a", settings};
  for (int i = 0; i < 6; ++i)
    dead.reserve_row(actor, std::to_string(i));
  dead.host.lose_store();
  a.host.faults->clear_log();
  a.host.infra.post([&] { a.rows.start(); }); // the start scan; none of them is dead yet
  w.executor.run_for(10s);
  CHECK(a.host.faults->count(store_operation::scan) > 2);
  CHECK(a.exists(actor, "0"));
  a.host.faults->clear_log();
  w.executor.run_for(45s);
  CHECK(a.host.faults->count(store_operation::scan) == 0);
  REQUIRE(w.executor.run_until([&] { return a.host.faults->count(store_operation::scan) == 2; }, 20s));
  CHECK(a.exists(actor, "5"));
  w.executor.run_for(3s);
  for (int i = 0; i < 6; ++i)
    CHECK(!a.exists(actor, std::to_string(i)));
  a.host.run([&] { return a.rows.stop(); });
  const auto scans = a.host.faults->count(store_operation::scan);
  w.executor.run_for(300s);
  CHECK(a.host.faults->count(store_operation::scan) == scans);
}

TEST_CASE("S-117 at shutdown a host removes its rows page by page, active or reserved, and only its own") {
  sweep_settings settings;
  settings.page_items = 3;
  shared_world w;
  sweeping_host a{w, "a", settings}, b{w, "b"};
  for (int i = 0; i < 10; ++i)
    a.create_row(actor, "actor " + std::to_string(i));
  a.create_row(user_spot, "room");
  a.create_settled("cart");
  a.reserve_row(instance_spot, "creating");
  b.create_row(actor, "actor of b");
  const auto report = a.remove_own();
  CHECK(report.complete);
  CHECK(report.removed == 13);
  CHECK(a.capacity() == capacity_record{a.node.node.lifecycle, {}, {}, {}});
  CHECK(!a.exists(actor, "actor 7"));
  CHECK(!a.exists(instance_spot, "creating"));
  CHECK(b.exists(actor, "actor of b"));
  CHECK(a.node.stored_entry().record); // goes with the descriptor
}

TEST_CASE("S-117 S-44 a late sweep of an old run touches nothing: neither its former rows nor a replacement's") {
  shared_world w;
  sweeping_host a{w, "a"}, b{w, "b"};
  a.create_row(actor, "x");
  a.create_row(actor, "y");
  w.write({{}, {deletes(a.host.lease())}}); // over, and the paused process does not know
  auto report = a.remove_own();
  CHECK(report.removed == 0);
  CHECK(a.exists(actor, "x"));
  w.executor.run_for(6s); // now it has another token
  b.create_row(actor, "z");
  report = a.remove_own();
  CHECK(report.removed == 0);
  CHECK(a.exists(actor, "x"));
  CHECK(a.exists(actor, "z"));
}

TEST_CASE("S-117 S-156 removing with lost answers removes each row once") {
  shared_world w;
  sweeping_host a{w, "a"};
  for (int i = 0; i < 5; ++i)
    a.create_row(actor, std::to_string(i));
  a.host.faults->once(store_operation::write, actor_key("0"), store_fault::lose_reply);
  CHECK(a.remove_own().complete);
  CHECK(a.host.faults->script_done());
  CHECK(a.capacity().actors == slot_bucket{0, 0});
  CHECK(!a.exists(actor, "0"));
}

TEST_CASE("S-119 S-117 the sweep of own rows ends at its deadline although the store hangs") {
  shared_world w;
  sweeping_host a{w, "a"};
  a.create_row(actor, "x");
  for (const auto what : {store_operation::scan, store_operation::write}) {
    a.host.faults->set_rule([what](const store_call& call) {
      const bool hangs = call.what == what && (what == store_operation::scan || call.key == actor_key("x"));
      return hangs ? store_fault::hold_call : store_fault::none;
    });
    const auto began = w.now();
    a.remove_own(2s);
    CHECK(w.now() - began == 2s);
    a.host.recover();
    a.host.faults->release_all();
    w.executor.run();
  }
  CHECK(!a.exists(actor, "x")); // what hung came through in the end
}
