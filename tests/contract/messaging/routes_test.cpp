// How routes are learned, how long they live, and what ends them (03 sections 9, 11, 12).
#include "tests/contract/messaging/forged_peer.hpp"

namespace zlink::test::messaging {
namespace {

using namespace std::chrono_literals;
using testing::mesh;
using testing::store_operation;

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

TEST_CASE("M-74 M-89 S-60 a message from a node whose first link to the owner is on its way waits for that link") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    evidence log;
    mesh net{{.hosts = 2, .seed = seed, .max_link_delay = 100ms, .adjust = [](std::size_t, zlink::host_options& options) {
                options.discovery_polling_interval = 200ms; // the one with the smaller RID dials as soon as it knows of the other
              }}};
    start_probes(net, log);
    net.run(ask_at(net.host(0), "c", "alive"));
    if (net.owner_of("c") != 0)
      continue;
    net.kill(1);
    net.restart(1); // it serves, and its links are not ready yet
    CHECK(net.run(net.host(1).spots().request_to_spot("c", ask{"early"}).submit<answer>()).text == "early!");
  }
}

TEST_CASE("M-76 a route lives as long as the cache allows, no longer than its owner's lease, and not at all with 0") {
  const auto with_age = [](std::chrono::milliseconds age) {
    return testing::mesh_options{
      .hosts = 2, .adjust = [age](std::size_t, host_options& options) { options.route_cache_max_age = age; }};
  };
  {
    evidence log;
    mesh net{with_age(3s)};
    start_probes(net, log);
    net.run(ask_at(net.host(0), "c", "alive"));
    CHECK(reads_for_one_request(net) > 0);
    net.advance(2900ms);
    CHECK(reads_for_one_request(net) == 0); // use does not extend it
    net.advance(200ms);
    CHECK(reads_for_one_request(net) > 0);
  }
  {
    evidence log;
    mesh net{with_age(25s)};
    start_probes(net, log);
    net.run(ask_at(net.host(0), "c", "alive"));
    net.cut_store(0); // no renewal: within 10 s the owner admits nothing more
    CHECK(reads_for_one_request(net) > 0);
    net.advance(2s);
    CHECK(reads_for_one_request(net) == 0);
    net.advance(10s); // younger than the cache allows
    const auto before = reads_of(net, 1);
    CHECK_FALSE(
      net.run(as_result(net.host(1).spots().request_to_spot("c", ask{"x"}).timeout(1s).submit<answer>())).has_value());
    CHECK(reads_of(net, 1) > before);
  }
  evidence log;
  mesh off{with_age(0ms)};
  start_probes(off, log);
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

TEST_CASE("M-75 the store is read for direct calls without a route, not for node messages and replies") {
  evidence log;
  mesh net{2};
  net.start([&log](host& started, std::size_t index) {
    auto& node = started.add_mesh("m");
    serve_probes(node, log);
    node.add_node_handler([](const ask& m, const message_context&) { return answer{m.text}; });
    if (index != 0)
      node.placement_weight(0);
  });
  net.run(ask_at(net.host(0), "c", "alive"));
  CHECK(reads_for_one_request(net) > 0);
  auto pending = net.host(1).spots().request_to_spot("c", held_ask{"x"}).submit<answer>();
  net.run_until([&] { return log.gate.waiting() == 1; });
  const auto before = std::pair{reads_of(net, 0), reads_of(net, 1)};
  const auto rid = net.host(0).mesh("m").rid();
  net.run(net.host(1).nodes().request_to_node("m", rid, ask{"y"}).submit<answer>());
  log.gate.open();
  net.run(std::move(pending));
  CHECK(std::pair{reads_of(net, 0), reads_of(net, 1)} == before);
}

TEST_CASE("S-105 a look-up answers Ready, Missing, unavailable or a store failure: only the first is kept, only the second may create") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  auto& caller = net.host(1);
  const auto end_of = [&](const std::string& id, bool intent) {
    auto call = caller.spots().request_to_spot(id, ask{"x"});
    call.timeout(2s);
    if (intent)
      call.instance_spot("probe");
    auto end = net.run(as_result(call.submit<answer>()));
    return end ? std::optional<error_kind>{} : end.error().kind();
  };
  const auto kept = [&](const std::string& id) {
    return caller.runtime().messages.routes.cache.find(id, caller.runtime().time->now()) != nullptr;
  };
  for (const auto* id : {"ready", "unread", "orphan"})
    net.run(ask_at(net.host(0), id, "alive"));
  CHECK(end_of("ready", false) == std::nullopt);
  CHECK(kept("ready"));
  CHECK(end_of("nobody", false) == error_kind::not_found);
  CHECK_FALSE(kept("nobody"));

  net.cut_store(1);
  for (const bool intent : {false, true}) {
    CHECK(end_of("unread", intent) == error_kind::unavailable);
    CHECK_FALSE(kept("unread"));
  }
  net.heal();

  net.cut_store(0);
  net.advance(16s); // its lease is over, its rows stay
  for (const bool intent : {false, true}) {
    CHECK(end_of("orphan", intent) == error_kind::unavailable);
    CHECK_FALSE(kept("orphan"));
    CHECK(caller.runtime().objects.find("orphan") == nullptr);
  }
  caller.mesh("m").placement_weight(100);
  net.advance(2s);
  CHECK(end_of("fresh", true) == std::nullopt); // of nobody: it comes to life here
}

