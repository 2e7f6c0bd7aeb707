// Lifecycle steps beside messages: they have their own lane, their callbacks are turns, and a seal lets nothing through
// (02 sections 1, 4, 7, 10 and 17).
#include "tests/contract/execution/stage.hpp"
#include "tests/sim/checkers.hpp"
#include "zlink/host/host_runtime.hpp"

namespace lifecycle_test {

using namespace zlink::test;
using zlink::error_kind;
using zlink::testing::mesh;
using zlink::testing::mesh_options;

template <class Registry>
concept takes_actor_handlers = requires(Registry r) { r.template add_actor_handler<&wide_spot::spot>(); };
template <class Registry>
concept subscribes = requires(Registry r) { r.template add_subscription<&wide_spot::spot>("topic"); };
template <class Context>
concept has_members = requires(Context c) { c.members(); };

TEST_CASE("X-4 an Instance Spot takes packets, ticks and its own lifecycle steps, in one queue, and nothing else") {
  static_assert(!takes_actor_handlers<zlink::instance_spot_handler_registry>);
  static_assert(!subscribes<zlink::instance_spot_handler_registry>);
  static_assert(!has_members<zlink::instance_spot_context>);
  stage scene;
  scene.acts["hold"] = hold_at("d");
  scene.acts["close"] = [](player& p) -> zlink::task<int> {
    co_await p.close();
    co_return 0;
  };
  scene.on_initialize = [](player& p) -> zlink::task<void> {
    if (p.id() == "x")
      co_await p.add_timer("t", 100ms);
  };
  mesh net{1};
  net.start(serve(scene));
  (void)net.host(0).spots().send_to_spot("x", tell{"hold"}).instance_spot("wide").submit();
  net.advance(150ms);
  (void)tell_spot(net.host(0), "x", "packet");
  (void)tell_spot(net.host(0), "x", "close");
  net.run_until_idle();
  const auto object = net.host(0).runtime().objects.find("x");
  CHECK(object->application_word().records() == 4);
  scene.open("d");
  net.run_until([&] { return scene.has("closing x"); }); // by a step that is none of them
  CHECK(scene.in_order({"hold ends", "tick", "packet", "close ends", "closing x"}));
  CHECK(object->application_word().records() == 0);
}

TEST_CASE("X-5 lifecycle steps need no room in the application lane") {
  stage scene;
  scene.acts["yield"] = yield_at("y");
  mesh_options options;
  options.adjust = [](std::size_t, zlink::host_options& o) { o.application_lane_records = 1; };
  mesh net{options};
  net.start(serve(scene));
  prepare(net, "x", "room");
  (void)tell_spot(net.host(0), "x", "yield"); // its place is taken until it has ended, its gate is free
  net.run_until_idle();
  const auto object = net.host(0).runtime().objects.find("x");
  REQUIRE(object->application_word().records() == 1);
  auto waits = tell_spot(net.host(0), "x", "finds no room");
  net.run_until_idle();
  CHECK_FALSE(waits.ready());
  const auto spot = net.run(net.host(0).spots().find("x"));
  REQUIRE(spot.has_value());
  auto closing = net.host(0).spots().close(*spot);
  net.run_until_idle();
  CHECK(failure_of(net.run(zlink::as_result(std::move(waits)))) == error_kind::not_found); // the close got as far as its seal
  CHECK(object->application_word().records() == 1);
  scene.open("y");
  CHECK(net.run(std::move(closing)));
  CHECK(scene.in_order({"yield ends", "closing x"}));
  CHECK_FALSE(scene.has("finds no room"));
}

TEST_CASE("X-42 lifecycle callbacks submit and yield, and are complete when their tasks are") {
  for (const std::string type : {"wide", "room"})
    for (const bool yields : {false, true}) {
      CAPTURE(type);
      CAPTURE(yields);
      stage scene;
      const auto wait_at = [yields](player& p, std::string door) -> zlink::task<void> {
        auto call = knock(p, std::move(door));
        auto asked = yields ? call.yield<answer>() : call.submit<answer>();
        co_await std::move(asked);
      };
      scene.on_initialize = [&](player& p) -> zlink::task<void> {
        if (p.id() != "x")
          co_return;
        co_await wait_at(p, "initialize");
        scene.note("initialized");
      };
      scene.on_closing = [&](player& p, const zlink::spot_closing_context&) -> zlink::task<void> {
        if (p.id() != "x")
          co_return;
        co_await wait_at(p, "closing");
        scene.note("closed");
      };
      mesh net{1};
      net.start(serve(scene));
      const auto spots = net.host(0).spots();
      std::optional<zlink::task<answer>> woken;
      std::optional<zlink::task<zlink::spot_create_result>> created;
      if (type == "wide")
        woken.emplace(ask_spot(net.host(0), "x", "first"));
      else
        created.emplace(spots.get_or_create("x", type).submit());
      net.run_until_idle();
      REQUIRE(scene.knocked("initialize"));
      const bool complete = woken ? woken->ready() : created->ready();
      CHECK_FALSE(complete);
      CHECK_FALSE(scene.has("first"));
      scene.open("initialize");
      if (woken)
        net.run(std::move(*woken));
      else
        net.run(std::move(*created));
      CHECK(scene.has("initialized"));
      scene.acts["close"] = [](player& p) -> zlink::task<int> {
        co_await p.close();
        co_return 0;
      };
      net.run(ask_spot(net.host(0), "x", "close", ""));
      net.run_until([&] { return scene.knocked("closing"); });
      net.run_until_idle();
      CHECK(net.host(0).runtime().objects.find("x")); // it is not complete
      scene.open("closing");
      net.run_until([&] { return !net.host(0).runtime().objects.find("x"); });
      CHECK(scene.has("closed"));
    }
}

TEST_CASE("X-89 X-91 closes race floods: no record reaches a former incarnation, none runs twice, each caller is told") {
  std::size_t incarnations = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed ", seed);
    stage scene;
    single_owner owners;
    at_most_once runs;
    single_end ends;
    const auto name_of = [](player& p) { return std::to_string(p.spot().object_generation()); };
    scene.acts["close"] = [&](player& p) -> zlink::task<int> {
      owners.ran("x", name_of(p));
      co_await p.close();
      co_return 0;
    };
    scene.on_closing = [&](player& p, const zlink::spot_closing_context&) -> zlink::task<void> {
      if (p.id() == "x")
        owners.ran("x", name_of(p));
      co_return;
    };
    for (int i = 0; i < 40; ++i) {
      const auto what = "message " + std::to_string(i);
      scene.acts[what] = [&, what](player& p) -> zlink::task<int> {
        owners.ran("x", name_of(p));
        runs.ran(what);
        co_return 0;
      };
    }
    mesh net{{.hosts = 2, .seed = seed, .max_link_delay = 2ms}};
    net.start(serve(scene));
    prepare(net, "x", "wide");
    for (int i = 0; i < 40; ++i) {
      const auto what = "message " + std::to_string(i);
      ends.began(what);
      ask_spot(net.host(static_cast<std::size_t>(i % 2)), "x", what).then([&ends, what](zlink::result<answer>) {
        ends.ended(what);
      });
      if (i % 8 == 3)
        (void)tell_spot(net.host(0), "x", "close");
      if (i % 4 == 1)
        net.advance(1ms);
    }
    net.advance(90s);
    CHECK(ends.open().empty());
    for (const checker* one : {static_cast<const checker*>(&owners), static_cast<const checker*>(&runs),
                               static_cast<const checker*>(&ends)}) {
      CHECK(one->broken().empty());
      CHECK(one->fed() != 0);
    }
    CHECK(runs.different() > 0);
    incarnations += owners.owners("x").size();
    net.finish(); // finds records left in any queue
  }
  CHECK(incarnations > 200); // closes did happen in between
}

