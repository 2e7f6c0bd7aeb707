// Messages that follow what has moved: how far, how long, and what their senders learn (06 section 16).
#include "tests/contract/relocation/tampered_wire.hpp"

namespace relocation_test {
namespace {

using words = std::vector<std::string>;

std::string node_of(mesh& net, std::size_t host) { return net.host(host).runtime().find_node("m")->identity.node_rid; }

/// Moves "a" and waits until the source has seen it.
void hop(mesh& net, std::size_t from, std::size_t to) {
  bool seen = false;
  net.host(from).runtime().moving.on_step = [&](move_step step, const std::string&) { seen = seen || step == move_step::source_closed; };
  REQUIRE(net.run(start_move(net, "a", from, to)).left);
  net.run_until([&] { return seen && lives(net, to, "a"); });
  net.host(from).runtime().moving.on_step = nullptr;
}
zlink::task<void> failing_behind(barrier& until) {
  co_await until.passed();
  throw std::runtime_error{"not here"};
}
/// With what the first owner was when it was owned there.
struct first_route {
  first_route(mesh& net, std::size_t from) : at(from) {
    const auto row = *row_of(net, "a");
    fence = {row.generation, row.authority};
  }
  std::size_t at;
  zlink::detail::message_fence fence;
};

TEST_CASE("L-182 a message follows eight times, and not a ninth") {
  for (const std::size_t moves : {8U, 9U}) {
    CAPTURE(moves);
    stage on;
    mesh net{11};
    net.start(serve(on));
    net.run(rouse(net.host(0), "a"));
    const auto home = net.owner_of("a");
    std::vector<std::size_t> way{home};
    for (std::size_t i = 0; way.size() <= 10; ++i)
      if (i != home)
        way.push_back(i);
    const auto asker = way.back();
    const first_route route{net, home};
    for (std::size_t i = 0; i < moves; ++i)
      hop(net, way[i], way[i + 1]);
    on.trace.clear();
    send_straight(net, asker, home, "a", {"far", 1}, route.fence);
    net.run_until_idle();
    CHECK(on.count("handle a far/1") == (moves == 8 ? 1 : 0));
    CHECK(look_at(net, asker, "a").rid == node_of(net, way[moves]));
  }
}

TEST_CASE("L-181 L-185 a request by an old route runs once at the new owner and is answered once, without a look at the store") {
  stage on;
  mesh net{4};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  const auto asker = (from + 3) % 4;
  CHECK(net.run(count(net.host(asker), "a", "x", 1)).number == 1); // it knows a route
  for (std::size_t i = 0; i < 2; ++i)
    hop(net, (from + i) % 4, (from + i + 1) % 4);
  for (std::size_t i = 0; i < 4; ++i)
    net.faults(i).clear_log();
  CHECK(net.run(count(net.host(asker), "a", "x", 2)).number == 2);
  for (std::size_t i = 0; i < 4; ++i)
    for (const auto& call : net.faults(i).log())
      CHECK_MESSAGE(!call.key.starts_with(zlink::placement::spot_key("a")), call.key);
  const auto view = look_at(net, 0, "a");
  CHECK(view.entries == words{"first/0", "x/1", "x/2"});
  CHECK(view.rid == node_of(net, (from + 2) % 4));
}

TEST_CASE("M-85 M-79 L-181 who sent a message that was followed is told; its next one takes no detour") {
  stage on;
  tampered_wire wire;
  mesh net{{.hosts = 3, .adjust = wire.taps()}};
  const lane_scene s{net, on};
  net.run(count(net.host(s.other), "a", "x", 1));
  hop(net, s.from, s.to);
  net.run(count(net.host(s.other), "a", "x", 2));
  net.run_until_idle();
  CHECK(wire.count(control_command::route_moved) == 1);
  net.kill(s.from); // who would have to pass it on
  CHECK(net.run(count(net.host(s.other), "a", "x", 3)).number == 3);
  CHECK(wire.count(control_command::route_moved) == 1);
}

TEST_CASE("L-180 L-182 a move back that fails leaves what follows: who still asks the former owner is sent on, then and after the next moves") {
  for (const int attempts : {1, 2}) {
    CAPTURE(attempts);
    stage on;
    mesh net{{.hosts = 3}};
    const lane_scene s{net, on};
    const first_route route{net, s.from};
    hop(net, s.from, s.to);
    on.at = [](const std::string& step, const std::string&) {
      if (step == "restore")
        throw std::runtime_error{"not here"};
    };
    for (int i = 0; i < attempts; ++i)
      CHECK_FALSE(net.run(start_move(net, "a", s.to, s.from)).left);
    on.at = nullptr;
    net.run_until_idle();
    send_straight(net, s.other, s.from, "a", {"late", 1}, route.fence);
    net.run_until_idle();
    CHECK(on.count("handle a late/1") == 1);
    hop(net, s.to, s.from);
    hop(net, s.from, s.to);
    send_straight(net, s.other, s.from, "a", {"late", 2}, route.fence);
    net.run_until_idle();
    CHECK(on.count("handle a late/2") == 1);
  }
}

TEST_CASE("L-180 L-109 of two moves back that overlap the last that fails leaves what follows") {
  stage on;
  mesh net{{.hosts = 3}};
  const lane_scene s{net, on};
  const first_route route{net, s.from};
  hop(net, s.from, s.to);
  barrier first;
  on.during = [&](const std::string& step, const std::string&) { return step == "restore" ? failing_behind(first) : zlink::task<void>::done(); };
  CHECK_FALSE(net.run(start_move(net, "a", s.to, s.from, 2s)).left);
  auto second = start_move(net, "a", s.to, s.from);
  net.run_until([&] { return first.waiting() == 2; });
  first.open();
  CHECK_FALSE(net.run(std::move(second)).left);
  net.run_until_idle();
  send_straight(net, s.other, s.from, "a", {"late", 1}, route.fence);
  net.run_until_idle();
  CHECK(on.count("handle a late/1") == 1);
}

TEST_CASE("L-183 a move back that fails when the following is over brings nothing back") {
  stage on;
  mesh net{{.hosts = 3, .adjust = [](std::size_t, zlink::host_options& options) { options.route_cache_max_age = 5s;
                                                                                     options.message_follow_duration = 10s; }}};
  const lane_scene s{net, on};
  const first_route route{net, s.from};
  hop(net, s.from, s.to);
  barrier restore;
  on.hold("restore", restore);
  CHECK_FALSE(net.run(start_move(net, "a", s.to, s.from, 15s)).left);
  restore.open();
  net.run_until_idle();
  send_straight(net, s.other, s.from, "a", {"late", 1}, route.fence);
  net.run_until_idle();
  CHECK(on.count("handle a late/1") == 0);
  CHECK(net.run(count(net.host(s.other), "a", "x", 1)).number == 1);
}

TEST_CASE("M-85 a node is told once of a route that leads nowhere, however much it had sent by it") {
  stage on;
  tampered_wire wire;
  mesh net{{.hosts = 3, .adjust = wire.taps()}};
  const lane_scene s{net, on};
  const first_route route{net, s.from};
  hop(net, s.from, s.to);
  for (std::uint64_t i = 1; i <= 20; ++i)
    send_straight(net, s.other, s.from, "a", {"late", i}, route.fence);
  net.run_until_idle();
  CHECK(on.count("handle a late/") == 20);
  CHECK(wire.count(control_command::route_moved) == 1);
  for (std::uint64_t i = 1; i <= 3; ++i)
    send_straight(net, s.to, s.from, "a", {"other", i}, route.fence);
  net.run_until_idle();
  CHECK(on.count("handle a other/") == 3);
  CHECK(wire.count(control_command::route_moved) == 2);
}

TEST_CASE("L-183 followed until the duration is over, counted from the submit; afterwards a request is unavailable") {
  for (const bool after : {false, true}) {
    CAPTURE(after);
    stage on;
    mesh net{{.hosts = 3, .adjust = [](std::size_t, zlink::host_options& options) { options.route_cache_max_age = 5s;
                                                                                       options.message_follow_duration = 10s; }}};
    const lane_scene s{net, on};
    const first_route route{net, s.from};
    std::chrono::nanoseconds submitted{0};
    net.host(s.from).runtime().moving.on_step = [&](move_step step, const std::string&) {
      if (step == move_step::cutover_sent)
        submitted = net.elapsed();
    };
    REQUIRE(net.run(start_move(net, "a", s.from, s.to)).left);
    net.run_until([&] { return lives(net, s.to, "a") && !lives(net, s.from, "a"); });
    net.advance(submitted + 10s - net.elapsed() + (after ? 50ms : -50ms));
    on.trace.clear();
    send_straight(net, s.other, s.from, "a", {"late", 1}, route.fence);
    net.run_until_idle();
    CHECK(on.count("handle a late/1") == (after ? 0 : 1));
    net.advance(20s);
    CHECK(net.run(count(net.host(s.other), "a", "x", 1)).number == 1); // who looks finds it
    CHECK(net.run(count(net.host(s.from), "a", "x", 2)).number == 2);
  }
}

TEST_CASE("L-183 no following at all where it is switched off") {
  stage on;
  mesh net{{.hosts = 3, .adjust = [](std::size_t, zlink::host_options& options) { options.message_follow_duration = 0ms; }}};
  const lane_scene s{net, on};
  const first_route route{net, s.from};
  hop(net, s.from, s.to);
  net.run_until_idle();
  on.trace.clear();
  send_straight(net, s.other, s.from, "a", {"late", 1}, route.fence);
  net.run_until_idle();
  CHECK(on.count("handle a late/1") == 0);
  CHECK(net.run(count(net.host(s.other), "a", "x", 1)).number == 1);
}

TEST_CASE("L-182 what was passed on by an owner that came later is not passed back: no circle") {
  stage on;
  mesh net{3};
  const lane_scene s{net, on};
  hop(net, s.from, s.to);
  const auto row = *row_of(net, "a");
  auto fence = zlink::detail::message_fence{row.generation, row.authority, 1};
  fence.authority.value += 5; // as if a later owner had sent it
  on.trace.clear();
  send_straight(net, s.other, s.from, "a", {"round", 1}, fence);
  net.run_until_idle();
  CHECK(on.count("handle") == 0);
}

TEST_CASE("L-191 L-182 a message for an incarnation that has ended follows nobody") {
  stage on;
  mesh net{3};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  const auto first = *row_of(net, "a");
  on.acts = [](const zlink::instance_spot_context& context, const std::string& word) -> zlink::task<void> {
    if (word == "close")
      co_await context.close();
  };
  net.run(bid(net.host(0), "a", "close"));
  net.run_until([&] { return !row_of(net, "a"); });
  net.run(rouse(net.host(0), "a"));
  lane_scene s;
  s.look(net);
  REQUIRE(row_of(net, "a")->generation > first.generation);
  hop(net, s.from, s.to);
  on.trace.clear();
  send_straight(net, s.other, s.from, "a", {"old", 1}, zlink::detail::message_fence{first.generation, first.authority});
  send_straight(net, s.other, s.from, "a", {"old", 2}, zlink::detail::message_fence{{row_of(net, "a")->generation.value + 3}, first.authority});
  net.run_until_idle();
  CHECK(on.count("handle a old") == 0);
}

TEST_CASE("L-191 a followed message runs on no later incarnation, not even where the object was when it ended") {
  stage on;
  mesh net{3};
  const lane_scene s{net, on};
  const first_route route{net, s.from};
  hop(net, s.from, s.to);
  on.acts = [](const zlink::instance_spot_context& context, const std::string& word) -> zlink::task<void> {
    if (word == "close")
      co_await context.close();
  };
  for (int i = 0; i == 0 || (row_of(net, "a") && net.owner_of("a") != s.to); ++i) { // until it is there anew
    net.run(bid(net.host(s.other), "a", "close"));
    net.run_until([&] { return !row_of(net, "a"); });
    net.run(rouse(net.host(s.other), "a"));
  }
  on.trace.clear();
  send_straight(net, s.other, s.from, "a", {"old", 1}, route.fence);
  net.run_until_idle();
  CHECK(on.count("handle a old") == 0);
}

TEST_CASE("L-191 L-198 what comes for a Spot that was closed and made anew elsewhere reaches the new one only by a new look") {
  stage on;
  mesh net{3};
  const lane_scene s{net, on};
  hop(net, s.from, s.to);
  net.run(count(net.host(s.other), "a", "x", 1));
  on.acts = [](const zlink::instance_spot_context& context, const std::string& word) -> zlink::task<void> {
    if (word == "close")
      co_await context.close();
  };
  net.run(bid(net.host(s.other), "a", "close"));
  net.run_until([&] { return !row_of(net, "a"); });
  CHECK(failure(net, count(net.host(s.from), "a", "x", 2)).has_value()); // a follow route never wakes anybody
  CHECK(!row_of(net, "a"));
  net.run(rouse(net.host(s.from), "a"));
  CHECK(net.run(count(net.host(s.other), "a", "x", 3)).number == 3);
  const auto view = look_at(net, 0, "a");
  CHECK(view.entries == words{"first/0", "x/3"});
}

TEST_CASE("L-64 L-107 X-88 many that are held and many that wait at the target: all of them run") {
  stage on;
  mesh net{3};
  const lane_scene s{net, on};
  barrier restore;
  on.hold("restore", restore);
  auto moving = start_move(net, "a", s.from, s.to, 60s);
  net.run_until([&] { return restore.waiting() == 1; });
  constexpr std::uint64_t many = 20000;
  for (std::uint64_t i = 1; i <= many; ++i) {
    net.run(jot(net.host(s.from), "a", "h", i));
    if (i % 1000 == 0)
      net.run_until_idle();
  }
  restore.open();
  on.at = nullptr;
  CHECK(net.run(std::move(moving)).left);
  net.run_until([&] { return on.count("handle a h/20000") == 1; });
  std::uint64_t next = 0;
  for (const auto& one : look_at(net, 0, "a").entries)
    if (one.starts_with("h/"))
      CHECK(one == "h/" + std::to_string(++next));
  CHECK(next == many);
}

} // namespace
} // namespace relocation_test
