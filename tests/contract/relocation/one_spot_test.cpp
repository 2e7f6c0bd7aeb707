// One Instance Spot moves: state, work, timers, callers (06 sections 4 to 16).
#include "tests/contract/relocation/move_scene.hpp"

namespace relocation_test {
namespace {

using words = std::vector<std::string>;

TEST_CASE("L-2 L-13 L-23 L-121 L-122 L-197 a Spot moves with its state; callers keep its id and see replies only") {
  stage on;
  mesh net{3};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  const auto to = (from + 1) % 3;
  const auto before = row_of(net, "a");
  REQUIRE(before);
  on.trace.clear();
  const auto end = net.run(start_move(net, "a", from, to));
  CHECK(end.left);
  CHECK(end.reason == relocate_reason::none);
  CHECK(net.run(count(net.host(from), "a", "x", 1)).number == 1);
  CHECK(net.run(count(net.host((from + 2) % 3), "a", "x", 2)).number == 2);
  net.run_until([&] { return on.count("closing a") == 1; });
  const auto view = look_at(net, 0, "a");
  CHECK(view.entries == words{"first/0", "x/1", "x/2"});
  CHECK(view.rid == net.host(to).runtime().find_node("m")->identity.node_rid);
  CHECK(view.generation == before->generation.value);
  CHECK(view.instance == 2);
  CHECK(net.owner_of("a") == to);
  const auto after = row_of(net, "a");
  REQUIRE(after);
  CHECK(after->generation == before->generation);
  CHECK(after->authority > before->authority);
  CHECK(on.count("make a") == 1);
  CHECK(on.count("initialize a") == 1);
  CHECK(on.count("capture a") == 1);
  CHECK(on.count("restore a") == 1);
  CHECK(std::ranges::find(on.trace, "initialize a") < std::ranges::find(on.trace, "restore a"));
  CHECK(on.count("closing a relocation_out") == 1);
}

TEST_CASE("L-40 L-63 L-65 L-66 L-67 L-133 L-156 work that waits and work that comes later runs at the target, in order, once, and is answered") {
  stage on;
  mesh net{{.hosts = 3, .max_link_delay = 3ms}};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  const auto to = (from + 1) % 3;
  barrier handler;
  barrier capture;
  on.during = [&](const std::string& step, const std::string&) {
    return step == "handle" ? handler.passed() : step == "capture" ? capture.passed() : zlink::task<void>::done();
  };
  auto running = count(net.host(from), "a", "r", 0);
  net.run_until([&] { return handler.waiting() == 1; });
  auto q1 = count(net.host(from), "a", "q", 1);
  auto q2 = count(net.host(from), "a", "q", 2);
  auto q3 = count(net.host((from + 2) % 3), "a", "p", 1);
  net.run(jot(net.host(from), "a", "q", 3));
  net.advance(50ms);
  auto moving = start_move(net, "a", from, to);
  net.advance(100ms);
  CHECK(on.count("capture") == 0); // the handler that runs has to end here
  handler.open();
  net.run_until([&] { return capture.waiting() == 1; });
  CHECK(net.run(std::move(running)).number == 0);
  auto h1 = count(net.host(from), "a", "q", 4);
  net.run(jot(net.host(from), "a", "q", 5));
  auto h2 = count(net.host((from + 2) % 3), "a", "p", 2);
  net.advance(50ms);
  CHECK(on.count("handle a q") == 0);
  capture.open();
  CHECK(net.run(std::move(moving)).left);
  CHECK(net.run(std::move(q1)).number == 1);
  CHECK(net.run(std::move(q2)).number == 2);
  CHECK(net.run(std::move(q3)).number == 1);
  CHECK(net.run(std::move(h1)).number == 4);
  CHECK(net.run(std::move(h2)).number == 2);
  const auto view = look_at(net, 0, "a");
  words of_q;
  words of_p;
  for (const auto& one : view.entries)
    (one.starts_with("q") ? of_q : of_p).push_back(one);
  CHECK(of_q == words{"q/1", "q/2", "q/3", "q/4", "q/5"});
  CHECK(of_p == words{"first/0", "r/0", "p/1", "p/2"});
  CHECK(view.rid == net.host(to).runtime().find_node("m")->identity.node_rid);
}

TEST_CASE("L-75 L-76 L-78 L-81 timers go on with their numbers at the target, and nobody registers them again") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  net.run(net.host(0).spots().send_to_spot("a", start_clock{"tick", 100, false}).submit());
  net.run(net.host(0).spots().send_to_spot("a", start_clock{"gone", 100, false}).submit());
  net.advance(350ms);
  net.run(net.host(0).spots().send_to_spot("a", start_clock{"gone", 0, true}).submit());
  net.run_until_idle();
  const auto from = net.owner_of("a");
  CHECK(net.run(start_move(net, "a", from, 1 - from)).left);
  net.run_until([&] { return lives(net, 1 - from, "a") && !lives(net, from, "a"); });
  net.advance(320ms);
  const auto view = look_at(net, 0, "a");
  std::uint64_t expected = 0;
  std::uint64_t last = 0;
  std::vector<std::uint64_t> of_tick;
  for (std::size_t i = 0; i < view.ticks.size(); ++i)
    if (view.ticks[i] == expected + 1) {
      ++expected;
      CHECK(view.scheduled[i] > last);
      last = view.scheduled[i];
    }
  CHECK(expected >= 6);
  CHECK(on.count("tick a gone") == 3);
  CHECK(on.count("tick a tick") == static_cast<int>(expected));
}

TEST_CASE("L-30 L-31 L-161 a restore that fails once succeeds with another instance; one that always fails leaves the Spot where it was") {
  for (const bool always : {false, true}) {
    CAPTURE(always);
    stage on;
    mesh net{2};
    net.start(serve(on));
    net.run(rouse(net.host(0), "a"));
    const auto from = net.owner_of("a");
    int failures = always ? 1000 : 1;
    on.at = [&](const std::string& step, const std::string&) {
      if (step == "restore" && failures-- > 0)
        throw std::runtime_error{"the state is not understood"};
    };
    net.run(jot(net.host(0), "a", "q", 1));
    auto moving = start_move(net, "a", from, 1 - from);
    auto later = count(net.host(1), "a", "q", 2);
    const auto end = net.run(std::move(moving));
    CHECK(end.left == !always);
    CHECK(end.reason == (always ? relocate_reason::state_incompatible : relocate_reason::none));
    CHECK(net.run(std::move(later)).number == 2);
    net.run_until([&] { return home_of(net, "a") == (always ? from : 1 - from) && !lives(net, always ? 1 - from : from, "a"); });
    const auto view = look_at(net, 0, "a");
    CHECK(view.entries == words{"first/0", "q/1", "q/2"});
    CHECK(view.instance == (always ? 1 : 3));
    CHECK(on.count("closing a") == (always ? 0 : 1));
    on.at = nullptr;
    CHECK(net.run(start_move(net, "a", net.owner_of("a"), 1 - net.owner_of("a"))).left); // nothing of it is in the way of the next
  }
}

TEST_CASE("L-6 L-157 M-150 many moves under load: per sender and route in order, nothing lost, nothing twice, one owner") {
  const auto seeds = std::uint64_t{60};
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    stage on;
    mesh net{{.hosts = 3, .seed = seed, .max_link_delay = 3ms, .max_store_delay = 2ms}};
    net.start(serve(on));
    net.run(rouse(net.host(0), "a"));
    std::vector<std::uint64_t> done(3, 0);
    std::vector<bool> waits(3, false);
    // One outstanding request for each sender: the next one when the last was answered.
    const auto go_on = [&](std::chrono::milliseconds time) {
      for (; time.count() > 0; --time) {
        for (std::size_t host = 0; host < 3; ++host)
          if (!waits[host]) {
            waits[host] = true;
            count(net.host(host), "a", "s" + std::to_string(host), done[host] + 1).then([&, host](zlink::result<count_up> answer) {
              CHECK_MESSAGE(answer.has_value(), std::string{answer.has_value() ? "" : answer.error().message()});
              if (answer)
                ++done[host];
              waits[host] = false;
            });
          }
        net.advance(1ms);
      }
    };
    std::uint64_t dice = seed;
    for (int round = 0; round < 4; ++round) {
      go_on(std::chrono::milliseconds{(seed * 7 + static_cast<std::uint64_t>(round) * 13) % 30});
      const auto from = home_of(net, "a");
      dice = dice * 6364136223846793005ULL + 1442695040888963407ULL;
      const auto to = (from + 1 + (dice >> 33) % 2) % 3;
      auto moving = start_move(net, "a", from, to);
      while (!moving.ready() || !lives(net, to, "a") || lives(net, from, "a"))
        go_on(1ms);
      CHECK(net.run(std::move(moving)).left);
    }
    net.run_until([&] { return !waits[0] && !waits[1] && !waits[2]; });
    const auto view = look_at(net, 0, "a");
    std::map<std::string, std::uint64_t> next;
    for (const auto& one : view.entries) {
      const auto slash = one.find('/');
      const auto sender = one.substr(0, slash);
      if (sender == "first")
        continue;
      CHECK(one.substr(slash + 1) == std::to_string(++next[sender]));
    }
    for (std::size_t host = 0; host < 3; ++host)
      CHECK(next["s" + std::to_string(host)] >= done[host]);
    CHECK(done[0] + done[1] + done[2] > 20);
  }
}

TEST_CASE("L-2 L-157 a Spot that comes back before its former source has seen that it had left is the one that is found") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  const auto to = 1 - from;
  bool held = false;
  net.host(to).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::committing && !std::exchange(held, true))
      net.faults(to).once(zlink::testing::store_operation::write, zlink::placement::spot_key("a"), zlink::testing::store_fault::hold_call);
  };
  CHECK(net.run(start_move(net, "a", from, to)).left);
  net.run_until([&] { return net.faults(to).held() == 1; });
  net.advance(300ms); // so that the source looks at the row less often by now
  net.faults(to).release_all();
  net.run_until([&] { return lives(net, to, "a"); });
  CHECK(lives(net, from, "a")); // what it has been there
  CHECK(net.run(start_move(net, "a", to, from)).left);
  net.run_until([&] { return on.count("closing a relocation_out") == 2; });
  net.run_until_idle();
  for (std::size_t host = 0; host < 2; ++host)
    CHECK(net.run(count(net.host(host), "a", "x", host + 1)).number == host + 1);
  CHECK(look_at(net, to, "a").rid == net.host(from).runtime().find_node("m")->identity.node_rid);
  CHECK(look_at(net, to, "a").instance == 3);
}

} // namespace
} // namespace relocation_test
