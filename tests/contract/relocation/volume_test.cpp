// How much may follow on one route (06 section 16).
#include "tests/contract/relocation/tampered_wire.hpp"

namespace relocation_test {
namespace {

/// So many notes of that size come by an old route while the new owner takes nothing: how often that is noted.
std::ptrdiff_t warnings_about(std::uint64_t notes, std::size_t size) {
  stage on;
  move_log log;
  mesh net{{.hosts = 3, .adjust = log.listens()}};
  const lane_scene s{net, on};
  const auto row = *row_of(net, "a");
  const zlink::detail::message_fence fence{row.generation, row.authority};
  bool seen = false;
  net.host(s.from).runtime().moving.on_step = [&](move_step step, const std::string&) { seen = seen || step == move_step::source_closed; };
  CHECK(net.run(start_move(net, "a", s.from, s.to)).left);
  net.run_until([&] { return seen && lives(net, s.to, "a"); });
  net.freeze(s.to);
  const std::string sender(size, 's');
  for (std::uint64_t i = 1; i <= notes; ++i)
    send_straight(net, s.other, s.from, "a", {sender, i}, fence);
  net.advance(300ms); // less than a send waits for room
  net.thaw(s.to);
  net.advance(3s);
  std::uint64_t next = 0;
  for (const auto& one : look_at(net, s.to, "a").entries)
    if (one.starts_with("s"))
      CHECK(one.substr(one.find('/') + 1) == std::to_string(++next));
  CHECK(next == notes); // all of them, in order
  return log.count("follow_backlog a");
}

TEST_CASE("L-184 more than 1,024 records or 16 MiB that wait on one route are one warning, and all of them are delivered") {
  CHECK(warnings_about(2'400, 10'000) == 1);
  CHECK(warnings_about(230, 100'000) == 1);  // few, but large
  CHECK(warnings_about(900, 10'000) == 0);   // half of them wait
}

} // namespace
} // namespace relocation_test
