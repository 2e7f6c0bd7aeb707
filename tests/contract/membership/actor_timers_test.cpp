// Timers of Actors: whose turns their ticks take, and where they are registered (02 section 15; X-142).
#include "tests/contract/membership/ticking_people.hpp"

namespace membership_test {
namespace {

using words = std::vector<std::string>;

TEST_CASE("X-142 X-128 a tick and a handler of one Actor are never inside together, whatever they wait for") {
  struct setting {
    std::string room;
    bool per_actor;
  };
  for (const auto& at : {setting{"", false}, setting{"r", false}, setting{"r", true}}) {
    CAPTURE(at.room);
    CAPTURE(at.per_actor);
    ticking_scene s{{.per_actor = at.per_actor}};
    auto& net = s.net;
    auto& on = s.on;
    s.open_helper();
    move_person(net, on, "ada", at.room);
    occupancy inside;
    s.then = [&](zlink::actor& who, const std::string& word) -> zlink::task<void> {
      inside.enter();
      if (word == "hold") {
        auto asking = s.ask_helper(who);
        co_await std::move(asking);
      }
      inside.leave();
    };
    s.start_ticking();
    net.advance(250ms);
    CHECK(on.count("tick ada") == 2);
    auto held = talk(net.host(0), "ada", "hold", 1min);
    net.run_until([&] { return s.open.waiting() == 1; });
    net.advance(550ms);
    CHECK(on.count("tick ada") == 2); // one is due, and waits
    s.open.open();
    net.run(std::move(held));
    net.run_until_idle();
    CHECK(on.count("tick ada") == 3);

    s.open = {};
    on.ticked = [&](person& who, const zlink::timer_tick&) -> zlink::task<void> {
      inside.enter();
      auto asking = s.ask_helper(who);
      co_await std::move(asking);
      inside.leave();
    };
    net.run_until([&] { return s.open.waiting() == 1; });
    on.trace.clear();
    auto behind = talk(net.host(0), "ada", "behind", 1min);
    net.advance(1s);
    CHECK(on.trace.empty()); // neither the message nor another tick
    on.ticked = nullptr;
    s.open.open();
    CHECK(net.run(std::move(behind)).word == "behind");
    CHECK(on.trace.front() == "handle ada behind in " + (at.room.empty() ? "hall" : at.room));
    CHECK(inside.most == 1);
  }
}

TEST_CASE("X-142 X-45 X-46 a tick that yields gives its room's gate away and keeps the Actor") {
  ticking_scene s;
  auto& net = s.net;
  auto& on = s.on;
  s.open_helper();
  net.run(make_person(net.host(0), "bob"));
  for (const auto* id : {"ada", "bob"})
    move_person(net, on, id, "r");
  on.ticked = [&](person& who, const zlink::timer_tick&) -> zlink::task<void> {
    auto asking = s.ask_helper(who, true);
    co_await std::move(asking);
    on.trace.push_back("tick resumes");
  };
  s.start_ticking();
  net.run_until([&] { return s.open.waiting() == 1; });
  auto own = talk(net.host(0), "ada", "own", 1min);
  CHECK(net.run(talk(net.host(0), "bob", "beside")).word == "beside");
  net.advance(1s);
  CHECK(on.trace == words{"tick ada 1 in r", "handle bob beside in r"});
  s.open.open();
  net.run(std::move(own));
  CHECK(on.trace[2] == "tick resumes");
  CHECK(on.trace[3].starts_with("handle ada own")); // accepted before the next period had begun
}

TEST_CASE("X-142 X-10 X-11 X-12 a tick takes its Actor's gate: the room's if SpotWide, else one of its own") {
  struct setting {
    std::string room;
    bool per_actor;
    bool beside; ///< the tick runs beside others
  };
  for (const auto& at : {setting{"", false, true}, setting{"r", false, false}, setting{"r", true, true}}) {
    CAPTURE(at.room);
    CAPTURE(at.per_actor);
    ticking_scene s{{.per_actor = at.per_actor}};
    auto& net = s.net;
    auto& on = s.on;
    s.open_helper();
    net.run(make_person(net.host(0), "bob"));
    for (const auto* id : {"ada", "bob"})
      move_person(net, on, id, at.room);
    s.then = [&](zlink::actor& who, const std::string&) { return s.ask_helper(who); };
    s.start_ticking();
    auto held = talk(net.host(0), "bob", "hold", 1min); // a handler of another Actor
    net.run_until([&] { return s.open.waiting() == 1; });
    net.advance(350ms);
    CHECK(on.count("tick ada") == (at.beside ? 3 : 0));
    s.open.open();
    net.run(std::move(held));
    net.run_until_idle();
    CHECK(on.count("tick ada") == (at.beside ? 3 : 1));
    if (at.room.empty())
      continue;
    s.open = {};
    on.trace.clear();
    // One of the room itself.
    auto busy = net.host(0).spots().request_to_spot("r", say{"wait"}).timeout(1min).submit<said>();
    net.run_until([&] { return s.open.waiting() == 1; });
    net.advance(350ms);
    CHECK(on.count("tick ada") >= (at.beside ? 3 : 0));
    CHECK(on.count("tick ada") <= (at.beside ? 4 : 0));
    s.open.open();
    net.run(std::move(busy));
    net.run_until_idle();
    CHECK(on.count("tick ada") >= 1);
  }
}

TEST_CASE("X-142 X-125 X-126 X-127 names, periods, replacing, cancelling as those of Spots; the names are one's own") {
  ticking_scene s;
  auto& net = s.net;
  auto& on = s.on;
  net.run(make_person(net.host(0), "bob"));
  s.start_ticking(100ms, "bob");
  s.start_ticking(100ms, "ada");
  net.advance(250ms);
  CHECK(on.count("tick ada") == 2);
  CHECK(on.count("tick bob") == 2);

  barrier hold;
  int refused = 0;
  bool cancelled = false;
  s.then = [&](zlink::actor& who, const std::string& word) -> zlink::task<void> {
    if (word == "misuse") {
      const std::vector<std::pair<std::string, zlink::time_span>> bad{{"", 1s}, {"n", 0ms}, {"n", -1s}, {"n", 1500us}};
      for (const auto& [name, every] : bad) {
        try {
          auto adding = add_tick(who, name, every);
        } catch (const std::invalid_argument&) {
          ++refused;
        }
      }
      std::stop_source stop;
      stop.request_stop();
      auto adding = zlink::as_result(add_tick(who, "n", 1ms, {}, stop.get_token()));
      const auto added = co_await std::move(adding);
      cancelled = added.is_cancelled();
    } else if (word == "replace") {
      auto waiting = hold.passed();
      co_await std::move(waiting); // meanwhile a tick is queued
      auto adding = add_other_tick(who, "t", 100ms);
      s.handle = co_await std::move(adding);
    }
  };
  net.run(talk(net.host(0), "ada", "misuse"));
  CHECK(refused == 4);
  CHECK(cancelled);
  on.trace.clear();
  auto replacing = talk(net.host(0), "ada", "replace", 1min);
  net.run_until([&] { return hold.waiting() == 1; });
  net.advance(220ms);
  hold.open();
  net.run(std::move(replacing));
  net.advance(350ms);
  CHECK(on.count("tick ada") == 0); // the queued one neither
  CHECK(on.count("other tick ada") == 3);
  CHECK(on.count("other tick ada 1 in hall") == 1);
  CHECK(on.count("tick bob") >= 5); // bob's "t" is another timer
  s.handle.cancel();
  s.handle.cancel();
  on.trace.clear();
  net.advance(2s);
  CHECK(on.count("other tick ada") == 0);
  CHECK(on.count("tick bob") == 20);
}

TEST_CASE("X-142 an Actor adds timers in turns of its own, from its configure() on, and nobody else does") {
  stage on;
  mesh net{1};
  net.start(serve_all(on));
  zlink::actor* ada = nullptr;
  std::vector<std::string> kinds;
  const auto kind_of = [](const auto& end) {
    return end.has_value() ? std::string{"fine"} : to_string(end.error().kind());
  };
  on.configured = [&](person& who) {
    if (who.context().actor_id() == "ada")
      static_cast<void>(add_tick(who, "from configure", 100ms));
  };
  barrier open;
  on.hold("create ada", open);
  auto making = make_person(net.host(0), "ada", {}, 1min);
  net.run_until([&] { return open.waiting() == 1; });
  net.advance(350ms);
  CHECK(on.count("tick ada") == 0); // it is not Ready
  open.open();
  net.run(std::move(making));
  net.advance(550ms);
  CHECK(on.count("tick ada") >= 5);
  CHECK(on.count("tick ada 1 in hall") == 1);

  net.run(make_person(net.host(0), "bob"));
  open_room(net, "r");
  std::string after_wait;
  on.handler = [&](zlink::actor& who, const std::string& word) -> zlink::task<void> {
    if (word == "show")
      ada = &who;
    if (word == "of another") { // bob's turn
      auto adding = zlink::as_result(add_tick(*ada, "n", 10ms));
      const auto added = co_await std::move(adding);
      kinds.push_back(kind_of(added));
    }
    if (word == "after a wait") {
      auto asking = who.context().outbound().request_to_spot("r", say{"list"}).submit<said>();
      co_await std::move(asking);
      auto adding = zlink::as_result(add_other_tick(who, "after a wait", 100ms));
      const auto added = co_await std::move(adding);
      after_wait = kind_of(added);
    }
  };
  net.run(talk(net.host(0), "ada", "show"));
  net.run(talk(net.host(0), "bob", "of another"));
  kinds.push_back(kind_of(net.run(zlink::as_result(add_tick(*ada, "n", 10ms))))); // no turn at all
  CHECK(kinds == words{"invalid_operation", "invalid_operation"});
  on.trace.clear();
  net.advance(1s);
  CHECK(on.count("tick ada") == 10); // the one of configure(), and no other
  net.run(talk(net.host(0), "ada", "after a wait"));
  CHECK(after_wait == "fine");
  net.advance(1s);
  CHECK(on.count("other tick ada") == 10);
  on.at = [&](const std::string& step) { // a callback of the Actor
    if (step.starts_with("completed"))
      static_cast<void>(add_other_tick(*ada, "from on_join_completed", 1s));
  };
  move_person(net, on, "ada", "r");
  on.trace.clear();
  net.advance(2s);
  CHECK(on.count("other tick ada") == 22);
}

TEST_CASE("X-142 a creation that is declined or fails takes the timers of its configure() with it") {
  for (const bool throws : {false, true}) {
    stage on;
    mesh net{1};
    net.start(serve_all(on));
    on.configured = [&](person& who) {
      static_cast<void>(add_tick(who, "t", 10ms));
      if (throws)
        throw std::runtime_error{"a fault of configure"};
    };
    on.birth = [](const std::string&) { return zlink::reject(); };
    static_cast<void>(net.run(zlink::as_result(make_person(net.host(0), "ada"))));
    net.advance(1s);
    CHECK(on.count("tick") == 0);
    CHECK(on.alive == 0);
    on.configured = nullptr;
    on.birth = nullptr;
    net.run(make_person(net.host(0), "ada"));
    net.advance(1s);
    CHECK(on.count("tick") == 0);
  }
}

TEST_CASE("X-142 X-135 a tick that throws is recorded and followed by others, unless it was to be the last") {
  for (const bool stops : {false, true}) {
    CAPTURE(stops);
    stage on;
    std::vector<std::string> reported;
    mesh net{{.hosts = 1, .adjust = [&](std::size_t, zlink::host_options& options) {
                options.on_dispatch_error = [&](const zlink::dispatch_error& e) { reported.push_back(to_string(e)); };
              }}};
    net.start(serve_all(on));
    on.ticked = [](person&, const zlink::timer_tick&) -> zlink::task<void> {
      throw std::runtime_error{"a fault of a tick"};
    };
    on.configured = [stops](person& who) {
      zlink::timer_options options;
      options.stop_on_unhandled_exception = stops;
      static_cast<void>(add_tick(who, "t", 100ms, options));
    };
    net.run(make_person(net.host(0), "ada"));
    net.advance(450ms);
    CHECK(on.count("tick ada") == (stops ? 1 : 4));
    REQUIRE(reported.size() == (stops ? 1 : 4));
    for (const std::string part : {"timer \"t\", callback 1", "ada", "a fault of a tick"})
      CHECK(reported[0].find(part) != std::string::npos);
    CHECK(net.run(talk(net.host(0), "ada", "goes on")).word == "goes on");
  }
}

} // namespace
} // namespace membership_test
