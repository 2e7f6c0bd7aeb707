// Rooms whose owner an aggregate decides, as callers and operators meet them.
#include "tests/contract/creation/scripted_spots.hpp"
#include "zlink/host/host_runtime.hpp"

#include <algorithm>

namespace aggregates_test {
namespace {

using namespace creation_test;
using namespace zlink::placement;
using zlink::listed_state;
using zlink::detail::resolved;

constexpr zlink::detail::unique_id aggregate{9, 9};
constexpr int members = 4;

/// A room with members on host 1, in an aggregate that host 1 or 2 owns; made past all hosts.
struct moved_room {
  explicit moved_room(std::size_t owner_host) : owner(owner_host) {
    net.start(serve_beside_client(on));
    put_one(object_kind::user_spot, "r", 7);
    for (int i = 0; i < members; ++i)
      put_one(object_kind::actor, 'p' + std::to_string(i), 8 + static_cast<std::uint64_t>(i));
    write_record();
    const auto rid = net.host(owner).mesh("m").rid();
    const auto key = capacity_key("m", rid);
    auto capacity = *stored<capacity_record>(net, key).record;
    for (const auto step : {slot_step::reserve, slot_step::activate})
      CHECK(apply(capacity, {identity(owner), slots(), step, {}}) == capacity_outcome::done);
    put(net, key, encode(capacity));
  }
  void put_one(object_kind kind, const std::string& id, std::uint64_t number) {
    row_record row;
    row.state = allocation_state::active;
    row.kind = kind;
    row.owner = net.host(1).runtime().token();
    row.node = identity(1);
    row.generation.value = row.authority.value = number;
    row.stable_type = "room";
    row.slots = slots_of(kind, "room");
    row.aggregate = aggregate;
    if (kind == object_kind::actor)
      row.member_of = spot_membership{"r", {7}};
    put(net, object_key(kind, id), encode(row));
  }
  void write_record() {
    aggregate_record record;
    record.id = aggregate;
    record.generation.value = 5;
    record.owner = net.host(owner).runtime().token();
    record.node = identity(owner);
    record.authority.value = owner == 1 ? 0 : 1'000;
    record.authority_before.value = 100;
    record.slots = slots();
    record.participants = {1, members + 1, {}};
    put(net, aggregate_key(aggregate), encode(record));
  }
  static slot_bundle slots() { return {members, 1, 1, object_kind::user_spot, "room"}; }
  node_identity identity(std::size_t host) { return net.host(host).runtime().find_node("m")->identity; }
  std::string rid_of(std::size_t host) { return net.host(host).mesh("m").rid(); }
  zlink::detail::resolution resolve(const std::string& address) {
    auto& runtime = net.host(0).runtime();
    std::optional<zlink::detail::resolution> end;
    runtime.infra->post([&] {
      zlink::detail::start_coroutine(runtime.messages.routes.resolve(address),
                                     [&](zlink::result<zlink::detail::resolution> found) { end = std::move(*found); });
    });
    net.run_until([&] { return end.has_value(); });
    return *end;
  }

