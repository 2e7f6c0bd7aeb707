// Where and when Actors come into being while nodes come and go (05 sections 2 and 12, 04 section 14).
#include "tests/contract/membership/people.hpp"

namespace membership_test {
namespace {

using zlink::spot_create_state;

TEST_CASE("J-10 no Actor is made on a node whose Entry Spot is not initialized, and nobody sees that node") {
  stage on;
  barrier open;
  int halls = 0;
  on.during = [&](const std::string& step) {
    return step == "initialize hall" && ++halls == 2 ? open.passed() : zlink::task<void>::done();
  };
  mesh net{{.hosts = 2, .patience = 5s}};
  CHECK_THROWS_AS(net.start(serve_all(on)), zlink::testing::stalled);
  REQUIRE(open.waiting() == 1);
  const std::size_t late = net.host(0).status().is_ready ? 1 : 0;
  auto& early = net.host(1 - late);
  REQUIRE(early.status().is_ready);
  const auto rid = net.host(late).mesh("m").rid();
  const auto seen = creation_test::descriptor_of(net, rid);
  CHECK((!seen || seen->state == zlink::placement::node_state::claimed));
  CHECK(net.host(late).mesh("m").entry_spot_id().empty());
  for (int i = 0; i < 12; ++i) {
    const auto made = net.run(make_person(early, "p" + std::to_string(i)));
    CHECK(made.actor.node_rid == early.mesh("m").rid());
    CHECK(person_row(net, made.actor.actor_id)->member_of->spot_id == early.mesh("m").entry_spot_id());
  }
  early.mesh("m").placement_weight(0); // and if nobody else is left, nobody takes it
  CHECK(failure(net, make_person(early, "nobody's")) == error_kind::unavailable);
  CHECK(people_on(net, late) == zlink::placement::slot_bucket{});
  open.open();
  net.run_until([&] { return net.host(late).status().is_ready; });
  net.run(early.mesh("m").until_peers_ready(1));
  const auto made = net.run(make_person(early, "late"));
  CHECK(made.actor.node_rid == rid);
  CHECK(person_row(net, "late")->member_of->spot_id == net.host(late).mesh("m").entry_spot_id());
}

TEST_CASE("C-124 what was reserved on a node does not come into being in the Entry Spot of its next life") {
  for (const bool told : {true, false}) {
    CAPTURE(told);
    stage on;
    mesh net{2};
    net.start(serve_beside_client(on));
    const auto rid = net.host(1).mesh("m").rid();
    const auto entry = net.host(1).mesh("m").entry_spot_id();
    barrier never;
    on.hold("create ada", never);
    if (!told)
      net.mute(0, 1); // the reservation stands, and its target has not heard of it
    auto call = make_person(net.host(0), "ada", "first", 5min);
    if (told)
      net.run_until([&] { return never.waiting() == 1; });
    else
      net.run_until_idle();
    REQUIRE(person_row(net, "ada"));
    const auto reserved = *person_row(net, "ada");
    CHECK(reserved.node.node_rid == rid);
    net.kill(1);
    net.heal();
    on.during = nullptr;
    net.restart(1);
    const auto next_entry = net.host(1).mesh("m").entry_spot_id();
    CHECK(next_entry != entry);
    CHECK(failure(net, std::move(call)) == error_kind::unavailable);
    CHECK(on.count("create ada") == (told ? 1 : 0));
    CHECK(net.host(1).status().actors == 0);
    CHECK_FALSE(net.run(net.host(0).actors().find("ada")));
    CHECK(people_on(net, 1) == zlink::placement::slot_bucket{});
    net.advance(1min); // the reservation is dead, and goes
    const auto again = net.run(get_person(net.host(0), "ada"));
    CHECK(again.state == spot_create_state::created);
    CHECK(again.actor.object_generation > reserved.generation.value);
    CHECK(person_row(net, "ada")->member_of->spot_id == next_entry);
    CHECK(on.count("create ada") == (told ? 2 : 1));
    never.open();
  }
}

TEST_CASE("C-124 S-54 a target that restarts between its selection and the reservation is not what was selected") {
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  const auto rid = net.host(1).mesh("m").rid();
  const auto key = zlink::placement::actor_key("ada");
  int reservations = 0;
  net.faults(0).set_rule([&](const store_call& call) {
    if (call.what != store_operation::write || !call.touches(key))
      return store_fault::none;
    return ++reservations == 1 ? store_fault::hold_call : store_fault::none;
  });
  auto call = make_person(net.host(0), "ada", {}, 2min);
  net.run_until([&] { return net.faults(0).held() == 1; });
  net.kill(1);
  net.restart(1);
  net.advance(25s); // the lease of the former life is over
  net.faults(0).release_all();
  const auto made = net.run(zlink::as_result(std::move(call)));
  CHECK(reservations > 1); // the one that was held did not do
  REQUIRE(made);
  CHECK(made->actor.node_rid != rid);
  CHECK(made->actor.node_rid == net.host(1).mesh("m").rid());
  CHECK(person_row(net, "ada")->member_of->spot_id == net.host(1).mesh("m").entry_spot_id());
  CHECK(on.count("create ada") == 1);
}

TEST_CASE("J-168 a creation that is reserved ends within the deadline of a shutdown, a new one is refused") {
  for (const bool in_time : {true, false}) {
    CAPTURE(in_time);
    stage on;
    mesh net{2};
    net.start(serve_beside_client(on));
    barrier open;
    on.hold("create ada", open);
    auto call = make_person(net.host(0), "ada", {}, 5min);
    net.run_until([&] { return open.waiting() == 1; });
    auto ending = net.host(1).shutdown();
    net.advance(10s);
    CHECK(net.host(1).status().state == zlink::host_state::draining);
    CHECK_FALSE(call.ready());
    CHECK(failure(net, make_person(net.host(1), "bob")) == error_kind::shutting_down);
    CHECK(failure(net, make_person(net.host(0), "bob")) == error_kind::unavailable); // its only candidate drains
    CHECK(on.count("create bob") == 0);
    CHECK_FALSE(person_row(net, "bob"));
    if (in_time) {
      open.open();
      CHECK(net.run(std::move(call)).state == spot_create_state::created);
      CHECK(net.run(std::move(ending)).outcome == zlink::shutdown_outcome::stopped);
    } else {
      net.advance(20'500ms); // the deadline is 30 s
      open.open();
      CHECK(failure(net, std::move(call)) == error_kind::shutting_down);
      CHECK(net.run(std::move(ending)).reason == zlink::shutdown_reason::deadline_exceeded);
    }
    CHECK(on.alive == 0);
    CHECK_FALSE(person_row(net, "ada"));
    CHECK(on.count("create ada") == 1);
  }
}

} // namespace
} // namespace membership_test
