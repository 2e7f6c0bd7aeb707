// Messages that name a Spot: what is found, what is woken, what is refused, and how routes age (03 sections 9, 11, 12).
#include "tests/contract/messaging/probe_spots.hpp"
#include "zlink/host/host_runtime.hpp"

namespace zlink::test::messaging {
namespace {

using namespace std::chrono_literals;
using testing::mesh;
using testing::store_fault;
using testing::store_operation;

TEST_CASE("M-57 without intent a missing id is not_found and leaves no row") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  for (std::size_t from : {0, 1}) {
    const auto writes = net.faults(0).count(store_operation::write) + net.faults(1).count(store_operation::write);
    const auto spots = net.host(from).spots();
    CHECK(failure(net, spots.send_to_spot("c", note{"x"}).submit()) == error_kind::not_found);
    CHECK(failure(net, spots.request_to_spot("c", ask{"x"}).submit<answer>()) == error_kind::not_found);
    CHECK(net.faults(0).count(store_operation::write) + net.faults(1).count(store_operation::write) == writes);
    CHECK_FALSE(net.run(spots.find("c")).has_value());
  }
  CHECK(log.runs.empty());
  CHECK(log.incarnations == 2); // the Entry Spots
}

TEST_CASE("M-58 M-59 M-4 intent wakes a missing Instance Spot, and the message that woke it runs first and once") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    for (std::size_t from : {0, 1}) {
      evidence log;
      mesh net{{.hosts = 2, .seed = seed, .max_link_delay = 10ms, .max_store_delay = 10ms}};
      start_probes(net, log);
      std::vector<task<answer>> calls;
      for (int i = 0; i < 50; ++i)
        calls.push_back(ask_at(net.host(from), "c", std::to_string(i)));
      for (int i = 0; i < 50; ++i)
        CHECK(net.run(std::move(calls[static_cast<std::size_t>(i)])).text == std::to_string(i) + "!");
      net.run_until_idle();
      REQUIRE(log.runs.size() == 50);
      CHECK(log.runs.front() == "0");
      for (int i = 0; i < 50; ++i)
        CHECK(log.count(std::to_string(i)) == 1);
      CHECK(log.incarnations == 3);
    }
}

TEST_CASE("M-65 after idle cleanup an unmarked message is not_found, a marked one begins a new incarnation") {
  evidence log;
  mesh net{2};
  net.start([&log](host& started, std::size_t index) {
    auto& node = started.add_mesh("m");
    serve_probes(node, log);
    node.instance_spot_idle_timeout(5s);
    if (index != 0)
      node.placement_weight(0);
  });
  std::uint64_t generation = 0;
  for (std::size_t from : {0, 1}) {
    net.run(ask_at(net.host(from), "c", "alive"));
    const auto first = net.run(net.host(from).spots().find("c"));
    REQUIRE(first.has_value());
    CHECK(first->object_generation > generation);
    generation = first->object_generation;
    net.advance(20s);
    CHECK_THROWS_AS(net.owner_of("c"), std::logic_error);
    CHECK(failure(net, net.host(from).spots().request_to_spot("c", ask{"x"}).submit<answer>())
          == error_kind::not_found);
    CHECK(failure(net, net.host(from).spots().send_to_spot("c", note{"x"}).submit()) == error_kind::not_found);
  }
  CHECK(log.count("x") == 0);
}

TEST_CASE("an Entry Spot is addressable from anywhere, and takes no Instance intent") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.advance(2s);
  const auto id = net.host(0).mesh("m").entry_spot_id();
  REQUIRE_FALSE(id.empty());
  for (std::size_t from : {0, 1}) {
    log.runs.clear();
    const auto spots = net.host(from).spots();
    net.run(spots.send_to_spot(id, note{"sent"}).submit());
    CHECK(net.run(spots.request_to_spot(id, ask{"asked"}).submit<answer>()).text == "asked!");
    CHECK(log.runs == std::vector<std::string>{"sent", "asked"});
    auto marked = spots.request_to_spot(id, ask{"x"}).instance_spot("probe");
    CHECK_FALSE(net.run(as_result(marked.submit<answer>())).has_value());
  }
  net.run(net.host(0).shutdown());
  net.advance(5s);
  CHECK(failure(net, net.host(1).spots().request_to_spot(id, ask{"x"}).submit<answer>()) == error_kind::not_found);
  CHECK(log.count("x") == 0);
}

/// What a far caller and the owner's own host are told.
void check_refused(mesh& net, std::size_t from, error_kind wanted, bool marked) {
  auto send = net.host(from).spots().send_to_spot("c", note{"x"});
  auto request = net.host(from).spots().request_to_spot("c", ask{"x"});
  if (marked) {
    send.instance_spot("probe");
    request.instance_spot("probe");
  }
  CHECK(failure(net, send.submit()) == wanted);
  CHECK(failure(net, request.submit<answer>()) == wanted);
}

TEST_CASE("another kind or type under the id is a type_mismatch, also for a room") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(net.host(0).spots().get_or_create("c", "room").submit());
  for (std::size_t from : {0, 1})
    check_refused(net, from, error_kind::type_mismatch, true);
  CHECK(log.count("x") == 0);
}

