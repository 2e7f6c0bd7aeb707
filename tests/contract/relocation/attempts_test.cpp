// One attempt: who it is, what it may be told by, how long it counts, and what it costs (06 sections 1, 2 and 10).
#include "tests/contract/relocation/tampered_wire.hpp"

namespace relocation_test {
namespace {

using zlink::detail::restore_request;
using zlink::testing::store_fault;
using zlink::testing::store_operation;

restore_request request_in(const lane_record& record) { return zlink::decode<restore_request>(record.body); }

TEST_CASE("L-14 two attempts on one target differ in id and attempt, which are not zero and nobody's process generation") {
  std::set<std::uint64_t> halves;
  std::set<std::uint64_t> attempts;
  std::size_t made = 0;
  for (const std::uint64_t seed : {1U, 2U}) {
    stage on;
    tampered_wire wire;
    mesh net{{.hosts = 2, .seed = seed, .adjust = wire.taps()}};
    const lane_scene s{net, on};
    on.at = [](const std::string& step, const std::string&) {
      if (step == "restore")
        throw std::runtime_error{"no"};
    };
    for (int i = 0; i < 8; ++i) {
      CHECK(!net.run(start_move(net, "a", s.from, s.to)).left);
      net.run_until_idle();
      const auto& record = wire.last(control_command::restore);
      const auto request = request_in(record);
      halves.insert(record.move.high);
      halves.insert(record.move.low);
      attempts.insert(request.attempt);
      CHECK(record.move != zlink::detail::unique_id{});
      CHECK(request.attempt != 0);
      CHECK(request.attempt != request.source_lifecycle);
      CHECK(request.attempt != request.target_lifecycle);
      ++made;
    }
    CHECK(wire.count(control_command::restore) == 8);
  }
  CHECK(attempts.size() == made);
  CHECK(halves.size() == 2 * made); // all 128 bits are drawn
}

TEST_CASE("L-120 a request that its row does not bear out: no factory, an explicit refusal, and the source goes on") {
  for (const int what : {0, 1, 2, 3, 4, 5}) {
    CAPTURE(what);
    stage on;
    tampered_wire wire;
    mesh net{{.hosts = 2, .adjust = wire.taps()}};
    const lane_scene s{net, on};
    wire.rule = [&](lane_record& r) {
      if (r.command == control_command::restore)
        change<restore_request>(r, [&](restore_request& request) {
          auto& part = request.parts.front();
          switch (what) {
            case 0: part.id = "nobody"; break;  // no row
            case 1: ++part.generation; break;   // of a later incarnation
            case 2: --part.generation; break;   // of an earlier one
            case 3: ++part.authority; break;    // the row is older than that
            case 4: --part.authority; break;    // somebody has owned it since
            default: request.kind = static_cast<std::uint8_t>(zlink::detail::unit_kind::spot_wide); break; // another kind
          }
        });
      return true;
    };
    auto held = count(net.host(s.from), "a", "h", 1);
    const auto end = net.run(start_move(net, "a", s.from, s.to));
    CHECK(!end.left);
    CHECK(end.reason == relocate_reason::relocation_failed);
    CHECK(on.count("make") + on.count("initialize") + on.count("restore") == 0);
    CHECK(wire.count(control_command::restore_refused) == 1);
    CHECK(wire.count(control_command::relay_ready) == 0);
    CHECK(net.run(std::move(held)).number == 1);
    CHECK(net.owner_of("a") == s.from);
  }
}

TEST_CASE("L-120 L-8 a request that was under way while its move ended is stale: the row names no such move") {
  stage on;
  tampered_wire wire;
  mesh net{{.hosts = 3, .adjust = wire.taps()}};
  const lane_scene s{net, on};
  wire.rule = [](lane_record& r) { return r.command != control_command::restore && r.command != control_command::restore_chunk; };
  CHECK(!net.run(start_move(net, "a", s.from, s.to, 500ms)).left);
  wire.rule = nullptr;
  const auto late = wire.last(control_command::restore);
  const auto chunk = wire.last(control_command::restore_chunk);
  forge(net, s.from, s.to, late);
  forge(net, s.from, s.to, chunk);
  net.run_until_idle();
  CHECK(on.count("make") == 0);
  CHECK(wire.count(control_command::restore_refused) == 1);
  CHECK(net.run(count(net.host(s.other), "a", "x", 1)).number == 1);
  CHECK(net.owner_of("a") == s.from);
}

// -- clocks and deadlines -------------------------------------------------------------------------------------------------

/// When things happened, in virtual time since the move began.
struct timetable {
  std::chrono::nanoseconds source_ended{};
  std::chrono::nanoseconds staging_removed{};
  std::chrono::nanoseconds caller_ended{};
  std::vector<std::int64_t> told; ///< milliseconds that requests say are left
  friend bool operator==(const timetable&, const timetable&) = default;
};
/// A target that never comes to an end, and a caller with a deadline of its own; the target hears nothing of the end.
timetable stuck_move(std::chrono::nanoseconds source_skew, std::chrono::nanoseconds target_skew, bool repeat) {
  timetable seen;
  stage on;
  barrier never;
  tampered_wire wire;
  mesh net{{.hosts = 3, .adjust = wire.taps()}};
  const lane_scene s{net, on};
  net.shift_wall(s.from, source_skew);
  net.shift_wall(s.to, target_skew);
  wire.rule = [](lane_record& r) { return r.command != control_command::move_abandoned && r.command != control_command::restore_chunk; };
  const auto began = net.elapsed();
  bool removed = false;
  net.host(s.to).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::staging_removed && !std::exchange(removed, true))
      seen.staging_removed = net.elapsed() - began;
  };
  auto moving = start_move(net, "a", s.from, s.to, 3s);
  net.advance(100ms);
  bool over = false;
  std::optional<error_kind> kind;
  count(net.host(s.from), "a", "h", 1, 2s).then([&](zlink::result<count_up> end) { // held
    over = true;
    if (!end)
      kind = end.error().kind();
    seen.caller_ended = net.elapsed() - began;
  });
  for (int i = 0; i < 3; ++i) {
    net.advance(700ms);
    if (repeat)
      forge(net, s.from, s.to, wire.last(control_command::restore));
  }
  const auto end = net.run(std::move(moving));
  CHECK(!end.left);
  CHECK(end.reason == relocate_reason::deadline_exceeded);
  seen.source_ended = net.elapsed() - began;
  net.run_until([&] { return removed && over; });
  CHECK(kind == error_kind::deadline_exceeded);
  for (const auto& one : wire.sent)
    if (one.command == control_command::restore)
      seen.told.push_back(request_in(one).left_ms);
  never.open();
  return seen;
}

