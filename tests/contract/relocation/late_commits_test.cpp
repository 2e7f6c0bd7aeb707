// What a source passes on while it does not know yet that the target is the owner, and links that are lost meanwhile (06 sections
// 11, 14, 16).
#include "tests/contract/relocation/tampered_wire.hpp"

namespace relocation_test {
namespace {

using words = std::vector<std::string>;

words heard_of(mesh& net, const std::string& sender) {
  words all;
  for (const auto& one : look_at(net, 0, "a").entries)
    if (one.starts_with(sender + '/'))
      all.push_back(one);
  return all;
}

/// From now on that host does not learn what the row of "a" says.
void hold_looks(mesh& net, std::size_t host) {
  net.faults(host).set_rule([](const zlink::testing::store_call& call) {
    return call.what == zlink::testing::store_operation::read && call.key.starts_with(zlink::placement::spot_key("a"))
             ? zlink::testing::store_fault::hold_call
             : zlink::testing::store_fault::none;
  });
}
void end_hold(mesh& net, std::size_t host) {
  net.faults(host).set_rule({});
  net.faults(host).release_all();
}

TEST_CASE("L-142 L-183 L-185 a source that sees the commit late loses nothing of what it passes on, also where nothing is followed") {
  for (const auto late : {0s, 20s}) {
    CAPTURE(late.count());
    stage on;
    tampered_wire wire;
    mesh net{{.hosts = 3, .adjust = [&](std::size_t host, zlink::host_options& options) {
                options.message_follow_duration = 0ms;
                wire.taps()(host, options);
              }}};
    const lane_scene s{net, on};
    net.host(s.to).runtime().moving.on_step = [&](move_step step, const std::string&) {
      if (step == move_step::committing)
        hold_looks(net, s.from);
    };
    CHECK(net.run(start_move(net, "a", s.from, s.to, 60s)).left);
    net.run_until([&] { return lives(net, s.to, "a"); });
    net.run_until_idle();
    net.advance(late);
    CHECK(wire.count(control_command::relay) == 0);
    net.run(jot(net.host(s.from), "a", "l", 1));
    CHECK(net.run(count(net.host(s.from), "a", "l", 2)).number == 2);
    CHECK(wire.count(control_command::relay) == 2);
    end_hold(net, s.from);
    net.run_until_idle();
    CHECK(net.run(count(net.host(s.from), "a", "l", 3)).number == 3);
    CHECK(heard_of(net, "l") == words{"l/1", "l/2", "l/3"});
  }
}

TEST_CASE("L-185 L-191 what is passed on by the lane reaches no later incarnation, and its sender hears of that") {
  for (const auto late : {0s, 20s}) { // the target knows of the move, or does not any more
    CAPTURE(late.count());
    stage on;
    mesh net{{.hosts = 3, .adjust = [](std::size_t, zlink::host_options& options) { options.message_follow_duration = 0ms; }}};
    const lane_scene s{net, on};
    net.host(s.to).runtime().moving.on_step = [&](move_step step, const std::string&) {
      if (step == move_step::committing)
        hold_looks(net, s.from);
    };
    CHECK(net.run(start_move(net, "a", s.from, s.to, 60s)).left);
    net.run_until([&] { return lives(net, s.to, "a"); });
    on.acts = [](const zlink::instance_spot_context& context, const std::string& word) -> zlink::task<void> {
      if (word == "close")
        co_await context.close();
    };
    const auto first = row_of(net, "a")->generation;
    for (int i = 0; i < 50 && !(lives(net, s.to, "a") && row_of(net, "a")->generation > first); ++i) { // until it is there anew
      if (row_of(net, "a"))
        net.run(bid(net.host(s.to), "a", "close"));
      net.run_until([&] { return !row_of(net, "a"); });
      static_cast<void>(failure(net, rouse(net.host(s.other), "a")));
    }
    REQUIRE(lives(net, s.to, "a"));
    net.advance(late);
    on.trace.clear();
    CHECK(failure(net, count(net.host(s.from), "a", "old", 1)) == error_kind::unavailable);
    net.run(jot(net.host(s.from), "a", "old", 2));
    net.run_until_idle();
    CHECK(on.count("handle a old") == 0);
    end_hold(net, s.from);
  }
}

TEST_CASE("L-142 M-135 a request behind the mark that was lost with its link is unavailable, though the move goes well") {
  stage on;
  tampered_wire wire;
  mesh net{{.hosts = 3, .adjust = wire.taps()}};
  const lane_scene s{net, on};
  auto& store = net.faults(s.to);
  net.host(s.to).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::committing)
      store.once(zlink::testing::store_operation::write, "", zlink::testing::store_fault::hold_call);
  };
  CHECK(net.run(start_move(net, "a", s.from, s.to)).left);
  net.run_until([&] { return store.held() == 1; });
  wire.rule = [](lane_record& r) { return r.command != control_command::relay; };
  auto lost = count(net.host(s.from), "a", "l", 1, 15s);
  net.run_until([&] { return wire.count(control_command::relay) == 1; });
  wire.rule = nullptr;
  net.lose_links(s.from, s.to);
  const auto since = net.elapsed();
  net.run_until_idle();
  store.release_all();
  CHECK(failure(net, std::move(lost)) == error_kind::unavailable);
  CHECK(net.elapsed() - since < 5s);
  CHECK(net.run(count(net.host(s.from), "a", "l", 2)).number == 2);
  CHECK(heard_of(net, "l") == words{"l/2"});
}

