// Host permits and what peers feel of them (02 section 12).
#include "tests/contract/execution/stage.hpp"

#include "zlink/host/host_runtime.hpp"

#include <functional>

namespace pressure_test {

using namespace zlink::test;
using zlink::error_kind;
using zlink::testing::mesh;
using zlink::testing::mesh_options;

/// Two hosts, of which each admits so many jobs that have not started.
mesh_options with_jobs(std::uint32_t jobs, std::uint64_t seed = 0, std::chrono::milliseconds link_delay = {}) {
  mesh_options options;
  options.hosts = 2;
  options.seed = seed;
  options.max_link_delay = link_delay;
  options.adjust = [jobs](std::size_t, zlink::host_options& o) { o.max_jobs = jobs; };
  return options;
}

std::size_t records_of(mesh& net, std::size_t at, const std::string& id) {
  const auto object = net.host(at).runtime().objects.find(id);
  return object ? object->application_word().records() : 0;
}

/// Two Spots on one host: "held" holds its gate, "free" does not.
struct scenery {
  mesh net;
  std::size_t owner = 0;
  std::size_t stranger = 1;
  std::string free; ///< on the same host as "held"
  std::string far;  ///< on the other one

  scenery(stage& scene, std::uint32_t jobs, std::uint64_t seed = 0, std::chrono::milliseconds link_delay = {})
    : net(with_jobs(jobs, seed, link_delay)) {
    scene.acts["hold"] = hold_at("d");
    net.start(serve(scene));
    net.run(ask_spot(net.host(0), "held", "prepared"));
    owner = net.owner_of("held");
    stranger = 1 - owner;
    // One more on each host, wherever placement puts it: of several ids some come here and some there.
    for (int i = 0; free.empty() || far.empty(); ++i) {
      const auto id = "spot " + std::to_string(i);
      net.run(ask_spot(net.host(0), id, "prepared"));
      (net.owner_of(id) == owner ? free : far) = id;
    }
    net.run(ask_spot(net.host(stranger), "held", "route known", ""));
    net.run(ask_spot(net.host(stranger), free, "route known", ""));
    (void)tell_spot(net.host(owner), "held", "hold"); // a local record takes no permit
    net.run_until_idle();
    REQUIRE(scene.knocked("d"));
    REQUIRE(permits() == 0);
  }
  std::uint32_t permits() { return net.host(owner).runtime().permits->in_use(); }
};

TEST_CASE("X-101 a received job takes a permit before it is claimed and returns it when its handler begins") {
  stage scene;
  scenery s{scene, 1};
  (void)tell_spot(s.net.host(s.stranger), "held", "first");
  s.net.run_until_idle();
  CHECK(s.permits() == 1);
  CHECK(records_of(s.net, s.owner, "held") == 2);
  (void)tell_spot(s.net.host(s.stranger), s.free, "second");
  s.net.run_until_idle();
  CHECK(s.permits() == 1);
  CHECK(records_of(s.net, s.owner, s.free) == 0); // not claimed
  CHECK_FALSE(scene.has("second"));
  scene.open("d");
  s.net.run_until_idle();
  CHECK(scene.in_order({"first", "second"}));
  CHECK(s.permits() == 0);
}

TEST_CASE("a handler that has begun holds no permit, suspended or not") { // X-101, its second half
  stage scene;
  scenery s{scene, 1};
  scene.acts["long"] = hold_at("other");
  (void)tell_spot(s.net.host(s.stranger), s.free, "long");
  s.net.run_until_idle();
  CHECK(scene.has("long starts"));
  CHECK(s.permits() == 0);
  for (const auto* door : {"other", "d"})
    scene.open(door);
  s.net.run_until_idle();
  CHECK(scene.has("long ends"));
  CHECK(s.permits() == 0);
}

// X-103 as far as one source shows it; the order among sources is the core's.
TEST_CASE("saturated permits lose, refuse and reorder nothing") {
  stage scene;
  scenery s{scene, 2};
  for (int i = 0; i < 200; ++i)
    (void)tell_spot(s.net.host(s.stranger), "held", std::to_string(i));
  s.net.run_until_idle();
  CHECK(s.permits() == 2);
  CHECK(records_of(s.net, s.owner, "held") == 3);
  scene.open("d");
  s.net.run_until_idle();
  std::vector<std::string> wanted;
  for (int i = 0; i < 200; ++i)
    wanted.push_back(std::to_string(i));
  CHECK(scene.in_order(wanted));
  CHECK(s.permits() == 0);
}

TEST_CASE("X-103 with few permits, senders on three hosts, and any order of jobs: each message once, in its sender's order") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    stage scene;
    auto options = with_jobs(1 + static_cast<std::uint32_t>(seed % 3));
    options.hosts = 3;
    options.seed = seed;
    mesh net{options};
    net.start(serve(scene));
    const std::vector<std::string> ids{"one", "two", "three"};
    for (const auto& id : ids)
      for (std::size_t at = 0; at < 3; ++at)
        net.run(ask_spot(net.host(at), id, "known"));
    constexpr int each = 30;
    for (int i = 0; i < each; ++i)
      for (std::size_t at = 0; at < 3; ++at)
        for (const auto& id : ids)
          (void)tell_spot(net.host(at), id, id + " from " + std::to_string(at) + " number " + std::to_string(i));
    net.run_until_idle();
    for (std::size_t at = 0; at < 3; ++at)
      for (const auto& id : ids) {
        std::vector<std::string> wanted;
        for (int i = 0; i < each; ++i)
          wanted.push_back(id + " from " + std::to_string(at) + " number " + std::to_string(i));
        CHECK(scene.in_order(wanted));
        CHECK(scene.count(wanted.front()) == 1);
      }
    for (std::size_t at = 0; at < 3; ++at)
      CHECK(net.host(at).runtime().permits->in_use() == 0);
  }
}

