// A bound Actor moves, and its client notices nothing (06 sections 6 and 15, 08 section 12).
#include "tests/contract/relocation/session_scene.hpp"

namespace relocation_test {
namespace {

using words = std::vector<std::string>;

TEST_CASE("L-170 L-171 L-172 N-123 N-135 a bound Actor moves: the connection stays, and what its client sends is heard once and in order") {
  barrier capture;
  bound_scene s{{.max_link_delay = 3ms}};
  s.ann->say("ann", "1");
  auto moving = s.start_and_hold("capture", capture);
  s.ann->say("ann", "2");
  s.ann->ask("ann", "3", 3);
  s.net.run_until_idle();
  CHECK(s.who->ends.empty()); // held
  CHECK(s.ann->place_of("ann") == rid_of(s.net, s.from));
  const auto generation = player_row(s.net, "ann")->generation;
  capture.open();
  CHECK(s.net.run(std::move(moving)).left);
  s.settle("ann", s.from, s.to);
  s.ann->say("ann", "4");
  s.net.run_until_idle();
  CHECK(s.heard() == words{"1", "2", "3", "4", "?"});
  CHECK(s.who->ends == std::map<std::uint64_t, std::string>{{3, "3@" + rid_of(s.net, s.to)}});
  CHECK(s.who->closed.empty());
  CHECK(s.ann->place_of("ann") == rid_of(s.net, s.to));
  CHECK(player_row(s.net, "ann")->generation == generation);
  CHECK(s.told() == 1);
  CHECK(s.log.count("late_session_route_update ann") == 0);
}

TEST_CASE("L-171 N-133 command 44 says which move, which Actor, which binding and where it is") {
  bound_scene s;
  s.net.run(s.start());
  s.settle("ann", s.from, s.to);
  REQUIRE(s.told() == 1);
  const auto record = s.wire.last(control_command::session_relocation_route);
  CHECK(record.host == s.to);
  CHECK(record.move == s.wire.last(control_command::restore).move);
  const auto what = zlink::decode<zlink::detail::session_route>(record.body);
  CHECK(what.action == static_cast<std::uint8_t>(zlink::detail::session_route_action::commit));
  CHECK(what.binding == s.ann->binding());
  CHECK(what.actor_id == "ann");
  const auto row = player_row(s.net, "ann");
  CHECK(what.generation == row->generation.value);
  CHECK(what.authority == row->authority.value);
  CHECK(what.mesh_name == "m");
  CHECK(what.node_rid == rid_of(s.net, s.to));
}

TEST_CASE("L-60 the handler ends, the Actor rests, its session is sealed, then its state is captured; a long handler costs no time of the seal") {
  barrier handler;
  std::vector<std::string> order;
  bound_scene s;
  s.on.hold("handle", handler);
  s.ann->say("ann", "long");
  s.net.run_until([&] { return handler.waiting() == 1; });
  s.net.host(s.from).runtime().moving.on_step = [&](move_step step, const std::string&) { order.emplace_back(to_string(step)); };
  s.on.at = [&](const std::string& step, const std::string&) {
    if (step == "capture")
      order.push_back("adapter");
  };
  s.wire.rule = [&](lane_record& r) {
    if (r.command == control_command::seal_session)
      order.push_back("asked");
    return true;
  };
  auto moving = s.start();
  s.net.advance(10s); // of which the seal, that lasts for 3 seconds, sees nothing
  CHECK(std::ranges::count(order, "asked") == 0);
  s.ann->say("ann", "behind it");
  s.net.run_until_idle();
  handler.open();
  CHECK(s.net.run(std::move(moving)).left);
  s.settle("ann", s.from, s.to);
  CHECK(order
        == std::vector<std::string>{"preparing", "sealing", "sealed", "asked", "sessions_sealed", "adapter", "captured", "restore_sent",
                                    "boundary", "cutover_sent", "commit_seen", "source_closed"});
  CHECK(s.who->closed.empty());
  CHECK(s.heard() == words{"long", "behind it", "?"});
}

TEST_CASE("L-61 L-176 N-129 another Actor of the same session goes on meanwhile, by its own route") {
  barrier capture;
  bound_scene s;
  s.create("bob", s.from);
  s.ann->bind("bob");
  auto moving = s.start_and_hold("capture", capture);
  s.ann->ask("bob", "hello", 1);
  s.ann->ask("ann", "held", 2);
  s.net.run_until_idle();
  CHECK(s.who->ends == std::map<std::uint64_t, std::string>{{1, "hello@" + rid_of(s.net, s.from)}});
  capture.open();
  s.net.run(std::move(moving));
  s.settle("ann", s.from, s.to);
  CHECK(s.who->ends.at(2) == "held@" + rid_of(s.net, s.to));
  CHECK(s.ann->place_of("bob") == rid_of(s.net, s.from));
  s.ann->ask("bob", "again", 3);
  s.net.run_until_idle();
  CHECK(s.who->ends.at(3) == "again@" + rid_of(s.net, s.from));
}

TEST_CASE("L-171 J-108 N-132 nobody waits for the session owner: its link is lost when it is to hear, and it hears nothing later") {
  bound_scene s;
  s.net.host(s.to).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::committed)
      s.net.lose_links(s.to, s.owner);
  };
  CHECK(s.net.run(s.start()).left);
  s.settle("ann", s.from, s.to);
  CHECK(s.net.run(say(s.net.host(s.to), "ann", "served")).word == "served");
  s.net.advance(500ms); // the link is there again, and nothing is sent once more
  CHECK(s.told() == 0);
  CHECK(s.ann->place_of("ann") == rid_of(s.net, s.from));
}

