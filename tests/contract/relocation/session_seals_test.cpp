// The seal of a session: refused, withdrawn, expired, and what comes too late (06 sections 6, 14, 15; 08 section 12).
#include "tests/contract/relocation/session_scene.hpp"

namespace relocation_test {
namespace {

using words = std::vector<std::string>;
using zlink::detail::seal_answer;
using zlink::detail::seal_question;
using zlink::detail::session_route;
using zlink::detail::unique_id;

seal_question question(const bound_scene& s, std::uint64_t move, std::uint64_t binding = 1) {
  return {s.ann->binding(binding), "ann", player_row(const_cast<mesh&>(s.net), "ann")->generation.value, move, move};
}

// -- refused ------------------------------------------------------------------------------------------------------------

TEST_CASE("L-62 N-127 no such session, or another binding: the Actor goes on as one without") {
  for (const bool other_binding : {false, true}) {
    CAPTURE(other_binding);
    bound_scene s;
    if (other_binding)
      s.net.host(s.from).runtime().objects.find_actor("ann")->bind_session(s.ann->binding(7));
    else
      s.ann->sessions().end_session("s");
    CHECK(s.net.run(s.start()).left);
    s.settle("ann", s.from, s.to);
    CHECK(s.told() == 0);
    CHECK(!s.net.host(s.to).runtime().objects.find_actor("ann")->session());
  }
}

TEST_CASE("L-62 N-127 the session owner has gone: the Actor goes on as one without") {
  bound_scene s;
  s.net.kill(s.owner);
  s.net.advance(60s); // its lease is over, and the nodes know
  CHECK(s.net.run(s.start()).left);
  s.settle("ann", s.from, s.to);
}

TEST_CASE("L-62 N-127 another move has a seal there, or no answer comes: the pause is lifted, and the attempt fails") {
  for (const bool silent : {false, true}) {
    CAPTURE(silent);
    bound_scene s;
    if (silent)
      s.wire.rule = [](lane_record& r) { return r.command != control_command::seal_session; };
    else
      CHECK(s.ann->sessions().seal(question(s, 99)) == seal_answer::installed);
    auto moving = s.start();
    const auto end = s.net.run(std::move(moving));
    CHECK(!end.left);
    CHECK(end.reason == relocate_reason::relocation_failed);
    CHECK(end.why.find(silent ? "could not be sealed" : "sealed by another move") != std::string::npos);
    CHECK(s.on.count("capture") == 0);
    CHECK(s.wire.count(control_command::restore) == 0);
    CHECK(s.net.run(say(s.net.host(s.to), "ann", "served")).rid == rid_of(s.net, s.from));
    if (!silent) { // the seal of the other one stands
      s.ann->ask("ann", "held", 1);
      s.net.run_until_idle();
      CHECK(s.who->ends.empty());
    }
  }
}

TEST_CASE("L-62 L-162 a seal that comes behind the end of its move is let go, too") {
  bound_scene s{{.max_link_delay = 2ms}};
  s.wire.rule = [&](lane_record& r) { return r.command != control_command::seal_session; };
  auto moving = s.start();
  s.net.run_until([&] { return s.wire.count(control_command::seal_session) == 1; });
  s.net.host(s.from).runtime().moving.end(); // as at the end of the host: nobody waits for the answer
  CHECK(!s.net.run(std::move(moving)).left);
  s.wire.rule = nullptr;
  s.net.lose_links(s.from, s.owner); // the question is asked again by the next link
  s.net.advance(1s);
  CHECK(s.wire.count(control_command::seal_session) >= 2);
  s.ann->ask("ann", "through", 1);
  s.net.advance(1s);
  CHECK(s.who->ends == std::map<std::uint64_t, std::string>{{1, "through@" + rid_of(s.net, s.from)}});
  s.net.advance(10s);
  CHECK(s.who->closed.empty());
}

TEST_CASE("N-125 the same move asks again: one seal, and one answer") {
  bound_scene s;
  CHECK(s.ann->sessions().seal(question(s, 5)) == seal_answer::installed);
  CHECK(s.ann->sessions().seal(question(s, 5)) == seal_answer::installed);
  CHECK(s.ann->sessions().seal(question(s, 6)) == seal_answer::contended);
  CHECK(s.ann->sessions().seal(question(s, 5, 2)) == seal_answer::absent);
}

// -- withdrawn ----------------------------------------------------------------------------------------------------------

TEST_CASE("L-161 L-162 N-144 a move that fails: captured work, what was held at the source, then what the session held; the connection stays") {
  barrier handler;
  barrier restore;
  bound_scene s;
  s.on.hold("handle", handler);
  s.ann->say("ann", "0");
  s.net.run_until([&] { return handler.waiting() == 1; });
  s.ann->say("ann", "Q1");
  s.ann->say("ann", "Q2");
  s.net.run_until_idle();
  auto moving = s.start();
  s.on.at = [&](const std::string& step, const std::string&) {
    if (step == "restore")
      throw std::runtime_error{"no"};
  };
  s.on.during = [&](const std::string& step, const std::string&) { return step == "capture" ? restore.passed() : zlink::task<void>::done(); };
  handler.open();
  s.net.run_until([&] { return restore.waiting() == 1; });
  s.net.run(s.net.host(s.from).actors().send_to_actor("ann", play{"H1"}).submit()); // held at the source
  s.ann->say("ann", "S1"); // held by the session
  s.ann->ask("ann", "S2", 2);
  s.net.run_until_idle();
  restore.open();
  CHECK(!s.net.run(std::move(moving)).left);
  s.net.run_until_idle();
  CHECK(s.heard() == words{"0", "Q1", "Q2", "H1", "S1", "S2", "?"});
  CHECK(s.who->ends == std::map<std::uint64_t, std::string>{{2, "S2@" + rid_of(s.net, s.from)}});
  CHECK(s.who->closed.empty());
  REQUIRE(s.told() == 1);
  const auto told = zlink::decode<session_route>(s.wire.last(control_command::session_relocation_route).body);
  CHECK(told.action == static_cast<std::uint8_t>(zlink::detail::session_route_action::abort));
  s.net.advance(10s);
  CHECK(s.who->closed.empty()); // its seal is gone
  s.on.at = nullptr;
  CHECK(s.net.run(s.start()).left); // and another move may have one
}

TEST_CASE("L-162 N-145 after the boundary no seal is withdrawn, whatever becomes of the target: the session ends by its time") {
  bound_scene s;
  s.net.host(s.from).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::boundary)
      s.net.kill(s.to);
  };
  auto moving = s.start();
  s.net.advance(1s);
  s.ann->ask("ann", "held", 1);
  s.net.advance(60s);
  CHECK(s.told() == 0);
  CHECK(s.who->ends == std::map<std::uint64_t, std::string>{{1, "unavailable"}});
  CHECK(s.who->closed == words{"relocation_seal_timeout"});
  static_cast<void>(moving);
}

