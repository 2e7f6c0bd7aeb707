// The units: what they are, in which order they go, and what one that stays means for the others.
#include "tests/contract/relocation/leaving_host.hpp"

namespace host_relocate_test {
namespace {

TEST_CASE("L-10 L-11 L-12 the units of a host with one of each kind") {
  scene s;
  s.fill();
  CHECK(s.relocate().outcome == relocate_outcome::relocated);
  std::map<std::string, unit_kind> units;
  for (const auto& one : s.mover.begun)
    CHECK(units.emplace(one.id, one.kind).second); // each once
  CHECK(units
        == std::map<std::string, unit_kind>{{"ann", unit_kind::entry_actor},
                                            {"bob", unit_kind::member_actor},
                                            {"st", unit_kind::per_actor_spot},
                                            {"sal", unit_kind::spot_wide}, // with cid in it
                                            {"c", unit_kind::instance_spot}});
  const auto told = s.moving().reports();
  CHECK(told.size() == 5);
  CHECK(std::ranges::all_of(told, [](const auto& one) { return one.end.left && one.mesh_name == "m" && !one.type.empty(); }));
}

TEST_CASE("L-222 O-123 shells first, then Actors, then SpotWide and Instance Spots, each batch behind the end of the former") {
  scene s;
  s.add_spot("st2", "street");
  s.fill();
  barrier shell;
  barrier actor;
  s.mover.answer = [&](const stand_in::unit& one) {
    return one.id == "st2" ? later(shell) : one.id == "ann" ? later(actor) : at_once(true);
  };
  auto asked = s.leaving().relocate();
  s.net.advance(3s);
  auto ids = s.mover.ids();
  std::ranges::sort(ids);
  CHECK(ids == std::vector<std::string>{"st", "st2"});
  shell.open();
  s.net.advance(3s);
  CHECK(s.mover.begun.size() == 4); // ann and bob
  CHECK(s.mover.ended.size() == 3);
  actor.open();
  CHECK(s.net.run(std::move(asked)).outcome == relocate_outcome::relocated);
  CHECK(s.mover.begun.size() == 6);
}

TEST_CASE("L-222 units of a batch go side by side, and a slow one holds nobody") {
  scene s;
  for (int i = 0; i < 80; ++i)
    s.add_cell("c" + std::to_string(i));
  s.open_others();
  barrier slow;
  s.mover.answer = [&](const stand_in::unit& one) { return one.id.ends_with('3') ? later(slow) : at_once(true); };
  auto asked = s.leaving().relocate();
  s.net.advance(5s);
  CHECK(s.mover.begun.size() == 80);
  CHECK(s.mover.under_way == 8);
  CHECK(s.mover.ended.size() == 72);
  CHECK_FALSE(asked.ready());
  slow.open();
  CHECK(s.net.run(std::move(asked)).outcome == relocate_outcome::relocated);
}

TEST_CASE("a member of a PerActor Spot goes where its Spot has gone") {
  scene s{{.hosts = 4}};
  s.fill();
  for (const auto* id : {"dan", "eve", "fay"}) {
    s.add_guest(id);
    s.send_guest(id, "st");
  }
  CHECK(s.relocate().outcome == relocate_outcome::relocated);
  const auto at = std::ranges::find(s.mover.begun, "st", &stand_in::unit::id)->target;
  for (const auto& one : s.mover.begun)
    if (one.kind == unit_kind::member_actor)
      CHECK(one.target == at);
}

TEST_CASE("L-223 L-225 a unit that stays ends it: what has begun comes to its end, no later batch begins, the host serves on") {
  scene s;
  s.add_spot("st2", "street");
  s.fill();
  barrier slow;
  barrier failing;
  s.mover.answer = [&](const stand_in::unit& one) {
    return one.id == "st" ? later(failing, {false, relocate_reason::state_incompatible, "", {}}) : later(slow);
  };
  auto asked = s.leaving().relocate();
  s.net.run_until([&] { return s.mover.under_way == 2; });
  failing.open();
  s.net.advance(3s);
  CHECK_FALSE(asked.ready());
  CHECK(s.state() == host_state::relocating);
  slow.open();
  const auto end = s.net.run(std::move(asked));
  CHECK(end.outcome == relocate_outcome::blocked);
  CHECK(end.reason == relocate_reason::state_incompatible);
  CHECK(s.mover.begun.size() == 2);
  CHECK(s.state() == host_state::serving);
  CHECK(s.published() == node_state::serving);
  s.add_guest("dan"); // open again
  s.mover.answer = {};
  CHECK(s.relocate().outcome == relocate_outcome::relocated); // L-228: afresh
}

TEST_CASE("L-226 the reason is that of the unit") {
  for (const auto reason : {relocate_reason::store_unavailable, relocate_reason::state_incompatible, relocate_reason::deadline_exceeded,
                            relocate_reason::relocation_failed}) {
    scene s;
    s.add_cell("c");
    s.open_others();
    s.mover.answer = [reason](const stand_in::unit&) { return at_once(false, reason); };
    CHECK(s.relocate().reason == reason);
    CHECK(s.mover.begun.size() == 1);
    CHECK(s.moving().reports().at(0).end.reason == reason);
    CHECK(s.moving().reports().at(0).end.why == "as the test says");
  }
}

TEST_CASE("L-226 L-224 S-44 the lease was lost while units were under way: what was not moved is lost, and the host is not Relocated") {
  for (const bool left : {false, true}) { // those that had begun
    CAPTURE(left);
    barrier open;
    scene s;
    s.fill();
    s.mover.answer = [&](const stand_in::unit&) { return later(open, {left, left ? relocate_reason::none : relocate_reason::deadline_exceeded, "", {}}); };
    auto leaving = s.leaving().relocate(within(60s));
    s.net.run_until([&] { return open.waiting() != 0; });
    const auto token = s.leaving().runtime().token();
    s.net.cut_store(0);
    s.net.advance(30s);
    CHECK(!s.leaving().runtime().ownership->held());
    s.net.heal();
    s.net.run_until([&] { return s.leaving().runtime().ownership->held(); });
    CHECK(s.leaving().runtime().token() != token);
    open.open();
    const auto end = s.net.run(std::move(leaving));
    CHECK(end.outcome == relocate_outcome::blocked);
    CHECK(end.reason == relocate_reason::store_unavailable);
    CHECK(s.state() == host_state::serving);
    CHECK_FALSE(s.leaving().status().safe_to_shutdown);
    for (const auto& one : s.moving().reports())
      CHECK(one.end.reason == (one.end.left ? relocate_reason::none : relocate_reason::store_unavailable));
    s.net.run_until([&] { return s.published() == node_state::serving; });
    s.add_guest("dan"); // open again
  }
}

TEST_CASE("L-226 a mover that throws fails the unit") {
  scene s;
  s.add_cell("c");
  s.open_others();
  s.mover.answer = [](const stand_in::unit&) -> zlink::task<unit_end> { throw std::runtime_error{"a fault"}; };
  CHECK(s.relocate().reason == relocate_reason::relocation_failed);
  CHECK(s.state() == host_state::serving);
}

TEST_CASE("L-219 a unit that a node refuses is tried on another one, until the deadline") {
  for (const bool nobody : {false, true}) {
    CAPTURE(nobody);
    scene s{{.hosts = 3}};
    s.add_cell("c");
    s.open_others();
    s.mover.answer = [&](const stand_in::unit& one) {
      return at_once(!nobody && one.target == s.rid(2), relocate_reason::target_unavailable);
    };
    const auto began = s.net.elapsed();
    const auto end = s.relocate(within(5s));
    CHECK(end.reason == (nobody ? relocate_reason::target_unavailable : relocate_reason::none));
    const bool to_the_end = s.net.elapsed() - began >= 5s;
    CHECK(to_the_end == nobody);
    if (nobody) { // both again and again
      CHECK(std::ranges::count(s.mover.begun, s.rid(1), &stand_in::unit::target) > 2);
      CHECK(std::ranges::count(s.mover.begun, s.rid(2), &stand_in::unit::target) > 2);
    } else {
      CHECK(s.mover.begun.size() <= 2);
    }
  }
}

TEST_CASE("L-223 a unit that waits for its target when another one fails does not begin") {
  scene s{{.hosts = 3}};
  s.add_cell("c1");
  s.add_cell("c2");
  s.open_others();
  barrier failing;
  bool refusing = true;
  s.mover.answer = [&](const stand_in::unit& one) {
    if (one.id == "c1")
      return later(failing, {false, relocate_reason::relocation_failed, "", {}});
    return at_once(!refusing, relocate_reason::target_unavailable);
  };
  auto asked = s.leaving().relocate();
  s.net.advance(1s);
  refusing = false;
  failing.open();
  CHECK(s.net.run(std::move(asked)).reason == relocate_reason::relocation_failed);
  CHECK(std::ranges::count(s.mover.ended, "c2") > 0);
  CHECK(std::ranges::none_of(s.moving().reports(), [](const auto& one) { return one.end.left; }));
}

TEST_CASE("L-227 behind the deadline nothing begins, and what has begun is awaited") {
  scene s;
  s.fill();
  barrier slow;
  s.mover.answer = [&](const stand_in::unit&) { return later(slow); };
  auto asked = s.leaving().relocate(within(5s));
  s.net.advance(8s);
  CHECK_FALSE(asked.ready());
  CHECK(s.mover.ids() == std::vector<std::string>{"st"});
  slow.open();
  CHECK(s.net.run(std::move(asked)).reason == relocate_reason::deadline_exceeded);
  CHECK(s.mover.begun.size() == 1);
  CHECK(s.state() == host_state::serving);
}

TEST_CASE("L-199 L-248 what comes to life while it begins is waited for, and stays when a shutdown comes before that") {
  for (const bool ends : {false, true}) {
    CAPTURE(ends);
    creation_test::stage on;
    barrier open;
    scene s{{.more = [&on](zlink::host& host, std::size_t) {
               host.mesh("m").object_server().add_instance_spot_factory<creation_test::cell>("slow", [&on](auto& factory) {
                 factory.recreate_on_relocation().construct_with([&on](zlink::instance_spot_context context) {
                   return std::make_unique<creation_test::cell>(std::move(context), on);
                 });
               });
             }}};
    on.hold("initialize", open);
    auto roused = s.leaving().spots().request_to_spot("late", creation_test::wake{"1"}).instance_spot("slow").submit<creation_test::told>();
    s.net.run_until([&] { return open.waiting() == 1; });
    s.open_others();
    auto asked = s.leaving().relocate();
    s.net.advance(3s);
    CHECK(s.state() == host_state::relocating);
    CHECK(s.mover.begun.empty());
    std::optional<zlink::task<zlink::shutdown_result>> ending;
    if (ends)
      ending.emplace(s.leaving().shutdown());
    open.open();
    CHECK(s.net.run(std::move(asked)).reason == (ends ? relocate_reason::shutdown_requested : relocate_reason::none));
    CHECK(s.mover.ids() == (ends ? std::vector<std::string>{} : std::vector<std::string>{"late"}));
    if (!ends)
      CHECK(s.net.run(std::move(roused)).word == "1");
  }
}

TEST_CASE("O-113 L-230 L-272 each unit and each state of the host leaves a line, without an id") {
  scene s;
  s.add_cell("c");
  s.open_others();
  s.mover.answer = [&](const stand_in::unit&) {
    return zlink::detail::make_ready_task(zlink::result<unit_end>{unit_end{true, relocate_reason::none, "", 1'500ms}});
  };
  CHECK(s.relocate().outcome == relocate_outcome::relocated);
  CHECK(s.traces
        == std::vector<std::string>{"host.relocation_changed relocating ", "relocation.changed left ",
                                    "host.relocation_changed relocated "});
  CHECK(s.exceeded);
  s.net.run(s.leaving().shutdown());
  CHECK(s.traces.back() == "host.termination_changed stopped none");
}

} // namespace
} // namespace host_relocate_test
