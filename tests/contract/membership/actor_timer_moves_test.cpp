// Timers of Actors that change their Spot, and that end (X-142 with chapter 05).
#include "tests/contract/membership/ticking_people.hpp"

namespace membership_test {
namespace {

using words = std::vector<std::string>;

TEST_CASE("X-142 J-65 J-102 a tick that is due while a Join is pending waits behind it, and runs as a member") {
  for (const bool per_actor : {false, true}) {
    CAPTURE(per_actor);
    ticking_scene s{{.per_actor = per_actor}};
    auto& net = s.net;
    auto& on = s.on;
    s.start_ticking();
    net.advance(150ms);
    barrier gate;
    barrier completing;
    on.during = [&](const std::string& step) {
      return step.starts_with("gate")        ? gate.passed()
             : step.starts_with("completed") ? completing.passed()
                                             : zlink::task<void>::done();
    };
    on.trace.clear();
    net.run(send_off(net.host(0), "ada", "r"));
    net.run_until([&] { return gate.waiting() == 1; });
    net.advance(500ms);
    gate.open();
    net.run_until([&] { return completing.waiting() == 1; });
    net.advance(500ms);
    CHECK(on.count("tick") == 0);
    completing.open();
    net.advance(200ms);
    words seen;
    for (const auto& one : on.trace)
      if (!one.starts_with("left"))
        seen.push_back(one);
    REQUIRE(seen.size() >= 6);
    seen.resize(6);
    CHECK(
      seen
      == words{"go ada", "gate r ada", "joined r ada", "completed ada accepted", "tick ada 2 in r", "tick ada 3 in r"});
  }
}

TEST_CASE("X-142 J-65 a tick that was queued before the Join was registered runs behind it as well, accepted or not") {
  for (const bool accepts : {true, false}) {
    CAPTURE(accepts);
    ticking_scene s;
    auto& net = s.net;
    auto& on = s.on;
    barrier open;
    on.gate = [accepts](const std::string&) { return accepts ? zlink::accept() : zlink::reject(); };
    s.then = [&](zlink::actor& who, const std::string&) -> zlink::task<void> {
      auto waiting = open.passed();
      co_await std::move(waiting); // meanwhile it is queued
      who.context().join_spot("r").defer();
    };
    s.start_ticking();
    auto going = talk(net.host(0), "ada", "go", 1min);
    net.advance(150ms);
    on.trace.clear();
    open.open();
    net.run(std::move(going));
    net.run_until([&] { return on.count("tick") == 1; });
    CHECK(on.count("completed") == 1);
    CHECK(on.trace.back() == (accepts ? "tick ada 1 in r" : "tick ada 1 in hall"));
  }
}

TEST_CASE("X-142 X-158 J-74 J-130 joins and leaves inside a node keep the timer, its handle and its numbers") {
  for (const bool per_actor : {false, true}) {
    CAPTURE(per_actor);
    ticking_scene s{{.per_actor = per_actor}};
    auto& net = s.net;
    auto& on = s.on;
    open_room(net, "s"); // made last: leave is the one of this room
    std::vector<zlink::timer_tick> ticks;
    std::vector<std::string> at;
    std::set<std::uint64_t> instances;
    on.ticked = [&](person& who, const zlink::timer_tick& tick) -> zlink::task<void> {
      CHECK(tick.name == "t");
      ticks.push_back(tick);
      at.push_back(place_name(who.context().spot_id()));
      instances.insert(who.instance);
      return zlink::task<void>::done();
    };
    s.then = [&](zlink::actor& who, const std::string&) { return on.leave(who); };
    s.start_ticking();
    words expected;
    const auto stay = [&](const std::string& where) {
      net.advance(300ms);
      expected.insert(expected.end(), 3, where);
    };
    net.advance(50ms); // between two ticks
    stay("hall");
    for (const auto* to : {"r", "s", "", "s"}) {
      move_person(net, on, "ada", to);
      stay(place_name(*to == 0 ? "-entry-" : to));
    }
    net.run(talk(net.host(0), "ada", "leave"));
    net.run_until_idle();
    stay("hall");
    CHECK(at == expected);
    CHECK(instances.size() == 1);
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      CHECK(ticks[i].delivery_index == i + 1);
      CHECK(ticks[i].scheduled_index == i + 1); // none was late
    }
    s.handle.cancel();
    net.advance(1s);
    CHECK(ticks.size() == expected.size());
  }
}

TEST_CASE("J-58 J-62 J-63 X-142 a tick of an Actor may register a Join, which begins when the tick has ended well") {
  ticking_scene s;
  auto& net = s.net;
  auto& on = s.on;
  s.open_helper();
  on.ticked = [&](person& who, const zlink::timer_tick& tick) -> zlink::task<void> {
    if (tick.delivery_index == 1) {
      who.context().join_spot("r").timeout(1min).defer();
      throw std::runtime_error{"a fault of the tick"};
    }
    if (tick.delivery_index == 2) {
      who.context().join_spot("r", ticket{"from a tick"}).timeout(1min).defer();
      auto asking = s.ask_helper(who);
      co_await std::move(asking);
      on.trace.push_back("tick ends");
    }
    if (tick.delivery_index == 3)
      who.context().join_entry_spot().defer();
  };
  s.start_ticking();
  net.run_until([&] { return s.open.waiting() == 1; });
  net.run(tell_person(net.host(0), "ada", "behind"));
  net.advance(500ms);
  CHECK(on.count("gate") == 0); // neither for the first nor for the second
  CHECK(on.ends.empty());
  s.open.open();
  net.run_until([&] { return on.count("tick ada 4") == 1; });
  REQUIRE(on.ends.size() == 2);
  CHECK(on.ends[0].outcome == join_outcome::accepted);
  CHECK(on.ends[1].outcome == join_outcome::accepted);
  const auto position = [&](const std::string& what) {
    const auto found = std::ranges::find(on.trace, what);
    REQUIRE(found != on.trace.end());
    return found - on.trace.begin();
  };
  CHECK(position("tick ada 2 in hall") < position("tick ends"));
  CHECK(position("tick ends") < position("gate r ada from a tick"));
  CHECK(position("gate r ada from a tick") < position("handle ada behind in r"));
  CHECK(position("handle ada behind in r") < position("tick ada 3 in r"));
  CHECK(position("tick ada 3 in r") < position("tick ada 4 in hall"));
}

TEST_CASE(
  "X-142 X-137 J-134 an Actor ends: a tick that waits runs first, then its timers are gone, for successors too") {
  ticking_scene s;
  auto& net = s.net;
  auto& on = s.on;
  s.open_helper();
  s.then = [&](zlink::actor& who, const std::string& word) {
    return word == "hold" ? s.ask_helper(who) : zlink::task<void>::done();
  };
  s.start_ticking();
  auto held = talk(net.host(0), "ada", "hold", 1min);
  net.run_until([&] { return s.open.waiting() == 1; });
  net.advance(250ms); // a tick is queued
  auto ending = net.host(0).actors().destroy(s.ada.actor);
  net.advance(1s); // and no other comes
  CHECK(on.count("tick") == 0);
  s.open.open();
  CHECK(net.run(std::move(ending)));
  net.run(std::move(held));
  CHECK(on.count("tick ada") == 1);
  CHECK(on.trace.back() == "tick ada 1 in hall");
  CHECK(on.alive == 0);
  net.run(make_person(net.host(0), "ada"));
  net.advance(5s);
  CHECK(on.count("tick ada") == 1);
  CHECK(net.run(talk(net.host(0), "ada", "x")).word == "x");
}

TEST_CASE("X-142 an Actor that ends itself in a tick adds no timer any more, and none of its own comes again") {
  ticking_scene s;
  auto& net = s.net;
  auto& on = s.on;
  std::string late;
  on.ticked = [&](person& who, const zlink::timer_tick&) -> zlink::task<void> {
    auto ending = who.context().host().actors().destroy(s.ada.actor);
    co_await std::move(ending);
    auto adding = zlink::as_result(add_other_tick(who, "late", 10ms));
    const auto added = co_await std::move(adding);
    late = added.has_value() ? "fine" : to_string(added.error().kind());
  };
  s.start_ticking();
  net.advance(5s);
  CHECK(late == "unavailable");
  CHECK(on.count("tick") == 1);
  CHECK(on.count("other tick") == 0);
  CHECK(on.alive == 0);
}

TEST_CASE("X-142 X-141 C-129 a host that shuts down ends the timers of its Actors, wherever those are") {
  ticking_scene s;
  auto& net = s.net;
  auto& on = s.on;
  net.run(make_person(net.host(0), "bob"));
  move_person(net, on, "bob", "r");
  s.start_ticking(10ms, "bob");
  s.start_ticking(10ms, "ada");
  net.advance(100ms);
  CHECK(on.count("tick ada") == 10);
  CHECK(on.count("tick bob") >= 10);
  CHECK(net.run(net.host(0).shutdown()).outcome == zlink::shutdown_outcome::stopped);
  CHECK(on.alive == 0);
  const auto ticks = on.count("tick");
  net.advance(1s);
  CHECK(on.count("tick") == ticks);
  const auto last = std::ranges::find_if(on.trace, [](const auto& one) { return one.starts_with("closing r"); });
  CHECK(std::none_of(last, on.trace.end(), [](const auto& one) { return one.starts_with("tick bob"); }));
}

TEST_CASE("X-142 X-136 without the lease an Actor's timer stands still, and there is no burst when the lease is back") {
  stage on;
  mesh net{{.hosts = 1, .adjust = [](std::size_t, zlink::host_options& options) {
              options.lease_renew_interval = 1s;
              options.lease_renew_timeout = 500ms;
            }}};
  net.start(serve_all(on));
  on.configured = [](person& who) { static_cast<void>(add_tick(who, "t", 100ms)); };
  net.run(make_person(net.host(0), "ada"));
  net.advance(1s);
  CHECK(on.count("tick") >= 9);
  net.cut_store(0);
  net.run_until([&] { return !net.host(0).status().accepting_work; });
  net.run_until_idle();
  const auto at_the_end = on.count("tick");
  net.advance(1s);
  CHECK(on.count("tick") == at_the_end);
  net.heal();
  net.run_until([&] { return net.host(0).status().accepting_work; });
  CHECK(on.count("tick") <= at_the_end + 1);
  net.advance(1s);
  CHECK(on.count("tick") <= at_the_end + 11);
  CHECK(on.count("tick") >= at_the_end + 9);
}

TEST_CASE(
  "X-142 X-128 J-86 ticks among joins and messages in any order: one at a time, in order, under one membership") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    ticking_scene s{{.per_actor = seed % 2 == 0}, seed, 2};
    const std::size_t other = 1 - s.here;
    auto& net = s.net;
    auto& on = s.on;
    INFO("seed ", seed);
    open_room(net, "s");
    occupancy inside;
    std::uint64_t last = 0;
    std::uint64_t scheduled = 0;
    int strays = 0;
    const auto work = [&](zlink::actor& who) -> zlink::task<void> {
      inside.enter();
      const auto place = who.context().spot_id();
      for (int i = 0; i < 5; ++i) {
        auto asking = who.context().outbound().request_to_actor("bob", say{"x"}).timeout(1min).submit<said>();
        co_await std::move(asking);
      }
      strays += who.context().spot_id() == place ? 0 : 1;
      inside.leave();
    };
    net.host(other).mesh("m").placement_weight(100);
    net.host(s.here).mesh("m").placement_weight(0);
    net.run_until_idle();
    net.run(make_person(net.host(0), "bob"));
    s.then = [&](zlink::actor& who, const std::string& word) {
      return word == "work" ? work(who) : zlink::task<void>::done();
    };
    on.ticked = [&](person& who, const zlink::timer_tick& tick) -> zlink::task<void> {
      CHECK(tick.delivery_index == ++last);
      CHECK(tick.scheduled_index > scheduled);
      scheduled = tick.scheduled_index;
      return work(who);
    };
    s.start_ticking(2ms);
    std::uint64_t dice = seed;
    std::vector<zlink::task<said>> asked;
    std::size_t joins = 0;
    for (int i = 0; i < 10; ++i) {
      dice = dice * 6364136223846793005ULL + 1442695040888963407ULL;
      const std::string to = (dice >> 40) % 3 == 0 ? "" : (dice >> 40) % 3 == 1 ? "r" : "s";
      net.run(send_off(net.host((dice >> 50) % 2), "ada", to));
      ++joins;
      asked.push_back(talk(net.host((dice >> 52) % 2), "ada", "work", 1min));
      net.advance(std::chrono::milliseconds{(dice >> 55) % 6});
    }
    for (auto& one : asked)
      net.run(std::move(one));
    net.run_until([&] { return on.ends.size() == joins; });
    const auto so_far = last;
    net.advance(100ms);
    CHECK(last > so_far); // it goes on ticking, wherever it is now
    CHECK(inside.most == 1);
    CHECK(strays == 0);
    s.handle.cancel();
    net.run_until_idle();
    on.ticked = nullptr;
  }
}

} // namespace
} // namespace membership_test