// -- expired ------------------------------------------------------------------------------------------------------------

TEST_CASE("L-173 S-103 N-142 command 44 is lost: after the seal's time the session is closed and cleaned, and the Actor is fine") {
  bound_scene s;
  s.create("bob", s.from);
  s.ann->bind("bob");
  s.wire.rule = [](lane_record& r) { return r.command != control_command::session_relocation_route; };
  CHECK(s.net.run(s.start()).left);
  const auto sealed = s.net.elapsed();
  s.settle("ann", s.from, s.to);
  s.ann->ask("ann", "held", 1);
  s.net.advance(2'500ms - (s.net.elapsed() - sealed));
  CHECK(s.who->closed.empty());
  CHECK(s.who->ends.empty());
  s.net.advance(600ms);
  CHECK(s.who->closed == words{"relocation_seal_timeout"});
  CHECK(s.who->ends == std::map<std::uint64_t, std::string>{{1, "unavailable"}});
  CHECK(s.ann->place_of("ann") == "nowhere");
  CHECK(s.told() == 1); // nothing was sent again
  CHECK(s.net.run(say(s.net.host(s.owner), "ann", "fine")).rid == rid_of(s.net, s.to));
}

TEST_CASE("L-173 N-140 command 44 of a seal that is over, once more, or of another move: nothing changes, and it is noted") {
  bound_scene s;
  s.net.run(s.start());
  s.settle("ann", s.from, s.to);
  const auto record = s.wire.last(control_command::session_relocation_route);
  auto again = record;
  change<session_route>(again, [&](session_route& what) { what.node_rid = rid_of(s.net, s.from); });
  forge(s.net, s.to, s.owner, again); // a second time
  s.net.run_until_idle();
  CHECK(s.log.count("late_session_route_update ann") == 1);
  CHECK(s.ann->place_of("ann") == rid_of(s.net, s.to));
  auto asked = question(s, 41);
  CHECK(s.ann->sessions().seal(asked) == seal_answer::installed);
  forge(s.net, s.to, s.owner, again); // of another move
  s.net.run_until_idle();
  CHECK(s.log.count("late_session_route_update ann") == 2);
  CHECK(s.ann->place_of("ann") == rid_of(s.net, s.to));
  s.ann->ask("ann", "held", 1);
  s.net.run_until_idle();
  CHECK(s.who->ends.empty()); // the seal stays
}

TEST_CASE("L-172 L-177 N-134 what is compared: session, run of its owner, binding, Actor, its incarnation, the move") {
  using edit = std::function<void(session_route&, unique_id&)>;
  const std::vector<std::pair<std::string, edit>> wrong{
    {"session", [](session_route& r, unique_id&) { r.binding.session_id = "t"; }},
    {"owner", [](session_route& r, unique_id&) { r.binding.owner_lifecycle += 1; }},
    {"binding", [](session_route& r, unique_id&) { r.binding.generation += 1; }},
    {"actor", [](session_route& r, unique_id&) { r.actor_id = "bob"; }},
    {"incarnation", [](session_route& r, unique_id&) { r.generation += 1; }},
    {"move", [](session_route&, unique_id& move) { move.low += 1; }},
  };
  bound_scene s;
  CHECK(s.ann->sessions().seal(question(s, 7)) == seal_answer::installed);
  session_route told;
  told.action = static_cast<std::uint8_t>(zlink::detail::session_route_action::commit);
  told.binding = s.ann->binding();
  told.actor_id = "ann";
  told.generation = player_row(s.net, "ann")->generation.value;
  told.mesh_name = "m";
  told.node_rid = rid_of(s.net, s.to);
  for (const auto& one : wrong) {
    CAPTURE(one.first);
    auto what = told;
    unique_id move{7, 7};
    one.second(what, move);
    s.ann->sessions().route(what, move);
    CHECK(s.ann->place_of("ann") == rid_of(s.net, s.from));
  }
  CHECK(s.log.told.size() >= wrong.size());
  s.ann->sessions().route(told, {7, 7});
  CHECK(s.ann->place_of("ann") == rid_of(s.net, s.to));
}

TEST_CASE("L-177 J-138 an Actor that is made anew has no session, and hears nothing of the old one") {
  bound_scene s;
  const auto old = s.net.run(s.net.host(0).actors().find("ann"));
  REQUIRE(old);
  s.net.run(s.net.host(0).actors().destroy(*old));
  s.net.run_until_idle();
  s.create("ann", s.from);
  CHECK(!s.net.host(s.from).runtime().objects.find_actor("ann")->session());
  s.ann->ask("ann", "old", 1);
  s.ann->say("ann", "old, too");
  s.net.run_until_idle();
  CHECK(s.who->ends == std::map<std::uint64_t, std::string>{{1, "unavailable"}});
  CHECK(s.net.run(start_actor_move(s.net, "ann", s.from, s.to)).left); // it asks for no seal, and tells nobody
  s.settle("ann", s.from, s.to);
  CHECK(s.told() == 0);
  CHECK(s.ann->place_of("ann") == rid_of(s.net, s.from));
  CHECK(s.heard() == words{"?"});
}

TEST_CASE("N-128 a held request whose time is over ends so, and never runs") {
  barrier capture;
  bound_scene s;
  auto moving = s.start_and_hold("capture", capture);
  s.ann->ask("ann", "short", 1, 200ms);
  s.ann->ask("ann", "long", 2);
  s.net.advance(1s);
  capture.open();
  s.net.run(std::move(moving));
  s.settle("ann", s.from, s.to);
  CHECK(s.who->ends.at(1) == "deadline_exceeded");
  CHECK(s.who->ends.at(2) == "long@" + rid_of(s.net, s.to));
  CHECK(s.heard() == words{"long", "?"});
}

TEST_CASE("N-130 the seal's time must be positive") {
  for (const auto wrong : {0ms, -1ms}) {
    mesh net{{.adjust = [wrong](std::size_t, zlink::host_options& options) { options.session_relocation_seal_timeout = wrong; }}};
    CHECK_THROWS_WITH(net.start([](zlink::host& host) { host.add_mesh("m"); }), doctest::Contains("session_relocation_seal_timeout"));
  }
}

/// Each move either leads to the new place, or closes the session: never both (N-141).
TEST_CASE("L-173 N-141 command 44 and the end of the seal's time at nearly the same moment") {
  int moved = 0;
  int closed = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    bound_scene s{{.seed = seed, .max_link_delay = 20ms, .adjust = [](std::size_t, zlink::host_options& options) {
                     options.session_relocation_seal_timeout = 60ms;
                   }}};
    s.net.run(s.start());
    s.settle("ann", s.from, s.to);
    s.net.advance(1s);
    const bool here = s.ann->place_of("ann") == rid_of(s.net, s.to);
    CHECK(here == s.who->closed.empty());
    CHECK(here == (s.log.count("late_session_route_update ann") == 0));
    ++(here ? moved : closed);
  }
  CHECK(moved > 0);
  CHECK(closed > 0);
}

} // namespace
} // namespace relocation_test