template <class Builder>
concept chooses_lifetime = requires(Builder& b) { b.singleton(); } || requires(Builder& b) { b.transient(); }
                           || requires(Builder& b) { b.scoped(); } || requires(Builder& b) { b.handler_lifetime(0); };

TEST_CASE("X-157 no registration says how long handlers live, and a factory that shares does not change it") {
  static_assert(!chooses_lifetime<zlink::spot_factory_builder<wide_spot, zlink::instance_spot_context>>);
  static_assert(!chooses_lifetime<zlink::spot_factory_builder<room_spot, zlink::spot_context>>);
  stage scene;
  std::vector<const player*> seen;
  scene.acts["see"] = [&seen](player& p) -> zlink::task<int> {
    seen.push_back(&p);
    co_return 0;
  };
  mesh net{1};
  net.start(serve(scene));
  const auto before = scene.made;
  for (const auto* id : {"x", "y"})
    for (int i = 0; i < 3; ++i)
      net.run(ask_spot(net.host(0), id, "see"));
  CHECK(scene.made == before + 2); // the same dependencies, an instance for each activation
  REQUIRE(seen.size() == 6);
  CHECK(seen[0] == seen[2]);
  CHECK(seen[3] == seen[5]);
  CHECK(seen[0] != seen[3]);
}

} // namespace lifecycle_test
