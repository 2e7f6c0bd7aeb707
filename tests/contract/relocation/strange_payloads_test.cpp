// What a peer that is newer, or worse, may say on a lane: refused by name, before anything of it is believed (06 section 8).
#include "relocation/carried_unit.hpp"
#include "tests/contract/relocation/tampered_wire.hpp"

namespace relocation_test {
namespace {

using zlink::detail::carried_timer;
using zlink::detail::carried_unit;
using zlink::detail::restore_request;

carried_timer some_timer() {
  carried_timer timer;
  timer.name = "t";
  timer.handler = "nobody's";
  timer.period_ms = 10;
  timer.generation = 1;
  timer.earliest_index = 1;
  return timer;
}

struct strange_payload {
  const char* name;
  std::function<void(carried_unit&)> change;
};
std::vector<strange_payload> strange_payloads() {
  const auto timer = [](auto change) {
    return [change](carried_unit& unit) { change(unit.parts.front().timers.emplace_back(some_timer())); };
  };
  const auto tick = [](std::uint32_t of) { return zlink::detail::carried_work{true, of, {}}; };
  return {
    {"no period", timer([](auto& t) { t.period_ms = 0; })},
    {"a period that runs back", timer([](auto& t) { t.period_ms = -5; })},
    {"an endless period", timer([](auto& t) { t.period_ms = std::numeric_limits<std::int64_t>::max(); })},
    {"an unknown overrun", timer([](auto& t) { t.overrun = 9; })},
    {"no catch-up", timer([](auto& t) { t.overrun = 1; })},
    {"no next tick", timer([](auto& t) { t.earliest_index = 0; })},
    {"an age before birth", timer([](auto& t) { t.age_ns = -1; })},
    {"an age beyond time", timer([](auto& t) { t.age_ns = std::numeric_limits<std::int64_t>::max(); })},
    {"due before birth", timer([](auto& t) { t.next_due_ns = -1; })},
    {"a timer without a name", timer([](auto& t) { t.name.clear(); })},
    {"a tick of nobody", [tick](carried_unit& unit) { unit.parts.front().work.push_back(tick(0)); }},
    {"two ticks of one timer",
     [tick](carried_unit& unit) {
       unit.parts.front().timers.push_back(some_timer());
       unit.parts.front().work = {tick(0), tick(0)};
     }},
    {"a Join of a Spot", [](carried_unit& unit) { unit.join.emplace(); }},
    {"readiness of an Instance Spot", [](carried_unit& unit) { unit.owes_completion = true; }},
    {"a session of a Spot", [](carried_unit& unit) { unit.parts.front().session.emplace(); }},
    {"a part too many", [](carried_unit& unit) { unit.parts.emplace_back(); }},
    {"no part", [](carried_unit& unit) { unit.parts.clear(); }},
  };
}

/// A move of "a" whose payload is another than its source has sent.
struct changed_move {
  stage on;
  tampered_wire wire;
  bool originals = true;
  std::optional<mesh> net;
  lane_scene s;