// -- what ends a route ------------------------------------------------------------------------------------------------

/// "c", a room, goes from host 0 to host 2; host 1 still knows the way to host 0.
struct moved_room {
  moved_room() : net(3) {
    net.start([this](host& started, std::size_t index) {
      serve_probes(started.add_mesh("m"), log);
      if (index != 0)
        started.mesh("m").placement_weight(0);
    });
    net.run(net.host(2).spots().get_or_create("c", "room").submit());
    net.run(net.host(1).spots().request_to_spot("c", ask{"alive"}).submit<answer>());
    const auto ref = net.run(net.host(2).spots().find("c"));
    REQUIRE(ref.has_value());
    CHECK(net.run(net.host(2).spots().close(*ref)));
    net.host(0).mesh("m").placement_weight(0);
    net.host(2).mesh("m").placement_weight(100);
    net.advance(2s);
    net.run(net.host(2).spots().get_or_create("c", "room").submit());
    net.run_until_idle();
    REQUIRE(net.owner_of("c") == 2);
  }

  evidence log;
  mesh net;
};

TEST_CASE("M-82 M-79 a stale route: the request is unavailable and runs nowhere, the next call finds the new owner") {
  moved_room room;
  auto& net = room.net;
  CHECK(failure(net, net.host(1).spots().request_to_spot("c", ask{"stale"}).submit<answer>())
        == error_kind::unavailable);
  CHECK(net.run(net.host(1).spots().request_to_spot("c", ask{"fresh"}).submit<answer>()).text == "fresh!");
  net.run_until_idle();
  CHECK(room.log.count("stale") == 0);
  CHECK(room.log.count("fresh") == 1);
}

TEST_CASE("M-82 M-79 a send by a stale route is dropped and counted, and the next call finds the new owner") {
  moved_room room;
  auto& net = room.net;
  const auto dropped = dropped_at(net, 0, detail::drop_reason::refused);
  net.run(net.host(1).spots().send_to_spot("c", note{"stale"}).submit());
  net.run_until_idle();
  CHECK(dropped_at(net, 0, detail::drop_reason::refused) == dropped + 1);
  net.run(net.host(1).spots().send_to_spot("c", note{"fresh"}).submit());
  CHECK(net.run(net.host(1).spots().request_to_spot("c", ask{"fresher"}).submit<answer>()).text == "fresher!");
  net.run_until_idle();
  CHECK(room.log.runs == std::vector<std::string>{"alive", "fresh", "fresher"});
}

TEST_CASE("M-79 word of an older route leaves a newer one alone") {
  moved_room room;
  auto& net = room.net;
  CHECK(failure(net, net.host(1).spots().request_to_spot("c", ask{"stale"}).submit<answer>())
        == error_kind::unavailable);
  net.run(net.host(1).spots().request_to_spot("c", ask{"learns"}).submit<answer>());
  forged_peer late{net, 0, 1};
  const auto word = [](std::uint64_t object, std::uint64_t authority) {
    return encode(detail::control_envelope{0, 0, encode(detail::stale_route{"c", object, authority})});
  };
  const auto route = net.host(1).runtime().messages.routes.cache.find("c", net.host(1).runtime().time->now());
  REQUIRE(route);
  const auto command = static_cast<std::uint16_t>(detail::control_command::stale_route);
  late.control(command, word(route->object.value - 1, route->authority.value));
  late.control(command, word(route->object.value, route->authority.value - 1));
  CHECK(reads_for_one_request(net) == 0);
  late.control(command, word(route->object.value, route->authority.value));
  CHECK(reads_for_one_request(net) > 0);
}

TEST_CASE("M-79 a higher version of the record, seen by another call, ends the route") {
  moved_room room;
  auto& net = room.net;
  CHECK(net.run(net.host(1).spots().find("c")).has_value()); // shows the new owner
  CHECK(net.run(net.host(1).spots().request_to_spot("c", ask{"fresh"}).submit<answer>()).text == "fresh!");

  moved_room other;
  const auto made = other.net.run(other.net.host(1).spots().get_or_create("c", "room").submit());
  CHECK(made.state == spot_create_state::existing);
  CHECK(other.net.run(other.net.host(1).spots().request_to_spot("c", ask{"fresh"}).submit<answer>()).text == "fresh!");
}