TEST_CASE("M-135 L-66 an answer that was lost with the link before the source saw the commit: its request is unavailable") {
  stage on;
  mesh net{3};
  const lane_scene s{net, on};
  barrier handler;
  on.hold("handle", handler);
  auto running = count(net.host(s.from), "a", "q", 1);
  net.run_until([&] { return handler.waiting() == 1; });
  auto captured = count(net.host(s.from), "a", "q", 2, 15s);
  net.run_until_idle();
  net.host(s.to).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::committing)
      hold_looks(net, s.from);
    if (step == move_step::committed)
      net.mute(s.to, s.from);
  };
  auto moving = start_move(net, "a", s.from, s.to);
  net.advance(5ms);
  handler.open();
  CHECK(net.run(std::move(moving)).left);
  CHECK(net.run(std::move(running)).number == 1);
  net.run_until([&] { return lives(net, s.to, "a") && on.count("handle a q/2") == 1; });
  net.run_until_idle();
  net.lose_links(s.from, s.to);
  net.heal();
  net.advance(100ms);
  end_hold(net, s.from);
  const auto since = net.elapsed();
  CHECK(failure(net, std::move(captured)) == error_kind::unavailable);
  CHECK(net.elapsed() - since < 5s);
}

TEST_CASE("L-142 a link that is lost when the target has become the owner ends no request of a third node: it runs, and is answered") {
  for (const bool in_time : {true, false}) { // there is a new one within the window
    CAPTURE(in_time);
    stage on;
    tampered_wire wire;
    mesh net{{.hosts = 3, .adjust = wire.taps()}};
    const lane_scene s{net, on};
    barrier restore;
    barrier handler;
    on.during = [&](const std::string& step, const std::string&) {
      return step == "handle" ? handler.passed() : step == "restore" ? restore.passed() : zlink::task<void>::done();
    };
    auto moving = start_move(net, "a", s.from, s.to);
    net.run_until([&] { return restore.waiting() == 1; });
    auto asked = count(net.host(s.other), "a", "h", 1);
    net.run_until_idle();
    net.host(s.to).runtime().moving.on_step = [&](move_step step, const std::string&) {
      if (step == move_step::committed && in_time)
        net.lose_links(s.from, s.to);
      else if (step == move_step::committed)
        net.partition({s.from}, {s.to});
    };
    restore.open();
    CHECK(net.run(std::move(moving)).left);
    net.run_until([&] { return handler.waiting() == 1; });
    net.advance(3s);
    net.heal();
    CHECK(!asked.ready());
    handler.open();
    CHECK(net.run(std::move(asked)).number == 1);
    net.advance(5s);
    CHECK(heard_of(net, "h") == words{"h/1"});
  }
}

TEST_CASE("L-137 L-160 what is held when the target has gone on by itself is passed on by the next link") {
  stage on;
  tampered_wire wire;
  mesh net{{.hosts = 3, .adjust = wire.taps()}};
  const lane_scene s{net, on};
  wire.rule = [](lane_record& r) { return r.command != control_command::relay_ready; };
  auto moving = start_move(net, "a", s.from, s.to, 60s);
  net.run_until([&] { return wire.count(control_command::relay_ready) == 1; });
  auto held = count(net.host(s.other), "a", "h", 1);
  net.run_until_idle();
  auto& store = net.faults(s.from);
  store.set_rule([](const zlink::testing::store_call& call) {
    return call.what == zlink::testing::store_operation::write && call.touches(zlink::placement::spot_key("a"))
             ? zlink::testing::store_fault::hold_call
             : zlink::testing::store_fault::none;
  });
  net.partition({s.from}, {s.to});
  net.run_until([&] { return lives(net, s.to, "a"); });
  REQUIRE(store.held() == 1);
  store.set_rule({});
  store.release_all();
  net.advance(300ms);
  CHECK(!held.ready());
  net.heal();
  CHECK(net.run(std::move(held)).number == 1);
  CHECK(net.run(std::move(moving)).left);
  CHECK(heard_of(net, "h") == words{"h/1"});
}

} // namespace
} // namespace relocation_test