TEST_CASE("J-99 an Actor without a session moves alike, and asks nobody") {
  bound_scene s;
  s.create("bob", s.from);
  CHECK(s.net.run(start_actor_move(s.net, "bob", s.from, s.to)).left);
  s.settle("bob", s.from, s.to);
  CHECK(s.wire.count(control_command::seal_session) == 0);
  CHECK(s.told() == 0);
  CHECK(s.net.run(say(s.net.host(0), "bob", "here")).rid == rid_of(s.net, s.to));
}

TEST_CASE("L-170 the session owner is the source, or the target, itself") {
  for (const bool at_source : {true, false}) {
    CAPTURE(at_source);
    barrier capture;
    bound_scene s;
    session near{s.net, at_source ? s.from : s.to, "near", s.who};
    near.bind("ann", 2);
    near.say("ann", "1");
    auto moving = s.start_and_hold("capture", capture);
    near.say("ann", "2");
    near.ask("ann", "3", 3);
    s.net.run_until_idle();
    capture.open();
    s.net.run(std::move(moving));
    s.settle("ann", s.from, s.to);
    near.say("ann", "4");
    s.net.run_until_idle();
    CHECK(s.heard() == words{"1", "2", "3", "4", "?"});
    CHECK(s.who->ends.at(3) == "3@" + rid_of(s.net, s.to));
    CHECK(near.place_of("ann") == rid_of(s.net, s.to));
    CHECK(s.who->closed.empty());
  }
}

TEST_CASE("L-171 N-146 the members of a SpotWide room: each session owner hears by itself, and one that is gone delays nobody") {
  bound_scene s;
  const table t{s.net, s.on, "hall", {"bob", "cid", "dan"}};
  const auto home = t.home;
  const auto target = (home + 1) % 3;
  auto other = std::make_shared<client>();
  session first{s.net, (home + 2) % 3, "first", s.who};
  session second{s.net, target, "second", other};
  first.bind("bob");
  second.bind("cid");
  auto moving = start_move(s.net, t.room, home, target);
  CHECK(s.net.run(std::move(moving)).left);
  s.net.run_until([&] { return lives(s.net, target, t.room) && !lives(s.net, home, t.room); });
  s.net.run_until_idle();
  first.ask("bob", "x", 1);
  second.ask("cid", "y", 2);
  s.net.run_until_idle();
  CHECK(s.who->ends.at(1) == "x@" + rid_of(s.net, target));
  CHECK(other->ends.at(2) == "y@" + rid_of(s.net, target));
  CHECK(first.place_of("bob") == rid_of(s.net, target));
  CHECK(second.place_of("cid") == rid_of(s.net, target));
  CHECK(s.told() == 1); // to the one that is elsewhere
}

