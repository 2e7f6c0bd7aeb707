// Rows that a store's lost or late answer leaves behind while their host lives on.
#include "tests/contract/creation/scripted_spots.hpp"
#include "zlink/host/host_runtime.hpp"

namespace stores_test {

using namespace creation_test;
using zlink::placement::allocation_state;
using zlink::placement::slot_bucket;

/// The first message of "a": its activation (`reserved`) or its handler waits at `end`.
auto hang_at_first(stage& on, mesh& net, barrier& end, bool reserved) {
  net.start(serve(on));
  on.hold(reserved ? "initialize" : "handle", end);
  auto call = rouse(net.host(0), "a", "first", 5min);
  net.run_until([&] { return end.waiting() == 1; });
  net.run_until_idle();
  return call;
}

/// What the test took out of the table and left hanging ends.
void let_go(mesh& net, zlink::detail::spot_object& object, barrier& end) {
  net.host(0).runtime().activations.discard(object, zlink::error{error_kind::unavailable, "the test is over"});
  end.open();
  net.run_until_idle();
}

TEST_CASE("C-98 S-116 S-156 an activation whose reservation comes through late is resumed, with the row's generation") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  net.run(rouse(net.host(0), "warm", "1"));
  const auto key = zlink::placement::spot_key("a");
  net.faults(0).once(store_operation::write, key, store_fault::late);
  CHECK(failure(net, rouse(net.host(0), "a", "first")) == error_kind::internal_failure);
  CHECK_FALSE(row_of(net, "a"));
  net.faults(0).release_all(); // now it happens
  net.run_until_idle();
  const auto late = row_of(net, "a");
  REQUIRE(late);
  CHECK(late->state == allocation_state::reserved);
  CHECK(on.count("factory a") == 0);
  net.advance(3min); // two passes over the store
  const auto row = row_of(net, "a");
  if (row && row->state == allocation_state::active) { // its first message was still stored
    CHECK(row->generation == late->generation);
    CHECK(on.count("handle a first") == 1);
    CHECK(net.run(ask(net.host(0), "a", "2")).generation == late->generation.value);
  } else { // nothing was left to go on with: the id is free again
    CHECK_FALSE(row);
    CHECK(spots_on(net, 0).reserved == 0);
  }
  CHECK(net.run(rouse(net.host(0), "a", "3")).word == "3");
}

TEST_CASE("C-98 C-97 S-116 a row with a stored first message and no Spot behind it goes on, in the same incarnation") {
  for (const bool reserved : {true, false}) {
    CAPTURE(reserved);
    stage on;
    mesh net{1};
    barrier end;
    auto call = hang_at_first(on, net, end, reserved);
    const auto interrupted = row_of(net, "a");
    REQUIRE(interrupted);
    REQUIRE((interrupted->state == allocation_state::reserved) == reserved);
    // In-process interruption: this host forgets the object, the store does not.
    auto& runtime = net.host(0).runtime();
    const auto object = runtime.objects.find("a");
    REQUIRE(runtime.objects.erase(*object));
    on.during = nullptr;
    net.advance(3min);
    CHECK(on.count("factory a") == 2);
    CHECK(on.count("handle a first") == (reserved ? 1 : 2));
    const auto row = row_of(net, "a");
    REQUIRE(row);
    CHECK(row->state == allocation_state::active);
    CHECK(row->generation == interrupted->generation);
    CHECK_FALSE(row->root); // its handler has ended
    CHECK(net.run(ask(net.host(0), "a", "2")).generation == row->generation.value);
    CHECK(spots_on(net, 0) == slot_bucket{1, 0});
    let_go(net, *object, end);
  }
}

TEST_CASE("S-129 S-124 without its stored first message an interrupted activation is not resumed by guessing") {
  for (const bool reserved : {true, false}) {
    CAPTURE(reserved);
    stage on;
    mesh net{1};
    barrier end;
    auto call = hang_at_first(on, net, end, reserved);
    auto& runtime = net.host(0).runtime();
    const auto object = runtime.objects.find("a");
    const auto before = row_of(net, "a");
    REQUIRE(runtime.objects.erase(*object));
    net.store().relocation()->erase(before->root->reference, [](auto) {});
    on.during = nullptr;
    net.advance(3min);
    CHECK(on.count("factory a") == 1);
    const auto row = row_of(net, "a");
    if (reserved) {
      CHECK_FALSE(row);
    } else { // the loss is recorded; owner and incarnation stay
      REQUIRE(row);
      CHECK(row->payload_lost);
      CHECK(row->owner == before->owner);
      CHECK(row->generation == before->generation);
    }
    let_go(net, *object, end);
  }
}

TEST_CASE("S-156 C-104 the row of a closed Spot whose removal failed goes in a later pass, so that the id is free") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  const auto made = net.run(open_room(net.host(0), "r"));
  const auto key = zlink::placement::spot_key("r");
  int removals = 0;
  net.faults(0).set_rule([&](const store_call& call) {
    if (call.what != store_operation::write || !call.touches(key))
      return store_fault::none;
    for (const auto& mutation : call.batch->mutations)
      if (mutation.key == key && !mutation.put)
        return ++removals == 1 ? store_fault::refuse : store_fault::none;
    return store_fault::none;
  });
  net.run(net.host(0).spots().close(made.spot));
  CHECK(on.alive == 0);
  net.advance(3min);
  CHECK_FALSE(row_of(net, "r"));
  CHECK(spots_on(net, 0) == slot_bucket{0, 0});
  CHECK(net.run(open_room(net.host(0), "r")).state == zlink::spot_create_state::created);
}

TEST_CASE("S-116 rows whose Spots are here are left alone, pass after pass") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  for (int i = 0; i < 8; ++i)
    net.run(rouse(net.host(0), "i" + std::to_string(i), "1"));
  net.run(open_room(net.host(0), "r"));
  barrier end;
  on.hold("handle", end);
  auto call = rouse(net.host(0), "slow", "1", 30min); // keeps its root, and is no interrupted one
  net.run_until([&] { return end.waiting() == 1; });
  net.advance(10min);
  CHECK(on.count("factory") == 10);
  CHECK(on.count("closing") == 0);
  CHECK(row_of(net, "slow")->root);
  end.open();
  CHECK(net.run(std::move(call)).word == "1");
}

} // namespace stores_test