TEST_CASE("L-16 clocks of the wall that differ by hours change nothing, and a repeated request lengthens no deadline") {
  const auto plain = stuck_move(0s, 0s, false);
  CHECK(plain.staging_removed >= 2990ms);
  CHECK(plain.staging_removed <= 3010ms);
  CHECK(plain.source_ended >= 3000ms);
  CHECK(plain.source_ended <= 3100ms);
  CHECK(plain.caller_ended == 2100ms);
  CHECK(plain.told.size() == 1);
  CHECK(plain.told.front() <= 3000);
  CHECK(plain.told.front() > 2900);
  for (const auto source : {-7h, 0h, 7h})
    for (const auto target : {-9h, 0h, 9h}) {
      CAPTURE(source.count());
      CAPTURE(target.count());
      CHECK(stuck_move(source, target, false) == plain);
      const auto repeated = stuck_move(source, target, true);
      CHECK(repeated.staging_removed == plain.staging_removed);
      CHECK(repeated.source_ended == plain.source_ended);
      CHECK(repeated.caller_ended == plain.caller_ended);
    }
}

TEST_CASE("L-16 a request held over a move keeps the deadline that it had, across the target's clock as well") {
  for (const auto skew : {-5h, 5h}) {
    CAPTURE(skew.count());
    stage on;
    barrier handler;
    mesh net{3};
    net.start(serve(on));
    net.run(rouse(net.host(0), "a"));
    const auto from = net.owner_of("a");
    const auto to = (from + 1) % 3;
    net.shift_wall(to, skew);
    barrier capture;
    on.during = [&](const std::string& step, const std::string&) {
      return step == "handle" ? handler.passed() : step == "capture" ? capture.passed() : zlink::task<void>::done();
    };
    auto moving = start_move(net, "a", from, to);
    net.run_until([&] { return capture.waiting() == 1; });
    const auto began = net.elapsed();
    std::optional<std::chrono::nanoseconds> ended;
    std::optional<error_kind> kind;
    count(net.host((from + 2) % 3), "a", "x", 1, 4s).then([&](zlink::result<count_up> end) {
      ended = net.elapsed() - began;
      if (!end)
        kind = end.error().kind();
    });
    net.advance(2s);
    capture.open();
    CHECK(net.run(std::move(moving)).left);
    net.run_until([&] { return handler.waiting() == 1; }); // it runs there, and is not over yet
    net.run_until([&] { return ended.has_value(); });
    CHECK(kind == error_kind::deadline_exceeded);
    CHECK(*ended == 4s);
    handler.open();
    net.run_until_idle();
  }
}

TEST_CASE("L-270 how long a unit stands still, and when nothing follows any more, the source says by its own clock alone") {
  for (const auto source : {-7h, 0h, 7h})
    for (const auto target : {-9h, 0h, 9h}) {
      CAPTURE(source.count());
      CAPTURE(target.count());
      stage on;
      barrier restore;
      std::optional<std::chrono::milliseconds> stood_still;
      mesh net{{.hosts = 2, .adjust = [&](std::size_t, zlink::host_options& options) {
                  options.message_follow_duration = 10s;
                  options.route_cache_max_age = 2s;
                  options.on_trace = [&](const zlink::trace_record& one) {
                    if (one.event == "zlink.runtime.relocation.changed")
                      stood_still = one.interruption;
                  };
                }}};
      net.start(serve(on));
      net.run(rouse(net.host(0), "a"));
      const auto from = net.owner_of("a");
      net.shift_wall(from, source);
      net.shift_wall(1 - from, target);
      on.hold("restore", restore);
      auto leaving = net.host(from).relocate();
      net.run_until([&] { return restore.waiting() == 1; });
      net.advance(700ms);
      restore.open();
      CHECK(net.run(std::move(leaving)).outcome == zlink::relocate_outcome::relocated);
      REQUIRE(stood_still);
      CHECK(*stood_still == 700ms);
      net.advance(9900ms);
      CHECK(!net.host(from).status().safe_to_shutdown);
      net.advance(200ms);
      CHECK(net.host(from).status().safe_to_shutdown);
    }
}

} // namespace
} // namespace relocation_test
