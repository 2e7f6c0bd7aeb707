// What a host writes of its nodes comes to the store in the end, whenever the store is there (S-43, S-44, S-49).
#include "tests/contract/creation/scripted_spots.hpp"
#include "zlink/host/host_runtime.hpp"

namespace publication_test {
namespace {

using namespace creation_test;
using zlink::testing::store_call;
using zlink::testing::store_fault;
using zlink::testing::store_operation;

auto refuse_writes_of(std::string prefix) {
  return [prefix = std::move(prefix)](const store_call& c) {
    return c.what == store_operation::write && c.touches(prefix) ? store_fault::refuse : store_fault::none;
  };
}

TEST_CASE("S-44 a descriptor that cannot be rewritten when the lease is regained is rewritten later") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  const auto rid = net.host(1).mesh("m").rid();
  net.cut_store(1);
  net.advance(30s);
  net.faults(1).set_rule(refuse_writes_of(zlink::placement::descriptor_key("m", rid)));
  net.heal();
  net.advance(30s);
  net.faults(1).set_rule({});
  net.advance(1min);
  REQUIRE(descriptor_of(net, rid));
  CHECK(descriptor_of(net, rid)->owner == net.host(1).runtime().token());
  bool chosen = false;
  for (int i = 0; i < 40 && !chosen; ++i)
    chosen = net.run(open_room(net.host(0), "n" + std::to_string(i))).spot.node_rid == rid;
  CHECK(chosen);
}

TEST_CASE("S-43 S-160 a start without a store goes on when it comes, however slowly; it is no mistake of the configuration") {
  stage on;
  mesh net{2};
  bool away = true;
  bool writes_away = true;
  SUBCASE("from the beginning") {}
  SUBCASE("from the lease on") { away = false; }
  net.faults(1).set_rule([&](const store_call& c) {
    if (away)
      return store_fault::vanish;
    const bool node = c.what == store_operation::write && c.touches(zlink::placement::descriptor_prefix());
    return writes_away && node ? store_fault::refuse : store_fault::none;
  });
  for (std::size_t i = 0; i < 2; ++i)
    serve(on)(net.host(i));
  auto first = net.host(0).runtime().start();
  auto second = net.host(1).runtime().start();
  net.run(std::move(first));
  net.run(std::move(second));
  CHECK(net.host(1).status().state == zlink::host_state::serving);
  away = false;
  net.advance(30s);
  CHECK_FALSE(descriptor_of(net, net.host(1).mesh("m").rid()));
  writes_away = false;
  net.advance(30s);
  CHECK(descriptor_of(net, net.host(1).mesh("m").rid()));
  CHECK(net.host(1).status().accepting_work);
  net.run(open_room(net.host(1), "a"));
  for (std::size_t i = 0; i < 2; ++i)
    CHECK(net.run(net.host(i).shutdown()).outcome == zlink::shutdown_outcome::stopped);
}

TEST_CASE("C-46 C-48 a store that comes back during a start shows nothing before the Entry Spot is ready and the node listens") {
  stage on;
  barrier hold;
  mesh net{1};
  bool away = true;
  net.faults(0).set_rule([&away](const store_call&) { return away ? store_fault::vanish : store_fault::none; });
  add_hall(net.host(0).add_mesh("m").object_server(), on);
  on.hold("initialize", hold);
  auto starting = net.host(0).runtime().start();
  net.run_until([&] { return hold.waiting() == 1; });
  away = false;
  net.advance(30s);
  const auto rid = net.host(0).mesh("m").rid();
  CHECK_FALSE(descriptor_of(net, rid));
  hold.open();
  net.run(std::move(starting));
  net.advance(5s);
  REQUIRE(descriptor_of(net, rid));
  CHECK(descriptor_of(net, rid)->endpoint == net.host(0).mesh("m").endpoint());
  CHECK(descriptor_of(net, rid)->entry_spot_id == net.host(0).mesh("m").entry_spot_id());
  CHECK(net.run(net.host(0).shutdown()).outcome == zlink::shutdown_outcome::stopped);
}

TEST_CASE("S-49 C-39 a weight that is set while the store is away is published when it is back") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  const auto rid = net.host(1).mesh("m").rid();
  net.cut_store(1);
  net.host(1).mesh("m").placement_weight(7);
  SUBCASE("shorter than the lease") { net.advance(12s); }
  SUBCASE("longer than the lease") { net.advance(30s); }
  net.heal();
  net.advance(1min);
  CHECK(descriptor_of(net, rid)->placement_weight == 7);
}

TEST_CASE("S-73 S-156 a publication that gets through after it was given up keeps nobody from creating Spots") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  const auto rid = net.host(0).mesh("m").rid();
  net.faults(0).once(store_operation::write, zlink::placement::descriptor_key("m", rid), store_fault::late);
  net.host(0).mesh("m").placement_weight(50);
  net.run_until([&] { return net.faults(0).held() == 1; });
  net.faults(0).set_rule([](const store_call& c) { // nobody can look meanwhile
    return c.what == store_operation::read && c.touches(zlink::placement::descriptor_prefix()) ? store_fault::vanish : store_fault::none;
  });
  net.advance(12s);
  net.faults(0).release_all();
  net.faults(0).set_rule({});
  net.run(open_room(net.host(0), "a"));
  net.run(rouse(net.host(0), "b", "1"));
}

} // namespace
} // namespace publication_test