/// The numbers that ran, as they did.
std::vector<int> numbers_in(const stage& scene) {
  std::vector<int> all;
  for (const auto& what : scene.log)
    if (!what.empty() && what.find_first_not_of("0123456789") == std::string::npos)
      all.push_back(std::stoi(what));
  return all;
}

TEST_CASE("M-148 X-103 what waits for permits keeps its place when its link is replaced") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    stage scene;
    scenery s{scene, 1 + static_cast<std::uint32_t>(seed % 4), seed, 2ms};
    const auto send = [&](int first, int last) {
      for (int i = first; i < last; ++i)
        (void)tell_spot(s.net.host(s.stranger), "held", std::to_string(i));
    };
    send(0, 8);
    s.net.advance(20ms); // some wait for permits as they came, the others at the sender
    s.net.lose_links(s.owner, s.stranger);
    s.net.advance(1ms);
    s.net.run(s.net.host(s.stranger).mesh("m").until_peers_ready(1));
    s.net.run(s.net.host(s.owner).mesh("m").until_peers_ready(1));
    send(100, 108);
    s.net.advance(20ms);
    scene.open("d");
    s.net.advance(3s);
    const auto ran = numbers_in(scene);
    CHECK(ran.size() >= 8);
    CHECK(std::ranges::adjacent_find(ran, std::greater_equal<>{}) == ran.end());
    CHECK(s.permits() == 0);
  }
}

TEST_CASE("M-151 M-148 X-100 sends that wait for a place among the operations are not overtaken by later ones") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    stage scene;
    auto options = with_jobs(0);
    options.seed = seed;
    options.adjust = [seed](std::size_t, zlink::host_options& o) {
      o.max_operations = 1 + static_cast<std::uint32_t>(seed % 4);
      o.application_lane_records = 3;
    };
    mesh net{options};
    net.start(serve(scene));
    net.run(ask_spot(net.host(0), "held", "prepared"));
    net.run(ask_spot(net.host(1), "held", "prepared"));
    const auto from = seed % 2;
    for (int i = 0; i < 120; ++i) {
      (void)tell_spot(net.host(from), "held", std::to_string(i));
      if (i % 7 == 6)
        net.run(ask_spot(net.host(1 - from), "other", "a few steps"));
    }
    net.run_until_idle();
    net.advance(3s);
    const auto ran = numbers_in(scene);
    CHECK(ran.size() > 20);
    CHECK(std::ranges::adjacent_find(ran, std::greater_equal<>{}) == ran.end());
  }
}