  std::size_t owner;
  stage on;
  mesh net{3};
};

TEST_CASE("S-88 S-105 L-155 the room and everybody in it is found where their aggregate is, not where their rows were written") {
  for (const std::size_t owner : {1, 2}) {
    CAPTURE(owner);
    moved_room m{owner};
    const auto rid = m.rid_of(owner);
    for (const auto& address : {std::string{"r"}, zlink::detail::actor_address("p0"), zlink::detail::actor_address("p3")}) {
      const auto found = m.resolve(address);
      CHECK(found.what == resolved::ready);
      CHECK(found.route.node_rid == rid);
      CHECK((found.route.authority.value == 1'000) == (owner == 2));
    }
    CHECK(m.net.run(m.net.host(0).spots().find("r"))->node_rid == rid);
    CHECK(m.net.run(m.net.host(0).actors().find("p1"))->node_rid == rid);
    const auto room = m.net.run(m.net.host(0).actors().find_spot("p1"));
    CHECK(room->spot_id == "r");
    CHECK(room->node_rid == rid);
  }
}

TEST_CASE("S-88 S-110 S-111 operators see objects where their aggregate is, one by one and in lists") {
  moved_room m{2};
  const auto queries = m.net.host(0).queries();
  const auto rid = m.rid_of(2);
  CHECK(*m.net.run(queries.find_spot("r")) == zlink::listed_object{"r", "7", "m", rid, listed_state::ready, "room"});
  CHECK(*m.net.run(queries.find_actor("p2")) == zlink::listed_object{"p2", "10", "m", rid, listed_state::ready, "room"});
  int reads = 0;
  m.net.faults(0).set_rule([&](const store_call& call) {
    reads += call.what == store_operation::read && call.touches(aggregate_key(aggregate)) ? 1 : 0;
    return store_fault::none;
  });
  const auto page = m.net.run(queries.list({.kind = zlink::listed_kind::actor, .mesh_name = "m"}));
  CHECK(reads == 1); // for all of them
  CHECK(page.objects.size() == members);
  CHECK(std::all_of(page.objects.begin(), page.objects.end(), [&](const auto& one) { return one.node_rid == rid; }));
  m.net.faults(0).set_rule({});
  m.net.kill(2);
  m.net.advance(30s);
  for (const auto& one : m.net.run(queries.list({.kind = zlink::listed_kind::actor})).objects)
    CHECK(one.state == listed_state::unavailable);
  put(m.net, aggregate_key(aggregate), "no record");
  CHECK(failure(m.net, queries.list({.kind = zlink::listed_kind::actor})) == error_kind::internal_failure);
  CHECK(failure(m.net, queries.find_actor("p2")) == error_kind::internal_failure);
}

TEST_CASE("S-79 L-164 what a dead owner had by an aggregate is released by exact refs; the former owner's end changes nothing") {
  moved_room m{2};
  const auto room = *m.net.run(m.net.host(0).spots().find("r"));
  const auto who = *m.net.run(m.net.host(0).actors().find("p1"));
  m.net.kill(2);
  m.net.run_until_idle();
  CHECK(failure(m.net, m.net.host(0).spots().close(room)) == error_kind::unavailable);
  m.net.advance(30s);
  CHECK(m.net.run(m.net.host(0).actors().destroy(who)));
  CHECK(m.net.run(m.net.host(0).spots().close(room)));
  CHECK_FALSE(m.net.run(m.net.host(0).actors().destroy(who)));
  CHECK_FALSE(row_of(m.net, "r"));
  CHECK(m.net.run(m.net.host(0).actors().find("p2")) == std::nullopt); // unavailable, not gone
  CHECK(stored<object_record>(m.net, actor_key("p2")).record);

  moved_room alive{2};
  const auto ada = *alive.net.run(alive.net.host(0).actors().find("p1"));
  alive.net.kill(1);
  alive.net.advance(30s);
  CHECK(alive.net.run(alive.net.host(0).actors().find("p1")));
  CHECK(failure(alive.net, alive.net.host(0).actors().destroy(ada)) == error_kind::unavailable); // its owner lives
}

TEST_CASE("S-117 at its end a host takes what it has by an aggregate with it, and leaves what it had before") {
  moved_room m{2};
  CHECK(m.net.run(m.net.host(1).shutdown()).outcome == zlink::shutdown_outcome::stopped);
  CHECK(row_of(m.net, "r"));
  CHECK(m.net.run(m.net.host(2).shutdown()).outcome == zlink::shutdown_outcome::stopped);
  CHECK_FALSE(row_of(m.net, "r"));
  for (int i = 0; i < members; ++i)
    CHECK_FALSE(stored<object_record>(m.net, actor_key('p' + std::to_string(i))).record);
}

} // namespace
} // namespace aggregates_test
