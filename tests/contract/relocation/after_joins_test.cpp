// What a Join to another node leaves behind: an old Context that only knows who it was, and the slots of both nodes (05 sections 7, 13).
#include "tests/contract/relocation/apart_scene.hpp"

namespace relocation_test {
namespace {

/// Each new operation through the old Context, as `on_leave_actor` tries it: how it ended.
zlink::task<void> try_all(const zlink::actor_context& old, std::string room, std::map<std::string, std::string>& ends) {
  const auto note_end = [&ends](const std::string& what, const auto& outcome) {
    ends[what] = outcome ? "well" : outcome.is_cancelled() ? "cancelled" : to_string(outcome.error().kind());
  };
  auto sending = zlink::as_result(old.outbound().send_to_actor("bob", play{"from the past"}).submit());
  note_end("send to an Actor", co_await std::move(sending));
  auto sending_home = zlink::as_result(old.outbound().send_to_actor("ada", play{"to myself"}).submit());
  note_end("send to itself", co_await std::move(sending_home));
  auto asking = zlink::as_result(old.outbound().request_to_actor("bob", play{"asked by the past"}).timeout(2s).submit<played>());
  note_end("request to an Actor", co_await std::move(asking));
  auto telling = zlink::as_result(old.outbound().send_to_spot(room, roll_call{}).submit());
  note_end("send to a Spot", co_await std::move(telling));
  auto calling = zlink::as_result(old.outbound().request_to_spot(room, roll_call{}).timeout(2s).submit<room_view>());
  note_end("request to a Spot", co_await std::move(calling));
  const auto join = [&](const std::string& what, zlink::join_call call) {
    try {
      call.defer();
      ends[what] = "well";
    } catch (const zlink::operation_failed& failed) {
      ends[what] = to_string(failed.kind());
    }
  };
  join("join", old.join_spot(room));
  join("home", old.join_entry_spot());
}

TEST_CASE("J-105 L-204 the old Context after a Join to another node: who it was can be read, everything new through it is unavailable") {
  stage on;
  std::map<std::string, std::string> ends;
  barrier told;
  mesh net{{.hosts = 3, .max_link_delay = 2ms}};
  net.start(serve_rooms(on));
  const apart s{net, on};
  net.run(net.host(0).actors().create("bob", "player").submit());
  net.run(say(net.host(0), "bob", "one"));
  const auto row = *player_row(net, "ada");
  auto old = net.host(s.here).runtime().objects.find_actor("ada");
  std::string id;
  std::string rid;
  std::uint64_t generation = 0;
  on.during = [&](const std::string& step, const std::string& where) -> zlink::task<void> {
    if (step != "left" || where != "hall")
      co_return;
    const auto& context = old->application()->context();
    id = context.actor_id();
    rid = context.node_rid();
    generation = context.object_generation();
    auto trying = try_all(context, s.room, ends);
    co_await std::move(trying);
    auto waiting = told.passed(); // the Actor is there until its Spot has been told
    co_await std::move(waiting);
    CHECK(on.count("destroy ada") == 0);
    CHECK(context.actor_id() == "ada");
  };
  go_to(net, on, "ada", s.room);
  net.run_until([&] { return told.waiting() == 1; });
  CHECK(net.run(say(net.host(0), "ada", "in")).rid == rid_of(net, s.there)); // the target waits for nobody
  told.open();
  net.run_until([&] { return on.count("destroy ada") == 1; });
  CHECK(id == "ada");
  CHECK(rid == rid_of(net, s.here));
  CHECK(generation == row.generation.value);
  CHECK(ends.size() == 7);
  for (const auto& one : ends)
    CHECK_MESSAGE(one.second == "unavailable", one.first << ": " << one.second);
  net.run_until_idle();
  CHECK(net.run(say(net.host(0), "bob", "two")).heard == words{"one", "two"}); // nothing was sent on
  CHECK(net.run(say(net.host(0), "ada", "three")).heard == words{"zero", "in", "three"});
  CHECK(on.count("gate") == 1);
  old = nullptr;
}

// -- slots ------------------------------------------------------------------------------------------------------------

zlink::placement::slot_bucket actors_on(mesh& net, std::size_t host) {
  const auto seen = stored<zlink::placement::capacity_record>(net, zlink::placement::capacity_key("m", rid_of(net, host)));
  return seen.record ? seen.record->actors : zlink::placement::slot_bucket{};
}
using slots = zlink::placement::slot_bucket;

TEST_CASE("J-174 S-96 the slot of a Join is taken before the target says that it is ready, and changes hands with the owner") {
  stage on;
  int looked = 0;
  mesh net{{.hosts = 3, .max_link_delay = 2ms, .max_store_delay = 2ms}};
  net.start(serve_rooms(on));
  const apart s{net, on};
  const auto here = actors_on(net, s.here);
  const auto there = actors_on(net, s.there);
  REQUIRE(here.reserved == 0);
  REQUIRE(there.reserved == 0);
  net.host(s.there).runtime().moving.on_step = [&](move_step step, const std::string& address) {
    if (address != zlink::detail::actor_address("ada"))
      return;
    const auto now = actors_on(net, s.there);
    if (step == move_step::relay_ready_sent || step == move_step::committing) {
      ++looked;
      CHECK(now.reserved == 1);
      CHECK(now.active == there.active);
      CHECK(actors_on(net, s.here) == here);
    }
    if (step == move_step::committed) {
      ++looked;
      CHECK(now.reserved == 0);
      CHECK(now.active == there.active + 1);
      CHECK(actors_on(net, s.here).active == here.active - 1);
    }
  };
  go_to(net, on, "ada", s.room);
  CHECK(on.count("completed ada accepted") == 1);
  CHECK(looked == 3);
  CHECK(net.run(say(net.host(0), "ada", "in")).room == s.room);
  CHECK(actors_on(net, s.here) == slots{here.active - 1, 0});
  CHECK(actors_on(net, s.there) == slots{there.active + 1, 0});
}

TEST_CASE("J-174 J-117 J-91 L-29 L-30 each end before that gives the slot back, or never took it, with the kind of its cause") {
  struct way {
    const char* name;
    const char* end;
    const char* throws;
  };
  for (const auto& how : {way{"declined", "rejected", ""}, way{"the gate throws", "failed internal_failure", "gate"},
                          way{"capture throws", "failed internal_failure", "capture"}, way{"restore throws", "failed internal_failure", "restore"},
                          way{"too late", "failed deadline_exceeded", ""}, way{"full", "failed unavailable", ""},
                          way{"link lost", "failed unavailable", ""}, way{"shut in between", "failed unavailable", ""},
                          way{"never ready", "failed deadline_exceeded", ""}}) {
    const std::string name = how.name;
    CAPTURE(name);
    stage on;
    barrier never;
    mesh net{{.hosts = 3, .max_link_delay = 2ms, .max_store_delay = 2ms}};
    net.start([&](zlink::host& host) {
      serve_rooms(on)(host);
      if (name == "full")
        host.mesh("m").actor_limit(2);
    });
    const apart s{net, on};
    for (int i = 0; name == "full" && actors_on(net, s.there).active < 2; ++i)
      static_cast<void>(net.run(zlink::as_result(net.host(0).actors().create("p" + std::to_string(i), "player").submit())));
    if (name == "declined")
      static_cast<room*>(net.host(s.there).runtime().objects.find(s.room)->application())->declines = true;
    std::set<move_step> seen;
    net.host(s.here).runtime().moving.on_step = [&](move_step step, const std::string&) { seen.insert(step); };
    on.at = [&](const std::string& step, const std::string&) {
      if (step == how.throws)
        throw std::runtime_error{"no"};
      if (step == "restore" && name == "link lost")
        net.lose_links(s.here, s.there);
      if (step == "capture" && name == "shut in between") // after its gate has let her in
        net.host(s.there).runtime().state.store(zlink::host_state::relocating);
    };
    bool taken = false;
    net.host(s.there).runtime().moving.on_step = [&](move_step step, const std::string&) {
      if (name != "never ready" || step != move_step::relay_ready_sent)
        return;
      taken = actors_on(net, s.there).reserved == 1;
      net.mute(s.there, s.here);
      net.faults(s.there).set_rule([](const zlink::testing::store_call& call) { // and it cannot go on by itself
        return call.touches(zlink::placement::actor_key("ada")) ? zlink::testing::store_fault::vanish : zlink::testing::store_fault::none;
      });
    };
    if (name == "too late")
      on.hold("restore", never);
    const auto here = actors_on(net, s.here);
    const auto there = actors_on(net, s.there);
    net.run_until_idle();
    go_to(net, on, "ada", s.room);
    never.open();
    net.faults(s.there).set_rule({});
    net.heal();
    net.advance(3s);
    CHECK(taken == (name == "never ready"));
    CHECK(on.count("completed ada " + std::string{how.end}) == 1);
    CHECK(on.count("completed ada") == 1);
    CHECK(actors_on(net, s.here) == here);
    CHECK(actors_on(net, s.there) == there);
    CHECK(!zlink::placement::is_moving(*player_row(net, "ada")));
    CHECK(on.count("joined") + on.count("left") == 0);
    if (name == "declined" || name == "the gate throws")
      CHECK(on.count("capture") == 0);
    if (name == "capture throws") {
      CHECK(!seen.contains(move_step::restore_sent));
      CHECK(on.count("restore") + on.count("make") == 0);
    }
    CHECK(net.run(say(net.host(0), "ada", "on")).heard == words{"zero", "on"});
    CHECK(home_of_player(net, "ada") == s.here);
    CHECK(net.run(say(net.host(0), "ada", "and on")).rid == rid_of(net, s.here));
    net.host(s.there).runtime().state.store(zlink::host_state::serving);
  }
}

} // namespace
} // namespace relocation_test
