// What is looked at before anything changes.
#include "tests/contract/relocation/leaving_host.hpp"

namespace host_relocate_test {
namespace {

auto versions(std::vector<std::uint64_t> of) {
  return [of](std::size_t index, zlink::host_options& options) { options.application_version = index < of.size() ? of[index] : of.back(); };
}

TEST_CASE("L-214 L-219 a relocation without a target serves on until its deadline, and nothing has changed") {
  scene s;
  s.fill();
  s.net.host(1).mesh("m").placement_weight(0);
  s.net.advance(2s);
  const auto began = s.net.elapsed();
  auto asked = s.leaving().relocate(within(10s));
  s.net.advance(5s);
  CHECK_FALSE(asked.ready());
  CHECK(s.state() == host_state::serving);
  CHECK(s.published() == node_state::serving);
  CHECK(s.net.run(s.leaving().spots().request_to_spot("c", greet{"still"}).submit<greet>()).word == "still");
  s.add_guest("dan"); // it is as open as before
  const auto end = s.net.run(std::move(asked));
  CHECK(end.outcome == relocate_outcome::blocked);
  CHECK(end.reason == relocate_reason::target_unavailable);
  CHECK(s.net.elapsed() - began >= 10s);
  CHECK(s.net.elapsed() - began < 11s);
  CHECK(s.state() == host_state::serving);
  CHECK(s.mover.begun.empty());
}

TEST_CASE("L-219 a target that comes late is taken") {
  scene s{{.hosts = 3, .adjust = versions({1, 1, 2})}};
  s.fill();
  s.net.kill(2);
  s.net.advance(30s);
  auto asked = s.leaving().relocate(update_to(2, 60s));
  s.net.advance(3s);
  CHECK_FALSE(asked.ready());
  s.net.restart(2);
  s.net.host(2).mesh("m").placement_weight(100);
  CHECK(s.net.run(std::move(asked)).outcome == relocate_outcome::relocated);
  for (const auto& one : s.mover.begun)
    CHECK(one.target == s.rid(2));
}

TEST_CASE("L-215 a peer by hand blocks, connected or not") {
  zlink::host alone;
  alone.without_stores().add_mesh("m").peer("caf://127.0.0.1:1");
  alone.start();
  const auto end = zlink::sync_wait(alone.relocate());
  CHECK(end.outcome == relocate_outcome::blocked);
  CHECK(end.reason == relocate_reason::manual_topology_unsupported);
  CHECK(alone.status().state == host_state::serving);
}

TEST_CASE("L-216 only the effective version counts, however big the others are") {
  for (const bool rolling : {false, true}) {
    CAPTURE(rolling);
    scene s{{.hosts = 4, .adjust = versions({1, 2, 3, 1})}};
    s.fill();
    const std::size_t wanted = rolling ? 1 : 3;
    for (std::size_t i = 1; i < 4; ++i)
      s.net.host(i).mesh("m").placement_weight(i == wanted ? 1 : 10'000);
    s.net.advance(2s);
    CHECK(s.relocate(rolling ? update_to(2) : relocate_options{}).outcome == relocate_outcome::relocated);
    CHECK(s.mover.begun.size() == 5);
    for (const auto& one : s.mover.begun)
      CHECK(one.target == s.rid(wanted));
  }
}

TEST_CASE("L-216 a node that fails one of the tests is no target") {
  // Host 1 fails, host 2 does not.
  const auto check = [](plan given, const std::function<void(scene&)>& before = {}) {
    given.hosts = 3;
    scene s{given};
    s.fill();
    s.net.host(1).mesh("m").placement_weight(10'000);
    if (before)
      before(s);
    s.net.advance(2s);
    CHECK(s.relocate(within(5s)).outcome == relocate_outcome::relocated);
    for (const auto& one : s.mover.begun) {
      CAPTURE(one.id);
      if (one.id == "c")
        CHECK(one.target == s.rid(2));
    }
    CHECK(s.mover.has_begun("c"));
  };
  SUBCASE("type") { check({.houses = {{}, {.with_cells = false}}}); }
  SUBCASE("policy") { check({.houses = {{}, {.of_cells = policy::disable}}}); }
  SUBCASE("another policy") { check({.houses = {{.of_cells = policy::preserve}, {}, {.of_cells = policy::preserve}}}); }
  SUBCASE("state") {
    check({}, [](scene& s) { CHECK(s.net.run(s.net.host(1).relocate()).outcome == relocate_outcome::relocated); }); // it has nothing
  }
  SUBCASE("weight") { check({}, [](scene& s) { s.net.host(1).mesh("m").placement_weight(0); }); }
  SUBCASE("wave") {
    check({.adjust = [](std::size_t index, zlink::host_options& options) { options.maintenance_wave = index == 2 ? 5 : 4; }});
  }
  SUBCASE("link") {
    check({}, [](scene& s) { s.net.partition({0}, {1}); });
  }
}

TEST_CASE("L-216 a host without a wave takes any, and one of the same wave is none of last resort") {
  const auto waves = [](std::optional<std::uint32_t> first) {
    return [first](std::size_t index, zlink::host_options& options) {
      if (index == 0)
        options.maintenance_wave = first;
      else
        options.maintenance_wave = 4;
    };
  };
  scene none{{.adjust = waves(std::nullopt)}};
  none.fill();
  CHECK(none.relocate().outcome == relocate_outcome::relocated);
  scene same{{.adjust = waves(4)}};
  same.fill();
  CHECK(same.relocate(within(1s)).reason == relocate_reason::target_unavailable);
  CHECK(descriptor_of(same.net, same.rid(1))->maintenance_wave == 4u);
}

TEST_CASE("L-216 L-217 capacity counts for all units together, and over all nodes") {
  for (const std::uint32_t room : {3u, 2u}) {
    CAPTURE(room);
    scene s{{.hosts = 3, .houses = {{}, {.cell_limit = room}, {.cell_limit = 2}}}};
    for (const auto* id : {"c1", "c2", "c3", "c4", "c5"})
      s.add_cell(id);
    s.open_others();
    const auto end = s.relocate(within(1s));
    if (room == 3) {
      CHECK(end.outcome == relocate_outcome::relocated);
      CHECK(s.mover.begun.size() == 5);
      CHECK(std::ranges::count(s.mover.begun, s.rid(1), &stand_in::unit::target) == 3);
    } else {
      CHECK(end.reason == relocate_reason::target_unavailable);
      CHECK(s.mover.begun.empty());
    }
  }
}

TEST_CASE("L-217 every mesh needs a target of its own") {
  for (const bool both : {true, false}) {
    CAPTURE(both);
    scene s{{.hosts = 3, .more = [both](zlink::host& host, std::size_t index) {
               if (index == 0 || (index == 2 && both))
                 serve(host.add_mesh("n"));
             }}};
    s.fill();
    s.net.run(s.leaving().actors().create("eve", "guest").in_mesh("n").submit());
    const auto end = s.relocate(within(1s));
    CHECK(end.outcome == (both ? relocate_outcome::relocated : relocate_outcome::blocked));
    CHECK(s.mover.has_begun("eve") == both);
    if (both)
      CHECK(std::ranges::find(s.mover.begun, "eve", &stand_in::unit::id)->target == s.net.host(2).mesh("n").rid());
  }
}

TEST_CASE("L-218 a host with nothing to move needs nobody") {
  scene s{{.hosts = 1}};
  CHECK(s.relocate(within(1s)).outcome == relocate_outcome::relocated);
  CHECK(s.state() == host_state::relocated);
  CHECK(s.published() == node_state::relocated);
  zlink::host bare;
  bare.without_stores().add_mesh("m");
  bare.start();
  CHECK(zlink::sync_wait(bare.relocate()).reason == relocate_reason::none);
  CHECK(bare.status().state == host_state::relocated);
}

TEST_CASE("L-226 L-21 one object that does not move blocks, and nothing has moved") {
  for (const bool actor : {false, true}) {
    scene s{{.houses = {actor ? house{.of_guests = policy::disable} : house{.of_cells = policy::disable}}}};
    actor ? s.add_guest("ann") : s.add_cell("c");
    s.open_others();
    const auto began = s.net.elapsed();
    CHECK(s.relocate(within(10s)).reason == relocate_reason::relocation_disabled);
    CHECK(s.net.elapsed() - began < 1s);
    CHECK(s.mover.begun.empty());
    CHECK(s.state() == host_state::serving);
  }
  scene only_registered{{.houses = {house{.of_cells = policy::disable}}}};
  only_registered.add_guest("ann");
  only_registered.open_others();
  CHECK(only_registered.relocate().outcome == relocate_outcome::relocated);
}

TEST_CASE("L-226 nodes that keep the state in another way are incompatible") {
  scene s{{.houses = {{.of_cells = policy::preserve}, {.of_cells = policy::recreate}}}};
  s.add_cell("c");
  s.open_others();
  CHECK(s.relocate(within(1s)).reason == relocate_reason::state_incompatible);
  CHECK(s.state() == host_state::serving);
}

TEST_CASE("L-226 L-214 a store that does not answer, or a lease that is not held") {
  scene s;
  s.fill();
  s.net.cut_store(0);
  CHECK(s.relocate(within(20s)).reason == relocate_reason::store_unavailable);
  CHECK(s.state() == host_state::serving);
  s.net.heal();
  s.net.advance(1s);
  CHECK(s.relocate().outcome == relocate_outcome::relocated);
}

} // namespace
} // namespace host_relocate_test
