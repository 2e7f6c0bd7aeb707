// Members of a room that are lost on their way to another node: for the room they are gone (06 section 14).
#include "tests/contract/relocation/room_scene.hpp"

namespace relocation_test {
namespace {

using words = std::vector<std::string>;
using zlink::detail::unit_kind;

/// A room with ada and bob, ada of whom is lost on her way, which `begin` starts.
struct lost_member {
  lost_member(mesh& net, stage& on, bool per_actor) {
    net.start(serve_rooms(on, {.per_actor = per_actor}));
    const table t{net, on, "r", {"ada", "bob"}};
    room = t.room;
    home = t.home;
    to = home == 1 ? 2 : 1; // 0 is asked by everybody
    ada = *net.run(net.host(home).actors().find("ada"));
  }
  /// The target dies with the cutover unread, and the source settles that.
  void lose(mesh& net, stage& on, const std::function<void()>& begin) {
    bool sent = false;
    bool settled = false;
    auto& moving = net.host(home).runtime().moving;
    moving.on_step = [&](move_step step, const std::string& address) {
      if (address != zlink::detail::actor_address("ada"))
        return;
      if (step == move_step::boundary)
        net.mute(home, to);
      sent = sent || step == move_step::cutover_sent;
      settled = settled || step == move_step::settled_lost;
    };
    on.trace.clear();
    begin();
    net.run_until([&] { return sent; });
    net.kill(to);
    net.heal();
    net.run_until([&] { return settled; });
    moving.on_step = nullptr;
    CHECK(on.count("left") == 0); // L-165
    CHECK(on.count("destroy ada") == 1);
  }
  std::string room;
  std::size_t home = 0;
  std::size_t to = 0;
  zlink::actor_ref ada;
};

TEST_CASE("L-163 L-165 C-114 C-147 J-150 a member lost on the way to another room is a member no more: the roll is called, the room moves, and closes") {
  stage on;
  mesh net{3};
  lost_member s{net, on, false};
  std::string other;
  for (int i = 0; other.empty(); ++i)
    if (const auto made = net.run(net.host(0).spots().get_or_create("x" + std::to_string(i), "room").submit()); host_of(net, made.spot.node_rid) == s.to)
      other = made.spot.spot_id;
  s.lose(net, on, [&] { net.run(net.host(s.home).actors().send_to_actor("ada", enter{other}).submit()); });
  auto& here = net.host(s.home);
  CHECK(net.run(call_roll(here, s.room)).members == words{"bob"});
  CHECK(failure(net, say(here, "ada", "where")) == error_kind::unavailable);
  CHECK(player_row(net, "ada"));
  CHECK(!net.run(here.spots().close(*net.run(here.spots().find(s.room))))); // because of bob

  const auto rest = 3 - s.home - s.to;
  CHECK(net.run(start_move(net, s.room, s.home, rest)).left); // nobody keeps it from its seal
  net.run_until([&] { return lives(net, rest, s.room) && !lives(net, s.home, s.room); });
  CHECK(net.run(call_roll(here, s.room)).members == words{"bob"});
  go_to(net, on, "bob", "");
  CHECK(net.run(here.spots().close(*net.run(here.spots().find(s.room)))));
  CHECK(net.run(here.actors().destroy(s.ada)));
  net.run(here.actors().create("ada", "player").submit());
}

TEST_CASE("L-154 L-163 L-231 a member of a PerActor room that is lost on its way: the shell that stays for the others ends with the last of them") {
  stage on;
  mesh net{3};
  lost_member s{net, on, true};
  CHECK(net.run(start_move(net, s.room, s.home, s.to)).left);
  net.run_until([&] { return lives(net, s.to, s.room) && !lives(net, s.home, s.room); });
  s.lose(net, on, [&] { CHECK(net.run(start_actor_move(net, "ada", s.home, s.to, unit_kind::member_actor)).left); });
  CHECK(net.run(say(net.host(s.home), "bob", "on")).room == s.room);
  CHECK(on.count("closing") == 0);
  go_to(net, on, "bob", "");
  net.run_until([&] { return on.count("closing " + s.room + " relocation_out") == 1; });
  net.advance(31s); // what follows late messages
  CHECK(net.host(s.home).runtime().moving.quiet());
}

} // namespace
} // namespace relocation_test