TEST_CASE("X-104 X-107 replies to calls already started need no permit and pass a paused queue") {
  stage scene;
  scenery s{scene, 1};
  scene.acts["slow"] = [&scene](player&) -> zlink::task<int> {
    co_await scene.pass("far gate");
    co_return 4;
  };
  scene.acts["ask far"] = [far = s.far](player& p) -> zlink::task<int> {
    auto call = p.spot().outbound().request_to_spot(far, ask{"slow"});
    const auto got = co_await call.submit<answer>();
    co_return got.value;
  };
  auto asked = ask_spot(s.net.host(s.owner), s.free, "ask far", "");
  s.net.run_until_idle();
  REQUIRE(scene.knocked("far gate"));
  (void)tell_spot(s.net.host(s.stranger), "held", "takes the permit");
  s.net.run_until_idle();
  CHECK(s.permits() == 1);
  scene.open("far gate");
  CHECK(s.net.run(std::move(asked)).value == 4);
  CHECK(s.permits() == 1);
  CHECK_FALSE(scene.has("takes the permit"));
  scene.open("d");
  s.net.run_until_idle();
  CHECK(scene.has("takes the permit"));
}

TEST_CASE("X-106 sends to a paused host wait and run later; requests in flight end, and the peer stays ready") {
  stage scene;
  scenery s{scene, 10};
  scene.acts["busy"] = hold_at("reply");
  auto in_flight = ask_spot(s.net.host(s.stranger), s.free, "busy", "");
  s.net.run_until_idle();
  for (int i = 0; i < 8; ++i)
    (void)tell_spot(s.net.host(s.stranger), "held", "taken");
  s.net.run_until_idle();
  CHECK(s.permits() == 8);
  CHECK(s.net.host(s.owner).runtime().permits->paused());
  for (int i = 0; i < 5; ++i)
    (void)tell_spot(s.net.host(s.stranger), "held", "waits at the peer");
  s.net.run_until_idle();
  CHECK(s.permits() == 8); // the peer keeps them
  scene.open("reply");
  CHECK(s.net.run(std::move(in_flight)).value == 1);
  s.net.run(s.net.host(s.stranger).mesh("m").until_peers_ready(1));
  scene.open("d");
  s.net.run_until_idle();
  CHECK(scene.count("taken") == 8);
  CHECK(scene.count("waits at the peer") == 5);
  CHECK(s.permits() == 0);
}

TEST_CASE("X-107 what waits for a stalled peer is bounded by bytes, the rest ends by the send timeout") {
  constexpr std::size_t size = 100'000;
  stage scene;
  mesh net{2};
  net.start(serve(scene));
  net.run(ask_spot(net.host(0), "x", "prepared"));
  const auto owner = net.owner_of("x");
  const auto stranger = 1 - owner;
  net.run(ask_spot(net.host(stranger), "x", "route known", ""));
  net.run(tell_spot(net.host(stranger), "x", std::string(5'000'000, 'x'))); // larger than the whole queue
  net.run_until_idle();
  CHECK(scene.log.back().size() == 5'000'000);
  scene.log.clear();
  net.freeze(owner);
  std::size_t admitted = 0;
  std::size_t late = 0;
  const auto began = net.elapsed();
  for (int i = 0; i < 200; ++i)
    tell_spot(net.host(stranger), "x", std::string(size, 'x')).then([&](zlink::result<void> outcome) {
      if (outcome.has_value())
        ++admitted;
      else if (failure_of(outcome) == error_kind::deadline_exceeded)
        ++late;
    });
  net.advance(900ms);
  CHECK(late == 0);
  net.advance(200ms);
  CHECK(net.elapsed() - began == 1100ms);
  CHECK(admitted + late == 200);
  CHECK(admitted >= 4'096'000 / size - 1);
  CHECK(admitted <= 2 * 4'096'000 / size + 1); // the queue, and what the peer's credit had let out
  net.thaw(owner);
  net.run_until_idle();
  CHECK(scene.log.size() == admitted);
}

} // namespace pressure_test