TEST_CASE("L-171 N-147 the members of a PerActor room, one by one") {
  bound_scene s{{}, room_settings{.per_actor = true}};
  const table t{s.net, s.on, "hall", {"bob", "cid"}};
  const auto target = (t.home + 1) % 3;
  session of{s.net, (t.home + 2) % 3, "of", s.who};
  of.bind("bob");
  of.bind("cid");
  CHECK(s.net.run(start_move(s.net, t.room, t.home, target)).left);
  s.net.run_until([&] { return lives(s.net, target, t.room); });
  CHECK(s.net.run(start_actor_move(s.net, "bob", t.home, target, zlink::detail::unit_kind::member_actor)).left);
  s.settle("bob", t.home, target);
  of.ask("bob", "x", 1);
  of.ask("cid", "y", 2);
  s.net.run_until_idle();
  CHECK(s.who->ends.at(1) == "x@" + rid_of(s.net, target));
  CHECK(s.who->ends.at(2) == "y@" + rid_of(s.net, t.home));
  CHECK(of.place_of("bob") == rid_of(s.net, target));
  CHECK(of.place_of("cid") == rid_of(s.net, t.home));
  CHECK(s.net.run(start_actor_move(s.net, "cid", t.home, target, zlink::detail::unit_kind::member_actor)).left);
  s.settle("cid", t.home, target);
  CHECK(of.place_of("cid") == rid_of(s.net, target));
}

TEST_CASE("J-7 J-99 J-108 a bound Actor joins a room of another node: its binding goes along, and the Join does not wait for the session") {
  bound_scene s;
  const table t{s.net, s.on, "hall", {"bob"}};
  if (t.home == s.from)
    s.move("ann", s.from, s.to); // so that the room is elsewhere
  const auto source = home_of_player(s.net, "ann");
  s.wire.rule = [](lane_record& r) { return r.command != control_command::session_relocation_route; }; // it never hears of it
  go_to(s.net, s.on, "ann", t.room);
  CHECK(s.on.count("completed ann accepted") == 1);
  s.settle("ann", source, t.home);
  const auto bound = s.net.host(t.home).runtime().objects.find_actor("ann")->session();
  REQUIRE(bound);
  CHECK(*bound == s.ann->binding());
}

TEST_CASE("J-7 binding and membership have nothing to do with each other") {
  bound_scene s;
  const auto actor = [&] { return s.net.host(home_of_player(s.net, "ann")).runtime().objects.find_actor("ann"); };
  const auto room = s.net.run(s.net.host(0).spots().get_or_create("den", "room").submit()).spot;
  const auto before = player_row(s.net, "ann")->member_of;
  actor()->bind_session(std::nullopt);
  s.ann->bind("ann", 2);
  CHECK(player_row(s.net, "ann")->member_of == before); // bind, rebind: the membership stays
  go_to(s.net, s.on, "ann", room.spot_id);
  CHECK(actor()->session() == s.ann->binding(2)); // a Join ends no binding
  actor()->bind_session(std::nullopt);
  CHECK(player_row(s.net, "ann")->member_of->spot_id == room.spot_id);
  go_to(s.net, s.on, "ann", "");
  CHECK(!actor()->session()); // and makes none
}

TEST_CASE("J-146 N-136 the move of a bound Actor is no disconnect, and no change of membership") {
  bound_scene s;
  s.on.trace.clear();
  s.net.run(s.start());
  s.settle("ann", s.from, s.to);
  for (const auto* callback : {"joined", "left", "gate", "completed", "disconnected"})
    CHECK_MESSAGE(s.on.count(callback) == 0, callback);
}

} // namespace
} // namespace relocation_test
