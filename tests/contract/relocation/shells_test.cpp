// The shell of a PerActor room that has moved: it is there for those whom it serves, and ends behind them (06 sections 12 and 19).
#include "tests/contract/relocation/room_scene.hpp"

namespace relocation_test {
namespace {

using words = std::vector<std::string>;

std::ptrdiff_t place_of(const stage& on, const std::string& what) {
  const auto at = std::ranges::find_if(on.trace, [&](const auto& one) { return one.starts_with(what); });
  REQUIRE_MESSAGE(at != on.trace.end(), what);
  return at - on.trace.begin();
}

/// A room whose shell alone is here still, with its players.
struct shell {
  shell(mesh& net, stage& on, const words& players) {
    net.start(serve_rooms(on, {.per_actor = true}));
    const table t{net, on, "r", players};
    room = t.room;
    home = t.home;
    to = (home + 1) % net.size();
    on.trace.clear();
  }
  void move(mesh& net) const {
    CHECK(net.run(start_move(net, room, home, to)).left);
    net.run_until([&] { return lives(net, to, room) && !lives(net, home, room); });
  }
  /// The target dies before it commits.
  void lose(mesh& net) const {
    bool sent = false;
    net.host(home).runtime().moving.on_step = [&](move_step step, const std::string& address) {
      if (address == room && step == move_step::boundary)
        net.mute(home, to);
      sent = sent || (address == room && step == move_step::cutover_sent);
    };
    auto moving = start_move(net, room, home, to);
    net.run_until([&] { return sent; });
    net.kill(to);
    net.heal();
    CHECK(net.run(std::move(moving)).left);
    net.run_until([&] { return !lives(net, home, room); });
    net.host(home).runtime().moving.on_step = nullptr;
  }
  /// Does not wait for longer than the work of its members takes.
  void shut_down(mesh& net) const {
    const auto began = net.elapsed();
    const auto end = net.run(net.host(home).shutdown());
    CHECK(end.outcome == zlink::shutdown_outcome::stopped);
    CHECK(end.reason == zlink::shutdown_reason::none);
    CHECK(net.elapsed() - began < 1s);
  }
  std::string room;
  std::size_t home = 0;
  std::size_t to = 0;
};

TEST_CASE("L-154 L-240 L-241 L-242 L-243 a shutdown with a shell that serves members: their accepted work, OnClosing, then instances, without delay") {
  stage on;
  barrier slow;
  mesh net{2};
  const shell s{net, on, {"ada", "bob"}};
  s.move(net);
  on.hold("handle", slow);
  auto told = say(net.host(s.to), "ada", "accepted");
  net.run_until([&] { return slow.waiting() == 1; });
  net.host(s.home).runtime().infra->post_after(300ms, [&] { slow.open(); });
  s.shut_down(net);
  CHECK(net.run(std::move(told)).heard == words{"accepted"});
  CHECK(on.count("closing " + s.room) == 1);
  CHECK(place_of(on, "handle ada") < place_of(on, "closing " + s.room + " relocation_out"));
  CHECK(place_of(on, "closing " + s.room) < place_of(on, "destroy " + s.room));
  CHECK(place_of(on, "destroy " + s.room) < place_of(on, "destroy ada"));
  CHECK(place_of(on, "destroy " + s.room) < place_of(on, "destroy bob"));
  CHECK(on.count("left") == 0);
}

TEST_CASE("L-225 L-243 L-248 one member of a PerActor room stays, so Relocate is blocked; the shutdown that follows has nothing to wait for") {
  stage on;
  mesh net{2};
  const shell s{net, on, {"ada", "bob"}};
  on.at = [](const std::string& step, const std::string& id) {
    if (step == "capture" && id == "ada")
      throw std::runtime_error{"no"};
  };
  CHECK(net.run(net.host(s.home).relocate({})).outcome == zlink::relocate_outcome::blocked);
  CHECK(net.run(say(net.host(s.to), "ada", "on")).rid == rid_of(net, s.home));
  s.shut_down(net);
  CHECK(on.count("closing " + s.room + " relocation_out") == 1);
  CHECK(on.count("destroy ada") == 1);
}

TEST_CASE("L-163 L-240 L-243 a shutdown with the shell of a room that was lost with its target: its members are served to the end, and nobody waits") {
  stage on;
  mesh net{3};
  const shell s{net, on, {"ada", "bob"}};
  s.lose(net);
  CHECK(net.run(say(net.host(s.home), "ada", "on")).room == s.room);
  s.shut_down(net);
  CHECK(on.count("closing " + s.room) == 0);
  CHECK(place_of(on, "destroy " + s.room) < place_of(on, "destroy ada"));
}

TEST_CASE("L-152 S-44 the lease is lost under a shell: a member's handler that runs still has the instance whose function it is") {
  for (const bool lost : {false, true}) {
    CAPTURE(lost);
    stage on;
    barrier slow;
    mesh net{3};
    const shell s{net, on, {"ada"}};
    lost ? s.lose(net) : s.move(net);
    on.hold("handle", slow);
    const auto asking = 3 - s.home - s.to;
    auto told = say(net.host(asking), "ada", "held", 60s);
    net.run_until([&] { return slow.waiting() == 1; });
    net.cut_store(s.home);
    net.advance(30s);
    net.heal();
    net.advance(10s);
    CHECK(on.count("destroy " + s.room) == 0);
    slow.open();
    static_cast<void>(net.run(zlink::as_result(std::move(told))));
    net.run_until([&] { return on.count("destroy " + s.room) == 1; });
    CHECK(place_of(on, "destroy ada") < place_of(on, "destroy " + s.room));
    CHECK(net.host(s.home).status().actors == 0);
  }
}

/// Whatever the layer does to what it waits for.
zlink::task<void> stand_firm(barrier& until, bool& over) {
  for (bool passed = false; !passed;) {
    auto standing = zlink::as_result(until.passed());
    passed = (co_await std::move(standing)).has_value();
  }
  over = true;
}

TEST_CASE("L-241 L-243 a member's handler that outlasts the shutdown: the shell whose function it is stays behind with it") {
  stage on;
  barrier never;
  bool over = false;
  mesh net{2};
  const shell s{net, on, {"ada"}};
  s.move(net);
  on.during = [&](const std::string& step, const std::string&) {
    return step == "handle" ? stand_firm(never, over) : zlink::task<void>::done();
  };
  auto told = say(net.host(s.to), "ada", "held");
  net.run_until([&] { return never.waiting() == 1; });
  const auto end = net.run(net.host(s.home).shutdown());
  CHECK(end.outcome == zlink::shutdown_outcome::force_stopped);
  CHECK(end.reason == zlink::shutdown_reason::deadline_exceeded);
  static_cast<void>(net.run(zlink::as_result(std::move(told))));
  net.advance(10s);
  CHECK(on.count("closing " + s.room) == 0);
  CHECK(on.count("destroy " + s.room) == 0);
  never.open();
  net.advance(1s);
  CHECK(over);
  CHECK_THROWS_AS(net.finish(), std::logic_error); // it says what stays behind
}

TEST_CASE("L-154 J-84 the last member goes to another room of the host: the shell hears of it before it ends, however long that takes") {
  stage on;
  barrier slow;
  mesh net{2};
  const shell s{net, on, {"ada"}};
  std::string other;
  for (int i = 0; other.empty(); ++i)
    if (const auto made = net.run(net.host(0).spots().get_or_create("x" + std::to_string(i), "room").submit()); host_of(net, made.spot.node_rid) == s.home)
      other = made.spot.spot_id;
  s.move(net);
  on.hold("joined", slow);
  net.run(net.host(0).actors().send_to_actor("ada", enter{other}).submit());
  net.run_until([&] { return slow.waiting() == 1; });
  net.advance(1s);
  CHECK(on.count("closing") == 0);
  slow.open();
  net.run_until([&] { return on.count("destroy " + s.room) == 1; });
  CHECK(on.count("left " + s.room + " ada") == 1);
  CHECK(place_of(on, "left " + s.room) < place_of(on, "closing " + s.room + " relocation_out"));
}

TEST_CASE("L-152 J-131 a handler whose Actor has left the room goes on in the room: the shell does not end under it") {
  stage on;
  barrier slow;
  mesh net{2};
  const shell s{net, on, {"ada"}};
  bool sent = false;
  net.host(s.home).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::boundary)
      net.mute(s.home, s.to); // so that it waits for the mark, and may be left
    sent = sent || step == move_step::cutover_sent;
  };
  on.during = [&](const std::string& step, const std::string&) -> zlink::task<void> {
    if (step != "handle")
      co_return;
    auto standing = slow.passed();
    co_await std::move(standing);
  };
  CHECK(net.run(start_move(net, s.room, s.home, s.to)).left);
  REQUIRE(sent);
  auto told = say(net.host(s.home), "ada", "held");
  net.run_until([&] { return slow.waiting() == 1; });
  auto& source = net.host(s.home).runtime();
  const auto ada = source.objects.find_actor("ada");
  auto leaving = ada->spot()->make_spot_context().leave_actor(*ada->application());
  net.run(std::move(leaving));
  net.heal();
  net.run_until([&] { return lives(net, s.to, s.room) && !lives(net, s.home, s.room); });
  net.advance(1s);
  CHECK(on.count("closing") == 0);
  CHECK(on.count("destroy") == 0);
  slow.open();
  CHECK(net.run(std::move(told)).word == "held");
  net.run_until([&] { return on.count("destroy " + s.room) == 1; });
  CHECK(place_of(on, "left " + s.room + " ada") < place_of(on, "closing " + s.room + " relocation_out"));
  source.moving.on_step = nullptr;
}

} // namespace
} // namespace relocation_test