  changed_move() {
    wire.rule = [this](lane_record& r) { return !originals || (r.command != control_command::restore && r.command != control_command::restore_chunk); };
    net.emplace(zlink::testing::mesh_options{.hosts = 2, .adjust = wire.taps()});
    s = lane_scene{*net, on};
  }
  zlink::detail::unit_end run(const std::function<void(carried_unit&)>& change, const std::function<void(restore_request&)>& change_request = {}) {
    auto moving = start_move(*net, "a", s.from, s.to);
    net->run_until([this] { return wire.count(control_command::restore_chunk) == 1; });
    originals = false;
    auto request = wire.last(control_command::restore);
    auto chunk = zlink::detail::decode_chunk(wire.last(control_command::restore_chunk).body);
    auto unit = zlink::decode<carried_unit>(chunk.content);
    change(unit);
    const auto payload = zlink::encode(unit);
    auto opened = zlink::decode<restore_request>(request.body);
    opened.total_bytes = payload.size();
    opened.sum = zlink::detail::crc32c(0, payload);
    if (change_request)
      change_request(opened);
    request.body = zlink::encode(opened);
    chunk.content = payload;
    forge(*net, s.from, s.to, request);
    forge(*net, s.from, s.to, {s.from, control_command::restore_chunk, request.move, zlink::detail::encode_chunk(chunk)});
    return net->run(std::move(moving));
  }
};

TEST_CASE("L-96 O-145 a payload that no source writes is refused as lost data, and the source goes on") {
  for (const auto& one : strange_payloads()) {
    CAPTURE(one.name);
    changed_move m;
    const auto end = m.run(one.change);
    CHECK_FALSE(end.left);
    CHECK(end.reason == relocate_reason::relocation_failed);
    CHECK(end.kind == error_kind::data_lost);
    CHECK(m.on.count("make a") == 0);
    CHECK(m.net->run(count(m.net->host(0), "a", "x", 1)).number == 1);
    CHECK(m.net->owner_of("a") == m.s.from);
  }
  changed_move same; // it is the change that is refused, not the forgery
  CHECK(same.run([](carried_unit&) {}).left);
}

TEST_CASE("L-16 L-96 a validity beyond all time is one that ends") {
  for (const auto left : {std::numeric_limits<std::int64_t>::max(), std::int64_t{60'000}}) {
    changed_move m;
    CHECK(m.run([](carried_unit&) {}, [left](restore_request& request) { request.left_ms = left; }).left);
  }
}

TEST_CASE("O-145 a Restore request with parts that no unit of its kind has starts nothing") {
  using zlink::detail::moving_part;
  using zlink::detail::unit_kind;
  const moving_part spot{false, "b", 1, 1};
  const moving_part actor{true, "ann", 1, 1};
  const std::vector<std::pair<unit_kind, std::vector<moving_part>>> wrong{
    {unit_kind::entry_actor, {spot}},          {unit_kind::member_actor, {actor, actor}}, {unit_kind::joining_actor, {spot, actor}},
    {unit_kind::instance_spot, {actor}},       {unit_kind::instance_spot, {spot, actor}}, {unit_kind::per_actor_spot, {spot, actor}},
    {unit_kind::spot_wide, {actor, spot}},     {unit_kind::spot_wide, {spot, spot}},
  };
  for (const auto& one : wrong) {
    const auto kind = one.first;
    CAPTURE(static_cast<int>(kind));
    stage on;
    tampered_wire wire;
    mesh net{{.hosts = 2, .adjust = wire.taps()}};
    const lane_scene s{net, on};
    restore_request request;
    request.attempt = 1;
    request.kind = static_cast<std::uint8_t>(kind);
    request.source_lifecycle = net.host(s.from).runtime().find_node("m")->identity.lifecycle.value;
    request.target_lifecycle = net.host(s.to).runtime().find_node("m")->identity.lifecycle.value;
    request.parts = one.second;
    request.total_bytes = request.chunks = 1;
    request.left_ms = 60'000;
    forge(net, s.from, s.to, {s.from, control_command::restore, {1, 1}, zlink::encode(request)});
    net.run_until_idle();
    CHECK(net.host(s.to).runtime().moving.at_rest());
    CHECK_FALSE(net.host(s.to).runtime().moving.arrives("b"));
    net.advance(10s); // whatever was made of the link that said it
    CHECK(net.run(count(net.host(s.from), "a", "x", 1)).number == 1);
  }
}

TEST_CASE("J-117 O-145 a refusal in words that nobody knows is a refusal") {
  stage on;
  tampered_wire wire;
  mesh net{{.hosts = 2, .adjust = wire.taps()}};
  const lane_scene s{net, on};
  barrier restore;
  on.hold("restore", restore);
  auto moving = start_move(net, "a", s.from, s.to);
  net.run_until([&] { return restore.waiting() == 1; });
  const auto request = wire.last(control_command::restore);
  zlink::detail::restore_refused no{zlink::decode<restore_request>(request.body).attempt, 200, 250, "strange"};
  forge(net, s.to, s.from, {s.to, control_command::restore_refused, request.move, zlink::encode(no)});
  const auto end = net.run(std::move(moving));
  CHECK_FALSE(end.left);
  CHECK(end.reason == relocate_reason::relocation_failed);
  CHECK(end.kind == error_kind::internal_failure);
  CHECK(end.why == "strange");
  restore.open();
  CHECK(net.run(count(net.host(0), "a", "x", 1)).number == 1);
}

} // namespace
} // namespace relocation_test
