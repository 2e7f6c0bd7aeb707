// Lanes, their limits, and what a caller sees when there is no room (02 sections 7 to 11).
#include "tests/contract/execution/stage.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/objects/build_step.hpp"

namespace room_test {

using namespace zlink::test;
using zlink::error_kind;
using zlink::testing::mesh;
using zlink::testing::mesh_options;

auto object_at(mesh& net, std::size_t host, const std::string& id) { return net.host(host).runtime().objects.find(id); }

/// A step of the layer, as leaves, joins and closes are.
void submit_step(mesh& net, const std::string& id, stage& scene, std::string what) {
  object_at(net, 0, id)->submit_step(std::make_unique<zlink::detail::turn_step>(
    [&scene, what = std::move(what)](zlink::detail::execution_object&) { scene.note(what); }));
}

/// Holds the gate of `id` until "d" opens.
void hold(mesh& net, stage& scene, const std::string& id) {
  scene.acts["hold"] = hold_at("d");
  (void)tell_spot(net.host(net.owner_of(id)), id, "hold");
  net.run_until_idle();
  REQUIRE(scene.knocked("d"));
}

TEST_CASE("X-64 X-65 two lanes, each in order, and the lifecycle lane first") {
  stage scene;
  mesh net{1};
  net.start(serve(scene));
  prepare(net, "x", "wide");
  hold(net, scene, "x");
  for (int i = 0; i < 10; ++i)
    (void)tell_spot(net.host(0), "x", std::to_string(i));
  submit_step(net, "x", scene, "leave");
  submit_step(net, "x", scene, "second step");
  scene.open("d");
  net.run_until_idle();
  CHECK(scene.in_order({"hold ends", "leave", "second step", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}));
}

TEST_CASE("X-66 X-67 eight lifecycle turns at most in a row while application work is ready") {
  stage scene;
  mesh net{1};
  net.start(serve(scene));
  prepare(net, "x", "wide");
  hold(net, scene, "x");
  for (int i = 0; i < 100; ++i)
    submit_step(net, "x", scene, "step");
  for (int i = 0; i < 5; ++i)
    (void)tell_spot(net.host(0), "x", "payload");
  scene.open("d");
  net.run_until_idle();
  const auto ended = std::find(scene.log.begin(), scene.log.end(), "hold ends") + 1;
  REQUIRE(scene.log.end() - ended == 105);
  for (int payload = 0; payload < 5; ++payload) {
    const auto at = ended + payload * 9;
    CHECK(std::count(at, at + 8, "step") == 8);
    CHECK(at[8] == "payload");
  }
  CHECK(std::count(ended + 45, scene.log.end(), "step") == 60);
}

TEST_CASE("X-71 an endless stream of lifecycle steps does not keep a payload from running") {
  stage scene;
  mesh net{1};
  net.start(serve(scene));
  prepare(net, "x", "wide");
  bool over = false;
  int steps = 0;
  std::function<void()> next = [&] {
    object_at(net, 0, "x")->submit_step(
      std::make_unique<zlink::detail::turn_step>([&](zlink::detail::execution_object&) {
        if (++steps < 100'000 && !over)
          next();
      }));
  };
  scene.acts["payload"] = [&over](player&) -> zlink::task<int> {
    over = true;
    co_return 0;
  };
  for (int i = 0; i < 20; ++i)
    next();
  net.run(ask_spot(net.host(0), "x", "payload"));
  CHECK(over);
  CHECK(steps < 1000);
  net.finish(); // while `next` is there
}

TEST_CASE("X-78 X-81 X-82 X-91 a lane takes 1,024 records, the running one among them; the next waits unseen") {
  stage scene;
  mesh net{1};
  net.start(serve(scene));
  prepare(net, "x", "wide");
  hold(net, scene, "x");
  std::vector<zlink::task<void>> sent;
  for (int i = 0; i < 1023; ++i)
    sent.push_back(tell_spot(net.host(0), "x", "one of many"));
  net.run_until_idle();
  CHECK(std::all_of(sent.begin(), sent.end(), [](const auto& one) { return one.ready(); }));
  const auto& word = object_at(net, 0, "x")->application_word();
  CHECK(word.records() == 1024);
  const auto bytes = word.bytes();
  CHECK(bytes >= 1024 * 256);
  auto late = tell_spot(net.host(0), "x", "one too many");
  net.run_until_idle();
  CHECK_FALSE(late.ready());
  CHECK(word.records() == 1024);
  CHECK(word.bytes() == bytes);
  scene.open("d");
  net.run(std::move(late));
  net.run_until_idle();
  CHECK(scene.count("one of many") == 1023);
  CHECK(scene.log.back() == "one too many");
  CHECK(word.records() == 0);
  CHECK(word.bytes() == 0);
}

TEST_CASE("a lane is full by bytes as well, and an empty one takes a record of any size") { // X-78, its second axis
  for (const std::uint64_t limit : {1ULL, 1200ULL}) {
    stage scene;
    mesh_options options;
    options.adjust = [limit](std::size_t, zlink::host_options& o) { o.application_lane_bytes = limit; };
    mesh net{options};
    net.start(serve(scene));
    prepare(net, "x", "wide");
    hold(net, scene, "x"); // larger than the whole lane when that is one byte
    std::vector<zlink::task<void>> sent;
    for (int i = 0; i < 8; ++i)
      sent.push_back(tell_spot(net.host(0), "x", "more"));
    net.run_until_idle();
    const auto& word = object_at(net, 0, "x")->application_word();
    CHECK((word.records() == 1 || word.bytes() <= limit));
    CHECK(word.records() == (limit == 1 ? 1 : 1200 / (word.bytes() / word.records())));
    scene.open("d");
    for (auto& one : sent)
      net.run(std::move(one));
    net.run_until_idle();
    CHECK(scene.count("more") == 8);
  }
}

TEST_CASE("X-70 a full application lane does not delay lifecycle steps") {
  stage scene;
  mesh net{1};
  net.start(serve(scene));
  prepare(net, "x", "wide");
  scene.acts["yield"] = yield_at("y");
  (void)tell_spot(net.host(0), "x", "yield");
  net.run_until_idle();
  hold(net, scene, "x");
  for (int i = 0; i < 1100; ++i)
    (void)tell_spot(net.host(0), "x", "held");
  net.run_until_idle();
  for (int i = 0; i < 128; ++i)
    submit_step(net, "x", scene, "step");
  CHECK(object_at(net, 0, "x")->application_word().records() == 1024);
  scene.open("d");
  net.run_until_idle();
  const auto first = std::find(scene.log.begin(), scene.log.end(), "step");
  CHECK(std::find(scene.log.begin(), first, "held") == first); // accepted later, run earlier
  CHECK(scene.count("step") == 128);
  scene.open("y");
  net.run_until_idle();
}

TEST_CASE("X-94 X-96 what finds no room here waits until its own deadline, and is never run after that") {
  stage scene;
  mesh net{with_lanes(2)};
  net.start(serve(scene));
  prepare(net, "x", "wide");
  hold(net, scene, "x");
  net.run(tell_spot(net.host(0), "x", "fills it"));
  const auto began = net.elapsed();
  auto send = zlink::as_result(tell_spot(net.host(0), "x", "late send"));
  auto sent = net.run(std::move(send));
  CHECK(failure_of(sent) == error_kind::deadline_exceeded);
  CHECK(net.elapsed() - began >= 1s); // the send timeout
  CHECK(net.elapsed() - began < 1100ms);
  const auto asked = net.run(zlink::as_result(ask_spot(net.host(0), "x", "late request", "", 3s)));
  CHECK(failure_of(asked) == error_kind::deadline_exceeded);
  CHECK(net.elapsed() - began >= 4s); // the request's deadline, not the send timeout
  CHECK(net.elapsed() - began < 4200ms);
  auto in_time = ask_spot(net.host(0), "x", "in time", "", 3s);
  net.run_until_idle();
  scene.open("d");
  net.run(std::move(in_time));
  net.advance(10s);
  CHECK(scene.count("in time") == 1);
  CHECK_FALSE(scene.has("late send"));
  CHECK_FALSE(scene.has("late request"));
}

TEST_CASE("X-86 X-94 a received record is never refused for lack of room, keeps its place, and delays no other Spot") {
  stage scene;
  auto options = with_lanes(2, 2);
  mesh net{options};
  net.start(serve(scene));
  prepare(net, "x", "wide");
  const auto owner = net.owner_of("x");
  const auto stranger = 1 - owner;
  hold(net, scene, "x");
  for (int i = 0; i < 50; ++i)
    net.run(tell_spot(net.host(stranger), "x", "far " + std::to_string(i))); // done at the origin
  auto asked = zlink::as_result(ask_spot(net.host(stranger), "x", "far request", "", 2s));
  net.run(ask_spot(net.host(stranger), "other", "answers"));
  net.run_until_idle();
  CHECK(object_at(net, owner, "x")->application_word().records() == 52); // all counted, with the running one
  CHECK(failure_of(net.run(std::move(asked))) == error_kind::deadline_exceeded);
  scene.open("d");
  net.run_until_idle();
  std::vector<std::string> ran;
  for (const auto& what : scene.log)
    if (what.starts_with("far ") && what != "far request")
      ran.push_back(what);
  REQUIRE(ran.size() == 50);
  for (int i = 0; i < 50; ++i)
    CHECK(ran[static_cast<std::size_t>(i)] == "far " + std::to_string(i));
  CHECK(object_at(net, owner, "x")->application_word().records() == 0);
}

TEST_CASE("X-97 a hundred calls that wait for room keep nobody else from working") {
  stage scene;
  mesh net{with_lanes(2)};
  scene.acts["wait by submit"] = [](player& p) -> zlink::task<int> {
    auto send = p.spot().outbound().send_to_spot("x", tell{"from a turn"});
    [[maybe_unused]] const auto accepted = co_await zlink::as_result(send.submit());
    co_return 0;
  };
  scene.acts["wait by yield"] = [](player& p) -> zlink::task<int> {
    auto call = p.spot().outbound().request_to_spot("x", ask{"asked"});
    co_await call.yield<answer>();
    co_return 0;
  };
  net.start(serve(scene));
  for (const auto* id : {"x", "submits", "yields", "free"})
    prepare(net, id, "wide");
  hold(net, scene, "x");
  std::vector<zlink::task<void>> sent;
  for (int i = 0; i < 100; ++i)
    sent.push_back(tell_spot(net.host(0), "x", "waits"));
  (void)tell_spot(net.host(0), "submits", "wait by submit");
  (void)tell_spot(net.host(0), "yields", "wait by yield");
  net.run_until_idle();
  (void)tell_spot(net.host(0), "submits", "kept out");
  net.run(ask_spot(net.host(0), "yields", "let in"));
  net.run(ask_spot(net.host(0), "free", "works"));
  net.run_until_idle();
  CHECK_FALSE(scene.has("kept out"));
  scene.open("d");
  for (auto& one : sent)
    net.run(std::move(one));
  net.run_until_idle();
  CHECK(scene.count("waits") == 100);
  CHECK(scene.count("from a turn") == 1);
  CHECK(scene.has("kept out"));
}

// Its bound on encoded sends is a matter of links: inside a node nothing is encoded.
TEST_CASE("X-98 of 2,000 waiting sends each ends by admission or by its own deadline") {
  stage scene;
  mesh net{with_lanes(500)};
  net.start(serve(scene));
  prepare(net, "x", "wide");
  hold(net, scene, "x");
  std::size_t admitted = 0;
  std::size_t late = 0;
  for (int i = 0; i < 2000; ++i)
    tell_spot(net.host(0), "x", "sent").then([&](zlink::result<void> outcome) {
      if (outcome.has_value())
        ++admitted;
      else if (outcome.error().kind() == error_kind::deadline_exceeded)
        ++late;
    });
  net.advance(500ms);
  CHECK(admitted == 499);
  CHECK(late == 0);
  net.advance(600ms);
  CHECK(admitted == 499);
  CHECK(late == 1501);
  scene.open("d");
  net.run_until_idle();
  CHECK(scene.count("sent") == 499);
}

TEST_CASE("X-99 waiting on oneself ends by deadline and leaves nothing locked") {
  stage scene;
  mesh net{with_lanes(1)};
  scene.acts["fill self"] = [](player& p) -> zlink::task<int> {
    auto send = p.spot().outbound().send_to_spot(p.id(), tell{"to self"});
    const auto sent = co_await zlink::as_result(send.submit());
    co_return failure_of(sent) == error_kind::deadline_exceeded;
  };
  for (const std::string other : {"x", "y"})
    scene.acts["fill " + other] = [other](player& p) -> zlink::task<int> {
      auto send = p.spot().outbound().send_to_spot(other, tell{"crossed"});
      const auto sent = co_await zlink::as_result(send.submit());
      co_return !sent.has_value() && sent.error().kind() == error_kind::deadline_exceeded;
    };
  net.start(serve(scene));
  for (const auto* id : {"x", "y"})
    prepare(net, id, "wide");
  CHECK(net.run(ask_spot(net.host(0), "x", "fill self")).value == 1);
  auto one = ask_spot(net.host(0), "x", "fill y");
  auto two = ask_spot(net.host(0), "y", "fill x");
  CHECK(net.run(std::move(one)).value + net.run(std::move(two)).value >= 1); // who ends first makes room for the other
  net.run(ask_spot(net.host(0), "x", "probe"));
  net.run(ask_spot(net.host(0), "y", "probe"));
  CHECK_FALSE(scene.has("to self"));
}

TEST_CASE("X-100 calls beyond the in-flight bound wait for an entry, or for their deadline") {
  stage scene;
  mesh_options options;
  options.adjust = [](std::size_t, zlink::host_options& o) { o.max_operations = 4; };
  mesh net{options};
  net.start(serve(scene));
  prepare(net, "x", "wide");
  scene.acts["hold"] = hold_at("d");
  std::vector<zlink::task<answer>> held;
  held.push_back(ask_spot(net.host(0), "x", "hold"));
  net.run_until_idle(); // it and its knock: two entries
  for (int i = 0; i < 2; ++i)
    held.push_back(ask_spot(net.host(0), "x", "behind"));
  net.run_until_idle();
  CHECK(failure_of(net.run(zlink::as_result(ask_spot(net.host(0), "free", "too late", "wide", 500ms))))
        == error_kind::deadline_exceeded);
  auto waits = ask_spot(net.host(0), "x", "fifth");
  net.run_until_idle();
  CHECK(object_at(net, 0, "x")->application_word().records() == 3); // the fifth was not sent
  scene.open("d");
  for (auto& one : held)
    net.run(std::move(one));
  net.run(std::move(waits));
  CHECK(scene.count("fifth") == 1);
  CHECK_FALSE(scene.has("too late"));
}

} // namespace room_test