TEST_CASE("an owner that is gone is unavailable, with and without intent, until it is known to be over") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  net.host(1).mesh("m").placement_weight(100);
  net.kill(0);
  net.advance(10ms);
  check_refused(net, 1, error_kind::unavailable, false);
  check_refused(net, 1, error_kind::unavailable, true);
  net.advance(16s); // its lease is over, its row is not
  check_refused(net, 1, error_kind::unavailable, true);
  CHECK(log.count("x") == 0);
}

TEST_CASE("a store that cannot be read is unavailable on a miss; a known route still works") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "known", "alive"));
  net.run(ask_at(net.host(0), "c", "alive"));
  net.run(ask_at(net.host(1), "known", "route"));
  net.cut_store(1);
  check_refused(net, 1, error_kind::unavailable, false);
  check_refused(net, 1, error_kind::unavailable, true);
  CHECK(net.run(net.host(1).spots().request_to_spot("known", ask{"y"}).submit<answer>()).text == "y!");
}

TEST_CASE("a Spot under creation is not addressed without intent; with intent the message waits for it") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  bool hold = false;
  net.faults(0).set_rule([&hold](const testing::store_call& call) {
    return hold && call.what == store_operation::write ? store_fault::hold_call : store_fault::none;
  });
  auto first = ask_at(net.host(0), "c", "first");
  net.run_until([&] { return net.host(0).runtime().objects.find("c") != nullptr; });
  hold = true;
  check_refused(net, 0, error_kind::not_found, false);
  auto second = ask_at(net.host(0), "c", "second");
  CHECK_FALSE(second.ready());
  hold = false;
  net.faults(0).release_all();
  net.run(std::move(first));
  net.run(std::move(second));
  CHECK(log.runs == std::vector<std::string>{"first", "second"});
}

// -- routes -----------------------------------------------------------------------------------------------------------

std::size_t reads_of(mesh& net, std::size_t host) { return net.faults(host).count(store_operation::read); }

std::size_t reads_for_one_request(mesh& net) {
  const auto before = reads_of(net, 1);
  net.run(net.host(1).spots().request_to_spot("c", ask{"x"}).submit<answer>());
  return reads_of(net, 1) - before;
}

TEST_CASE("M-74 a known route needs no store, until it is too old") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  CHECK(reads_for_one_request(net) > 0);
  CHECK(reads_for_one_request(net) == 0);
  CHECK(reads_for_one_request(net) == 0);
  net.advance(16s);
  CHECK(reads_for_one_request(net) > 0);
}

TEST_CASE("a route lives no longer than the lease of its owner, and not at all with the cache off") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  net.cut_store(0); // no renewal: within 10 s the owner admits nothing more
  CHECK(reads_for_one_request(net) > 0);
  net.advance(12s); // younger than the cache allows
  const auto before = reads_of(net, 1);
  CHECK_FALSE(
    net.run(as_result(net.host(1).spots().request_to_spot("c", ask{"x"}).timeout(1s).submit<answer>())).has_value());
  CHECK(reads_of(net, 1) > before);

  evidence other_log;
  mesh off{{.hosts = 2, .adjust = [](std::size_t, host_options& options) { options.route_cache_max_age = 0ms; }}};
  start_probes(off, other_log);
  off.run(ask_at(off.host(0), "c", "alive"));
  CHECK(reads_for_one_request(off) > 0);
  CHECK(reads_for_one_request(off) > 0);
}

TEST_CASE("M-77 cache age and follow time: 26/30 is refused, 25/30 and 0 are accepted") {
  const auto starts = [](std::chrono::milliseconds age, std::chrono::milliseconds follow) {
    mesh net{{.hosts = 1, .adjust = [=](std::size_t, host_options& options) {
                options.route_cache_max_age = age;
                options.message_follow_duration = follow;
              }}};
    try {
      net.start([](host& started) { started.add_mesh("m").object_client(); });
      return true;
    } catch (const configuration_error&) {
      return false;
    }
  };
  CHECK_FALSE(starts(26s, 30s));
  CHECK(starts(25s, 30s));
  CHECK(starts(26s, 0s));
  CHECK(starts(0s, 3s));
}

TEST_CASE("M-82 a stale route: the request is unavailable and runs nowhere, the next call finds the new owner") {
  evidence log;
  mesh net{3};
  net.start([&log](host& started, std::size_t index) {
    serve_probes(started.add_mesh("m"), log);
    if (index != 0)
      started.mesh("m").placement_weight(0);
  });
  net.run(net.host(2).spots().get_or_create("c", "room").submit());
  net.run(net.host(1).spots().request_to_spot("c", ask{"alive"}).submit<answer>()); // host 1 knows the route
  const auto ref = net.run(net.host(2).spots().find("c"));
  REQUIRE(ref.has_value());
  CHECK(net.run(net.host(2).spots().close(*ref)));
  net.host(0).mesh("m").placement_weight(0);
  net.host(2).mesh("m").placement_weight(100);
  net.advance(2s);
  net.run(net.host(2).spots().get_or_create("c", "room").submit());
  net.run_until_idle();
  REQUIRE(net.owner_of("c") == 2);
  CHECK(failure(net, net.host(1).spots().request_to_spot("c", ask{"stale"}).submit<answer>())
        == error_kind::unavailable);
  CHECK(net.run(net.host(1).spots().request_to_spot("c", ask{"fresh"}).submit<answer>()).text == "fresh!");
  net.run_until_idle();
  CHECK(log.count("stale") == 0);
  CHECK(log.count("fresh") == 1);
}

} // namespace
} // namespace zlink::test::messaging
