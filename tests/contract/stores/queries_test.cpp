// What operators see of objects and nodes.
#include "tests/contract/creation/scripted_spots.hpp"
#include "zlink/host/host_runtime.hpp"

#include <algorithm>
#include <set>

namespace stores_test {

using namespace creation_test;
using zlink::listed_kind;
using zlink::listed_state;

/// A Ready Instance Spot of a host's token, made past all hosts.
void put_row(mesh& net, std::size_t host, const std::string& id, const std::string& type = "cell") {
  auto& runtime = net.host(host).runtime();
  zlink::placement::row_record row;
  row.state = zlink::placement::allocation_state::active;
  row.kind = zlink::placement::object_kind::instance_spot;
  row.owner = runtime.token();
  row.generation.value = 7;
  row.authority.value = 8;
  row.stable_type = type;
  row.node = runtime.find_node("m")->identity;
  row.slots = zlink::placement::slots_of(row.kind, type);
  put(net, zlink::placement::spot_key(id), zlink::placement::encode(row));
}

/// One cycle of pages.
std::vector<std::string> all_ids(mesh& net, zlink::object_query query, std::size_t* pages = nullptr) {
  std::vector<std::string> ids;
  do {
    auto page = net.run(net.host(0).queries().list(query));
    CHECK(page.objects.size() <= query.page_size);
    CHECK(page.continuation.size() <= 4'096);
    for (const auto& one : page.objects)
      ids.push_back(one.id);
    query.continuation = page.continuation;
    if (pages != nullptr)
      ++*pages;
  } while (!query.continuation.empty());
  return ids;
}

TEST_CASE("S-110 an object by its id: absent, creating, ready, unavailable") {
  stage on;
  mesh net{3};
  net.start(serve_beside_client(on));
  const auto queries = net.host(0).queries();
  CHECK_FALSE(net.run(queries.find_spot("a")));
  barrier end;
  on.hold("initialize", end);
  auto call = rouse(net.host(0), "a", "1", 1min);
  net.run_until([&] { return end.waiting() == 1; });
  const auto creating = net.run(queries.find_spot("a"));
  REQUIRE(creating);
  CHECK(creating->state == listed_state::creating);
  end.open();
  const auto told = net.run(std::move(call));
  const auto ready = net.run(queries.find_spot("a"));
  REQUIRE(ready);
  const auto generation = std::to_string(told.generation);
  CHECK(*ready == zlink::listed_object{"a", generation, "m", told.rid, listed_state::ready, "cell"});
  CHECK_FALSE(net.run(queries.find_actor("a"))); // ids of Actors are others
  const auto owner = net.owner_of("a");
  net.kill(owner);
  net.advance(1min);
  CHECK(net.run(queries.find_spot("a"))->state == listed_state::unavailable);
  net.faults(0).set_rule([](const store_call&) { return store_fault::refuse; });
  CHECK(failure(net, queries.find_spot("a")) == error_kind::unavailable);
}

TEST_CASE("S-111 1,001 objects at every page size, each once, by kind, type and mesh") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  std::vector<std::string> expected;
  for (int i = 0; i < 1'001; ++i) {
    expected.push_back("i" + std::to_string(1'000 + i));
    put_row(net, 0, expected.back(), i % 10 == 0 ? "rare" : "cell");
  }
  for (const auto& [size, pages] : {std::pair{std::size_t{1}, std::size_t{1'001}}, {100, 11}, {1'000, 2}}) {
    std::size_t seen = 0;
    CHECK(all_ids(net, {.kind = listed_kind::instance_spot, .page_size = size}, &seen) == expected);
    CHECK(seen == pages);
  }
  CHECK(zlink::object_query{}.page_size == 100);
  CHECK(all_ids(net, {.kind = listed_kind::instance_spot, .stable_type = "rare"}).size() == 101);
  CHECK(all_ids(net, {.kind = listed_kind::instance_spot, .mesh_name = "m"}).size() == 1'001);
  CHECK(all_ids(net, {.kind = listed_kind::instance_spot, .mesh_name = "other"}).empty());
  CHECK(all_ids(net, {.kind = listed_kind::user_spot}).empty());
  CHECK(all_ids(net, {.kind = listed_kind::actor}).empty());
  const auto page = net.run(net.host(0).queries().list({}));
  CHECK(page.objects.front().object_generation == "7");
  for (const std::size_t bad : {std::size_t{0}, std::size_t{1'001}})
    CHECK_THROWS_AS((void) net.host(0).queries().list({.page_size = bad}), std::invalid_argument);
  CHECK_THROWS_AS((void) net.host(0).queries().list({.continuation = std::string(4'097, 'x')}), std::invalid_argument);
}

TEST_CASE("S-111 objects that come and go between pages: no id twice, and the next cycle shows them") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  for (int i = 0; i < 60; ++i)
    put_row(net, 0, "i" + std::to_string(100 + i));
  zlink::object_query query{.kind = listed_kind::instance_spot, .page_size = 10};
  std::multiset<std::string> seen;
  for (int page_number = 0;; ++page_number) {
    auto page = net.run(net.host(0).queries().list(query));
    for (const auto& one : page.objects)
      seen.insert(one.id);
    put_row(net, 0, "a" + std::to_string(page_number)); // before, and behind what was listed
    put_row(net, 0, "z" + std::to_string(page_number));
    if ((query.continuation = page.continuation).empty())
      break;
  }
  CHECK(std::set<std::string>(seen.begin(), seen.end()).size() == seen.size());
  CHECK(all_ids(net, {.kind = listed_kind::instance_spot}).size() > 60);
}

TEST_CASE("S-112 a failure of the store ends the whole page; a damaged row is an internal failure") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  for (int i = 0; i < 20; ++i)
    put_row(net, 0, "i" + std::to_string(i));
  const auto queries = net.host(0).queries();
  for (const auto what : {store_operation::scan, store_operation::read}) {
    net.faults(0).set_rule(
      [&](const store_call& call) { return call.what == what ? store_fault::refuse : store_fault::none; });
    CHECK(failure(net, queries.list({})) == error_kind::unavailable);
    CHECK(failure(net, queries.summary("m")) == error_kind::unavailable);
    CHECK(failure(net, queries.nodes("m")) == error_kind::unavailable);
  }
  net.faults(0).set_rule({});
  const auto page = net.run(queries.list({.page_size = 5}));
  net.faults(0).once(store_operation::scan, "", store_fault::conflict); // the snapshot is gone
  CHECK(failure(net, queries.list({.page_size = 5, .continuation = page.continuation})) == error_kind::unavailable);
  put(net, zlink::placement::spot_key("i5"), "no row");
  CHECK(failure(net, queries.list({})) == error_kind::internal_failure);
  CHECK(failure(net, queries.find_spot("i5")) == error_kind::internal_failure);
}

TEST_CASE("S-113 topology and sums: published nodes only, a crashed one is stopped, a damaged lease spoils all") {
  stage on;
  mesh net{3};
  net.start(serve_beside_client(on));
  const auto queries = net.host(0).queries();
  zlink::placement::descriptor_record claim;
  claim.node = {"m", "claimed", {5}};
  claim.owner = net.host(0).runtime().token();
  put(net, zlink::placement::descriptor_key(claim.node), zlink::placement::encode(claim));
  const auto nodes = net.run(queries.nodes("m"));
  REQUIRE(nodes.size() == 3);
  for (const auto& node : nodes) {
    CHECK(node.live);
    CHECK(node.state == "serving");
    CHECK_FALSE(node.endpoint.empty());
  }
  auto sum = net.run(queries.summary("m"));
  CHECK(sum.ready == 3);
  CHECK(sum.total == 3);
  net.kill(2);
  net.advance(1min);
  sum = net.run(queries.summary("m"));
  CHECK(sum.ready == 2);
  CHECK(sum.stopped == 1);
  CHECK(sum.total == 3);
  CHECK(sum.errors == 0);
  CHECK(net.run(queries.summary("elsewhere")).total == 0);
  const auto token = net.host(1).runtime().token();
  put(net, zlink::placement::lease_key(token.owner), zlink::placement::encode(zlink::placement::lease_record{token}));
  CHECK(failure(net, queries.summary("m")) == error_kind::internal_failure);
  CHECK(failure(net, queries.nodes("m")) == error_kind::internal_failure);
}

} // namespace stores_test
