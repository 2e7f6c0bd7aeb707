// What a move that ended in the middle of its payload gives back, and when (06 section 8).
#include "tests/contract/relocation/room_scene.hpp"
#include "tests/contract/relocation/tampered_wire.hpp"

namespace relocation_test {
namespace {

TEST_CASE("L-93 L-161 bytes that nobody will take any more are given back at once, whatever the application still does") {
  stage on;
  barrier told;
  tampered_wire wire;
  mesh net{{.hosts = 2, .adjust = [&, taps = wire.taps()](std::size_t host, zlink::host_options& options) {
              taps(host, options);
              options.relocation_in_flight_bytes = 128 << 10;
            }}};
  net.start(serve_rooms(on, {.signalled = true}));
  const table t{net, on, "r", {"ada"}};
  net.run(say(net.host(0), "ada", std::string(1 << 20, 'w')));
  wire.rule = [](lane_record& r) { return r.command != control_command::chunks_taken; };
  const auto other = 1 - t.home;
  auto moving = start_move(net, t.room, t.home, other);
  net.run_until_idle();
  net.run(net.host(0).spots().send_to_spot(t.room, round_end{}).submit());
  net.run_until([&] { return wire.count(control_command::restore_chunk) != 0; });
  net.run_until_idle();
  auto& pace = net.host(t.home).runtime().moving.pace;
  CHECK(pace.is_full(rid_of(net, other)));
  on.hold("boundary", told);
  net.lose_links(t.home, other);
  CHECK_FALSE(net.run(std::move(moving)).left);
  net.run_until_idle();
  CHECK(on.count("boundary " + t.room + " continued") == 1);
  CHECK(told.waiting() == 1);
  CHECK_FALSE(pace.is_full(rid_of(net, other)));
  told.open();
  CHECK(net.run(say(net.host(0), "ada", "on")).word == "on");
}

} // namespace
} // namespace relocation_test
