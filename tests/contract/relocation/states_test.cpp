// The states of a host that is emptied, who shares the operation, and what a shutdown does to it.
#include "tests/contract/relocation/leaving_host.hpp"

namespace host_relocate_test {
namespace {

/// A relocation that waits in its one unit.
struct held_scene : scene {
  explicit held_scene(plan given = {}) : scene(std::move(given)) {
    add_cell("c");
    open_others();
    mover.answer = [this](const stand_in::unit&) { return later(open); };
  }
  zlink::task<relocate_result> begin(relocate_options how = {}) {
    auto asked = leaving().relocate(how);
    net.run_until([this] { return open.waiting() == 1; });
    return asked;
  }
  barrier open;
};

TEST_CASE("L-220 L-224 Relocating is published before a unit begins, Relocated afterwards, and connections stay") {
  held_scene s;
  std::vector<node_state> seen;
  s.mover.answer = [&](const stand_in::unit&) {
    seen.push_back(s.published());
    return later(s.open);
  };
  auto asked = s.begin();
  CHECK(seen == std::vector<node_state>{node_state::relocating});
  CHECK(s.state() == host_state::relocating);
  CHECK_FALSE(s.leaving().status().is_ready);
  CHECK(s.leaving().status().accepting_work); // O-16: the rest serves on
  s.open.open();
  CHECK(s.net.run(std::move(asked)).outcome == relocate_outcome::relocated);
  CHECK(s.state() == host_state::relocated);
  CHECK(s.published() == node_state::relocated);
  CHECK_FALSE(s.leaving().status().accepting_work);
  s.net.advance(60s); // far longer than a lease
  CHECK(s.published() == node_state::relocated);
  CHECK(s.net.host(1).mesh("m").runtime().links->ready_count() == 1);
}

TEST_CASE("L-228 one operation at a time") {
  held_scene s{{.adjust = [](std::size_t, zlink::host_options& options) { options.application_version = 1; }}};
  SUBCASE("equal calls share it, and its first deadline") {
    auto first = s.begin(within(10s));
    auto second = s.leaving().relocate(within(1s));
    auto third = s.leaving().relocate(within(10min));
    s.net.advance(5s);
    CHECK_FALSE(second.ready());
    s.open.open();
    for (auto* one : {&first, &second, &third})
      CHECK(s.net.run(std::move(*one)).outcome == relocate_outcome::relocated);
    CHECK(s.mover.begun.size() == 1);
  }
  SUBCASE("another version or mode is turned away at once") {
    auto first = s.begin();
    const auto other = s.relocate(update_to(5));
    CHECK(other.reason == relocate_reason::operation_in_progress);
    CHECK(other.target_version == 5);
    s.open.open();
    CHECK(s.net.run(std::move(first)).outcome == relocate_outcome::relocated);
  }
  SUBCASE("Relocated answers with the first result") {
    s.open.open();
    CHECK(s.relocate().outcome == relocate_outcome::relocated);
    const auto again = s.relocate(update_to(5));
    CHECK(again.outcome == relocate_outcome::relocated);
    CHECK(again.mode == relocate_mode::planned_maintenance);
    CHECK(again.target_version == 1);
    CHECK(s.mover.begun.size() == 1);
  }
  SUBCASE("in the looking phase as well") {
    auto waiting = s.leaving().relocate(update_to(5, 3s));
    s.net.advance(1s);
    CHECK(s.relocate(update_to(6)).reason == relocate_reason::operation_in_progress);
    CHECK(s.net.run(std::move(waiting)).reason == relocate_reason::target_unavailable);
  }
  SUBCASE("Error and Stopped") {
    s.leaving().runtime().state.store(host_state::error);
    CHECK(s.relocate().reason == relocate_reason::runtime_not_ready);
    s.leaving().runtime().state.store(host_state::serving);
    s.open.open();
    s.net.run(s.leaving().shutdown());
    CHECK(s.relocate().reason == relocate_reason::runtime_not_ready);
  }
}

TEST_CASE("L-228 in Preparing nothing is ready") {
  mesh net{1};
  CHECK(net.run(net.host(0).relocate()).reason == relocate_reason::runtime_not_ready);
  net.start([](zlink::host& host) { serve(host.add_mesh("m")); });
}

TEST_CASE("L-229 a waiter that gives up ends alone") {
  held_scene s;
  std::stop_source stop;
  auto first = s.leaving().relocate({}, stop.get_token());
  auto second = s.begin();
  stop.request_stop();
  CHECK_THROWS_AS(s.net.run(std::move(first)), zlink::operation_cancelled);
  CHECK_FALSE(second.ready());
  s.open.open();
  CHECK(s.net.run(std::move(second)).outcome == relocate_outcome::relocated);
  std::stop_source early;
  early.request_stop();
  CHECK_THROWS_AS(s.net.run(s.leaving().relocate({}, early.get_token())), zlink::operation_cancelled);
}

TEST_CASE("L-231 safe to shut down is what has left, when nothing is followed any more") {
  held_scene s;
  s.mover.is_quiet = false;
  auto asked = s.begin();
  CHECK_FALSE(s.leaving().status().safe_to_shutdown);
  s.open.open();
  s.net.run(std::move(asked));
  CHECK_FALSE(s.leaving().status().safe_to_shutdown);
  s.mover.is_quiet = true;
  CHECK(s.leaving().status().safe_to_shutdown);
}

TEST_CASE("L-221 a publication that is not confirmed is taken back") {
  held_scene s;
  int writes = 0;
  s.net.faults(0).set_rule([&, key = zlink::placement::descriptor_key("m", s.rid(0)), began = s.net.elapsed()](const store_call& call) {
    if (s.net.elapsed() - began >= 6s || call.what != store_operation::write || !call.touches(key))
      return store_fault::none;
    return ++writes == 1 ? store_fault::late : store_fault::vanish;
  });
  const auto end = s.relocate();
  CHECK(writes > 1);
  CHECK(end.reason == relocate_reason::store_unavailable);
  CHECK(s.mover.begun.empty());
  CHECK(s.state() == host_state::serving);
  s.net.faults(0).release_all(); // what was given up comes at last
  s.net.run_until_idle();
  CHECK(s.published() == node_state::serving);
  s.add_guest("ann"); // open again
  s.net.faults(0).set_rule({});
  s.open.open();
  CHECK(s.relocate().outcome == relocate_outcome::relocated);
}

TEST_CASE("L-221 one that cannot be taken back ends the host") {
  held_scene s;
  s.net.faults(0).set_rule([&, key = zlink::placement::descriptor_key("m", s.rid(0))](const store_call& call) {
    return call.what == store_operation::write && call.touches(key) ? store_fault::vanish : store_fault::none;
  });
  CHECK(s.relocate().reason == relocate_reason::store_unavailable);
  const auto ended = s.net.run(s.leaving().shutdown());
  CHECK(ended.outcome == zlink::shutdown_outcome::force_stopped);
  CHECK(ended.reason == zlink::shutdown_reason::teardown_failed);
  CHECK(s.mover.begun.empty());
}

TEST_CASE("L-225 that the host serves again is published when the store takes it") {
  held_scene s;
  s.mover.answer = [&](const stand_in::unit&) { return later(s.open, {false, relocate_reason::relocation_failed, "", {}}); };
  auto asked = s.begin();
  s.net.faults(0).set_rule([&, key = zlink::placement::descriptor_key("m", s.rid(0)), began = s.net.elapsed()](const store_call& call) {
    const bool early = s.net.elapsed() - began < 12s;
    return early && call.what == store_operation::write && call.touches(key) ? store_fault::vanish : store_fault::none;
  });
  s.open.open();
  CHECK(s.net.run(std::move(asked)).reason == relocate_reason::relocation_failed);
  CHECK(s.state() == host_state::serving);
  CHECK(s.published() == node_state::relocating);
  s.net.advance(15s);
  CHECK(s.published() == node_state::serving);
}

TEST_CASE("L-203 an Instance Spot that is to move is not evicted meanwhile") {
  held_scene s{{.more = [](zlink::host& host, std::size_t) { host.mesh("m").instance_spot_idle_timeout(5s); }}};
  auto asked = s.begin();
  s.net.advance(20s);
  CHECK(s.leaving().runtime().objects.find("c"));
  s.open.open();
  s.net.run(std::move(asked));
}

TEST_CASE("L-248 a shutdown before Relocating: the waiter is told, and nothing has been published") {
  scene s;
  s.fill();
  s.net.host(1).mesh("m").placement_weight(0);
  s.net.advance(2s);
  auto asked = s.leaving().relocate();
  s.net.advance(2s);
  auto ending = s.leaving().shutdown();
  CHECK(s.net.run(std::move(asked)).reason == relocate_reason::shutdown_requested);
  CHECK(s.net.run(std::move(ending)).outcome == zlink::shutdown_outcome::stopped);
  CHECK(s.mover.begun.empty());
}

TEST_CASE("L-248 L-241 a shutdown behind Relocating: the units under way end, the others do not begin") {
  scene s;
  s.fill();
  barrier slow;
  s.mover.answer = [&](const stand_in::unit&) { return later(slow); };
  auto asked = s.leaving().relocate();
  s.net.run_until([&] { return slow.waiting() == 1; });
  auto ending = s.leaving().shutdown();
  s.net.advance(5s);
  CHECK(s.state() == host_state::draining);
  CHECK(s.published() == node_state::draining);
  CHECK(s.leaving().status().spots > 1); // nothing is closed under it
  CHECK_FALSE(asked.ready());
  CHECK(s.relocate().reason == relocate_reason::shutdown_requested); // L-228
  slow.open();
  CHECK(s.net.run(std::move(asked)).reason == relocate_reason::shutdown_requested);
  CHECK(s.net.run(std::move(ending)).outcome == zlink::shutdown_outcome::stopped);
  CHECK(s.mover.ids() == std::vector<std::string>{"st"});
}

TEST_CASE("L-248 L-243 a unit that does not end is waited for up to the deadline") {
  held_scene s;
  auto asked = s.begin();
  auto ending = s.leaving().shutdown();
  CHECK(s.net.run(std::move(ending)).reason == zlink::shutdown_reason::deadline_exceeded);
  CHECK(s.net.run(std::move(asked)).reason == relocate_reason::shutdown_requested);
  s.open.open();
  s.net.run_until_idle();
}

TEST_CASE("L-249 L-240 after Relocated a shutdown cleans up at once") {
  held_scene s;
  s.open.open();
  s.relocate();
  const auto began = s.net.elapsed();
  CHECK(s.net.run(s.leaving().shutdown()).outcome == zlink::shutdown_outcome::stopped);
  CHECK(s.net.elapsed() - began < 1s);
  CHECK_FALSE(descriptor_of(s.net, s.rid(0)));
}

} // namespace
} // namespace host_relocate_test