/// The owner's lease is long, so that it does not end the route; that of host 1 as given.
testing::mesh_options with_lease(std::chrono::milliseconds ttl) {
  return {.hosts = 2, .adjust = [ttl](std::size_t host, host_options& options) {
            options.route_cache_max_age = 25s;
            options.lease_ttl = host == 0 ? 120s : ttl;
            options.lease_renew_interval = ttl / 3;
            options.lease_renew_timeout = ttl / 6;
            options.lease_fencing_margin = ttl / 4;
          }};
}

TEST_CASE("M-79 when the store answers again every route is asked for again") {
  evidence log;
  mesh net{with_lease(120s)};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  CHECK(reads_for_one_request(net) > 0);
  net.cut_store(1);
  net.advance(5s); // discovery notices
  CHECK(reads_for_one_request(net) == 0);
  net.heal();
  net.advance(8s);
  CHECK(reads_for_one_request(net) > 0);
}

TEST_CASE("M-79 a host that loses its own lease forgets what it knew") {
  evidence log;
  mesh net{with_lease(6s)};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  CHECK(reads_for_one_request(net) > 0);
  net.cut_store(1);
  net.advance(1s);
  CHECK(reads_for_one_request(net) == 0);
  net.advance(10s);
  const auto before = reads_of(net, 1);
  CHECK(failure(net, net.host(1).spots().request_to_spot("c", ask{"x"}).timeout(2s).submit<answer>())
        == error_kind::unavailable);
  CHECK(reads_of(net, 1) > before);
}

// -- what the target checks -------------------------------------------------------------------------------------------

TEST_CASE("M-63 S-46 the target compares the fence: ownership that has changed since, or is newer than its own, is refused") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(1), "c", "alive"));
  const auto route = net.host(0).runtime().objects.find("c");
  REQUIRE(route);
  const detail::message_fence now{route->generation(), route->authority()};
  forged_peer peer{net, 1, 0};
  peer.header.fence = now;
  CHECK_FALSE(peer.ask_packet(ask{"now"}).has_value());
  const std::vector<detail::message_fence> forged{
    {now.object, {now.authority.value - 1}},
    {now.object, {now.authority.value + 1}},
    {{now.object.value + 1}, now.authority},
    {{now.object.value + 1}, {now.authority.value + 1}},
  };
  for (const auto& fence : forged) {
    peer.header.fence = fence;
    const auto end = peer.ask_packet(ask{"forged"});
    REQUIRE(end.has_value());
    CHECK(end->kind() == error_kind::unavailable);
    const auto dropped = dropped_at(net, 0, detail::drop_reason::refused);
    peer.send_packet(note{"forged"});
    CHECK(dropped_at(net, 0, detail::drop_reason::refused) == dropped + 1);
  }
  CHECK(log.count("forged") == 0);
}

TEST_CASE("M-63 C-57 an incarnation that has replaced the known one at the same owner serves the message") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  const auto made = net.run(net.host(0).spots().get_or_create("c", "room").submit());
  net.run(net.host(1).spots().request_to_spot("c", ask{"alive"}).submit<answer>()); // learns the way
  CHECK(net.run(net.host(0).spots().close(made.spot)));
  net.run(net.host(0).spots().get_or_create("c", "room").submit());
  net.run_until_idle();
  const auto reads = reads_of(net, 1);
  CHECK(net.run(net.host(1).spots().request_to_spot("c", ask{"old way"}).submit<answer>()).text == "old way!");
  CHECK(reads_of(net, 1) == reads);
}

TEST_CASE("M-63 X-86 a full lane is waited for, also with a fence") {
  evidence log;
  mesh net{{.hosts = 2, .adjust = [](std::size_t, host_options& options) { options.application_lane_records = 1; }}};
  start_probes(net, log);
  net.run(ask_at(net.host(1), "c", "alive"));
  net.run(net.host(1).spots().send_to_spot("c", held_note{"holds"}).submit());
  net.run_until([&] { return log.gate.waiting() == 1; });
  auto later = net.host(1).spots().request_to_spot("c", ask{"later"}).submit<answer>();
  auto last = net.host(1).spots().request_to_spot("c", ask{"last"}).submit<answer>();
  net.advance(3s);
  CHECK_FALSE(later.ready());
  log.gate.open();
  CHECK(net.run(std::move(later)).text == "later!");
  CHECK(net.run(std::move(last)).text == "last!");
}

} // namespace
} // namespace zlink::test::messaging
