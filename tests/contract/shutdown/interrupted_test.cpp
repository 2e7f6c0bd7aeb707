// A host that ends in the middle of something: its own start, a creation, an activation, a close.
#include "tests/contract/creation/scripted_spots.hpp"
#include "zlink/host/host_runtime.hpp"

namespace shutdown_test {
namespace {

using namespace creation_test;
using zlink::error_kind;
using zlink::testing::store_call;
using zlink::testing::store_fault;
using zlink::testing::store_operation;

zlink::testing::mesh_options with_deadline(std::size_t hosts, std::chrono::milliseconds deadline) {
  return {.hosts = hosts, .adjust = [deadline](std::size_t, zlink::host_options& o) { o.shutdown_deadline = deadline; }};
}

TEST_CASE("L-247 a shutdown in Preparing interrupts the start, which says so") {
  stage on;
  barrier hold;
  mesh net{1};
  add_hall(net.host(0).add_mesh("m").object_server(), on);
  SUBCASE("while the Entry Spot initialises") {
    on.hold("initialize", hold);
    auto starting = net.host(0).runtime().start();
    net.run_until([&] { return hold.waiting() == 1; });
    auto ending = net.host(0).shutdown();
    net.advance(1s);
    hold.open();
    net.run(std::move(ending));
    CHECK(failure(net, std::move(starting)) == error_kind::shutting_down);
  }
  SUBCASE("by the Entry Spot that initialises") {
    int ended = 0;
    on.at = [&](const std::string& step, const std::string&) {
      if (step == "initialize")
        net.host(0).shutdown().then([&ended](auto) { ++ended; });
    };
    CHECK(failure(net, net.host(0).runtime().start()) == error_kind::shutting_down);
    net.run_until([&] { return ended == 1; });
  }
  SUBCASE("while the store is asked") {
    net.faults(0).once(store_operation::read, "", store_fault::hold_call);
    auto starting = net.host(0).runtime().start();
    net.run_until([&] { return net.faults(0).held() == 1; });
    auto ending = net.host(0).shutdown();
    net.advance(100ms);
    net.faults(0).release_all();
    net.run(std::move(ending));
    CHECK(failure(net, std::move(starting)) == error_kind::shutting_down);
  }
  SUBCASE("before the start") {
    net.run(net.host(0).shutdown());
    CHECK_THROWS_AS(static_cast<void>(net.host(0).runtime().start()), zlink::configuration_error);
  }
  CHECK(net.host(0).status().state == zlink::host_state::stopped);
  CHECK(net.host(0).status().spots == 0);
  CHECK(on.alive == 0);
  CHECK_FALSE(descriptor_of(net, net.host(0).mesh("m").rid()));
}

TEST_CASE("S-117 C-119 L-251 a creation whose commit is on its way when its host ends leaves no row") {
  for (const auto fault : {store_fault::hold_call, store_fault::hold_reply}) {
    CAPTURE(static_cast<int>(fault));
    stage on;
    barrier busy;
    mesh net{2};
    net.start(serve_beside_client(on));
    net.run(open_room(net.host(0), "b"));
    on.hold("handle", busy); // keeps the host meanwhile
    auto other = ask(net.host(0), "b", "long", 20s);
    net.run_until([&] { return busy.waiting() == 1; });
    bool armed = false;
    on.at = [&armed](const std::string& step, const std::string&) { armed = armed || step == "initialize"; };
    net.faults(1).set_rule([&](const store_call& c) {
      if (!armed || c.what != store_operation::write || !c.touches(zlink::placement::spot_key("a")))
        return store_fault::none;
      armed = false;
      on.at = nullptr;
      return fault;
    });
    auto call = open_room(net.host(0), "a", "x", 20s);
    net.run_until([&] { return net.faults(1).held() == 1; });
    auto ending = net.host(1).shutdown();
    net.advance(300ms);
    net.faults(1).release_all();
    net.advance(700ms);
    busy.open();
    CHECK(failure(net, std::move(call)) == error_kind::shutting_down);
    CHECK(net.run(std::move(ending)).outcome == zlink::shutdown_outcome::stopped);
    net.run(std::move(other));
    CHECK_FALSE(row_of(net, "a"));
    CHECK(on.alive == 0);
  }
}

TEST_CASE("S-117 an orderly end looks for rows of its own that nobody has removed") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  net.run(open_room(net.host(0), "a"));
  bool looked = false; // until then the row cannot be removed, and its Spot's end gives up
  net.faults(0).set_rule([&](const store_call& c) {
    looked = looked || c.what == store_operation::scan;
    return c.what == store_operation::write && !looked && c.touches(zlink::placement::spot_key("a")) ? store_fault::refuse
                                                                                                   : store_fault::none;
  });
  net.run(net.host(0).shutdown());
  CHECK(looked);
  CHECK(on.count("closing a host_shutdown") == 1);
  CHECK_FALSE(row_of(net, "a"));
}

TEST_CASE("L-241 L-251 an activation that the drain deadline has ended builds nothing afterwards") {
  for (const bool reserving : {false, true}) {
    CAPTURE(reserving);
    stage on;
    barrier busy;
    mesh net{with_deadline(2, 3s)};
    net.start([&on](zlink::host& host, std::size_t index) {
      if (index == 0)
        serve(on)(host);
      else
        host.add_mesh("m").object_client();
    });
    net.run(rouse(net.host(1), "warm", "1"));
    net.faults(0).once(reserving ? store_operation::write : store_operation::put,
                       reserving ? zlink::placement::spot_key("a") : std::string{}, store_fault::hold_reply);
    auto call = rouse(net.host(1), "a", "1", 60s);
    net.run_until([&] { return net.faults(0).held() == 1; });
    on.hold("closing", busy); // another Spot keeps the host from ending
    auto ending = net.host(0).shutdown();
    net.advance(3100ms);
    CHECK(failure(net, std::move(call)) == error_kind::shutting_down);
    net.faults(0).release_all();
    net.advance(500ms);
    CHECK(on.count("factory a") == 0);
    busy.open();
    net.run(std::move(ending));
    CHECK_FALSE(row_of(net, "a"));
    CHECK(on.alive == 0);
  }
}

TEST_CASE("C-119 L-241 a shutdown does not wait behind a close that the store does not carry out") {
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  const auto ref = net.run(open_room(net.host(0), "a")).spot;
  net.faults(1).set_rule([](const store_call& c) {
    return c.what == store_operation::write && c.touches(zlink::placement::spot_key("a")) ? store_fault::refuse : store_fault::none;
  });
  auto closing = net.host(0).spots().close(ref);
  net.advance(1s);
  CHECK(on.count("closing a") == 0);
  auto ending = net.host(1).shutdown();
  net.run_until([&] { return on.count("closing a host_shutdown") == 1; });
  net.faults(1).set_rule({});
  net.run(std::move(ending));
  CHECK(on.alive == 0);
  static_cast<void>(net.run(zlink::as_result(std::move(closing))));
  CHECK_FALSE(row_of(net, "a"));
}

} // namespace
} // namespace shutdown_test
