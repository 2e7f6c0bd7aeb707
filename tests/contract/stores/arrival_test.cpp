// Messages that arrive past the local admission deadline, and lists of nodes that are too old to choose from.
#include "tests/contract/creation/scripted_spots.hpp"
#include "zlink/host/host_runtime.hpp"

namespace stores_test {

using namespace creation_test;

TEST_CASE("S-41 S-46 past the deadline an arriving message is refused at once, though its gate is held") {
  for (const bool from_far : {true, false}) {
    CAPTURE(from_far);
    stage on;
    mesh net{2};
    net.start(serve(on));
    net.run(rouse(net.host(0), "a", "1"));
    const auto owner = net.owner_of("a");
    const auto caller = from_far ? 1 - owner : owner;
    net.run(ask(net.host(caller), "a", "2")); // the route is known
    barrier end;
    on.hold("handle", end);
    auto running = ask(net.host(owner), "a", "running", 5min);
    net.run_until([&] { return end.waiting() == 1; });
    net.cut_store(owner);
    const auto before = on.count("handle");
    // The route's own validity ends with the same lease: keep it, the receiver has to refuse by itself.
    auto& host = net.host(caller).runtime();
    const auto keep_route = [&] {
      const auto row = row_of(net, "a");
      host.messages.routes.cache.put("a", {"m", net.host(owner).mesh("m").rid(), row->generation, row->authority,
                                           host.time->now() + 1h},
                                     host.time->now());
    };
    auto early = ask(net.host(caller), "a", "early", 5min);
    net.run_until_idle();
    CHECK_FALSE(early.ready()); // admitted, behind the one that runs
    net.run_until([&] { return !net.host(owner).status().accepting_work; }); // the lease itself ends 5 s later
    keep_route();
    const auto began = net.elapsed();
    CHECK(failure(net, ask(net.host(caller), "a", "late", 5min)) == error_kind::unavailable);
    CHECK(net.elapsed() - began < 1s);
    CHECK_FALSE(early.ready());
    end.open();
    CHECK(failure(net, std::move(early)) == error_kind::unavailable);
    CHECK_FALSE(net.run(zlink::as_result(std::move(running))).is_cancelled());
    CHECK(on.count("handle") == before);
  }
}

TEST_CASE("S-46 whoever is no owner any more, by what it knows, takes nothing; the generation is not compared") {
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  const auto made = net.run(open_room(net.host(0), "a"));
  net.run(ask(net.host(0), "a", "warm"));
  CHECK(net.run(net.host(1).spots().close(made.spot)));
  net.run(open_room(net.host(1), "a"));
  // A route to the former incarnation: the same host owns the new one, which takes the message.
  CHECK(net.run(ask(net.host(0), "a", "by an old route")).generation > made.spot.object_generation);
}

TEST_CASE("S-40 S-41 past the deadline nothing is reserved and nothing committed, although the store would take it") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  net.run(rouse(net.host(0), "warm", "1"));
  barrier end;
  on.hold("initialize", end);
  auto building = rouse(net.host(0), "a", "1", 5min);
  net.run_until([&] { return end.waiting() == 1; });
  const auto rid = row_of(net, "a")->node.node_rid;
  const std::size_t owner = net.host(0).mesh("m").rid() == rid ? 0 : 1;
  // Only renewals fail: every other call would come through, and the lease lives on at the store for a while.
  const auto lease = zlink::placement::lease_key(net.host(owner).runtime().token().owner);
  net.faults(owner).set_rule([lease](const store_call& call) {
    return call.what == store_operation::write && call.key == lease ? store_fault::refuse : store_fault::none;
  });
  net.advance(11s);
  CHECK_FALSE(net.host(owner).status().accepting_work);
  const auto before = row_of(net, "a");
  end.open();
  net.run_until_idle();
  CHECK(row_of(net, "a") == before); // still reserved
  CHECK(failure(net, open_room(net.host(owner), "r")) == error_kind::unavailable);
  CHECK_FALSE(row_of(net, "r"));
  CHECK(failure(net, std::move(building)) == error_kind::unavailable);
  CHECK(on.count("handle a") == 0);
}

TEST_CASE("S-68 S-53 candidates whose leases were read too long ago are unavailable, not unknown") {
  stage on;
  mesh net{3};
  net.start(serve_beside_client(on));
  net.run(rouse(net.host(0), "a", "1"));
  const auto descriptors = zlink::placement::descriptor_prefix();
  net.faults(0).set_rule([&](const store_call& call) {
    return call.what == store_operation::scan && call.key.starts_with(descriptors) ? store_fault::refuse
                                                                                   : store_fault::none;
  });
  net.advance(5s);
  CHECK(net.run(rouse(net.host(0), "b", "1")).word == "1"); // the list stays, and is young enough
  net.advance(60s);                                         // far beyond the grace
  CHECK(net.host(0).mesh("m").runtime().peers_known->snapshot()->nodes().size() == 3);
  CHECK(failure(net, rouse(net.host(0), "c", "1")) == error_kind::unavailable);
  CHECK(failure(net, open_room(net.host(0), "r")) == error_kind::unavailable);
  auto untyped = net.host(0).spots().request_to_spot("d", wake{"1"}).instance_spot().submit<told>();
  CHECK(failure(net, std::move(untyped)) == error_kind::unavailable);
  CHECK(net.run(ask(net.host(0), "a", "2")).word == "2"); // needs no list
  net.faults(0).set_rule({});
  net.advance(5s);
  CHECK(net.run(rouse(net.host(0), "c", "1")).word == "1");
  auto other = net.host(0).spots().request_to_spot("e", wake{"1"}).instance_spot("nothing").submit<told>();
  CHECK(failure(net, std::move(other)) == error_kind::not_found); // with an answer it is known
}

} // namespace stores_test
