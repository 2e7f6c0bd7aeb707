// Call objects: what they offer, what they refuse, and when (03 sections 1 and 2).
#include "tests/contract/messaging/probe_spots.hpp"

#include <climits>
#include <concepts>
#include <stop_token>
#include <type_traits>

namespace zlink::test::messaging {
namespace {

using namespace std::chrono_literals;
using testing::mesh;

// -- what the types say -----------------------------------------------------------------------------------------------

template <class Call>
concept takes_metadata = requires(Call& call, message_metadata all) {
  { call.metadata("key", "value") } -> std::same_as<Call&>;
  { call.metadata(all) } -> std::same_as<Call&>;
};
template <class Call>
concept takes_intent = requires(Call& call) {
  { call.instance_spot() } -> std::same_as<Call&>;
  { call.instance_spot("type") } -> std::same_as<Call&>;
  { call.in_mesh("mesh") } -> std::same_as<Call&>;
};
template <class Call>
concept takes_timeout = requires(Call& call) {
  { call.timeout(std::chrono::milliseconds{5}) } -> std::same_as<Call&>;
};
template <class Call>
concept sends = requires(Call& call, std::stop_token stop) {
  { call.submit() } -> std::same_as<task<void>>;
  { call.submit(stop) } -> std::same_as<task<void>>;
};
template <class Call>
concept yields = requires(Call& call) {
  call.template yield<answer>();
};
template <class Call>
concept requests = requires(Call& call, std::stop_token stop) {
  { call.template submit<answer>() } -> std::same_as<task<answer>>;
  { call.template submit<answer>(stop) } -> std::same_as<task<answer>>;
  { call.template yield<answer>() } -> std::same_as<task<answer>>;
  { call.template yield<answer>(stop) } -> std::same_as<task<answer>>;
};
template <class Call>
concept yields_without_reply = requires(Call& call) {
  call.yield();
};

template <class Client, class Target>
concept addresses = requires(const Client& client, Target target, note m) {
  client.send_to_spot(target, m);
};
template <class Client, class Target>
concept asks = requires(const Client& client, Target target, ask m) {
  client.request_to_spot(target, m);
};

TEST_CASE("M-10 spot_send_call offers metadata, intent and submit, no timeout and no yield") {
  static_assert(takes_metadata<spot_send_call> && takes_intent<spot_send_call> && sends<spot_send_call>);
  static_assert(!takes_timeout<spot_send_call> && !yields<spot_send_call> && !yields_without_reply<spot_send_call>);
  static_assert(
    std::same_as<decltype(std::declval<spot_send_call>().instance_spot("t").in_mesh("m").metadata("a", "b")),
                 spot_send_call&&>);
}

TEST_CASE("M-11 spot_request_call offers the same, a timeout, and submit and yield of a typed reply") {
  static_assert(takes_metadata<spot_request_call> && takes_intent<spot_request_call>);
  static_assert(takes_timeout<spot_request_call> && requests<spot_request_call>);
  static_assert(!sends<spot_request_call>);
}

TEST_CASE("M-1 a spot call takes an id and nothing that names a place") {
  static_assert(addresses<spot_manager, std::string> && asks<spot_manager, std::string>);
  static_assert(!addresses<spot_manager, spot_ref> && !asks<spot_manager, spot_ref>);
  static_assert(addresses<spot_outbound, std::string> && asks<spot_outbound, std::string>);
  static_assert(!addresses<spot_outbound, spot_ref> && !asks<spot_outbound, spot_ref>);
  // The same call reaches the id at one node, and at another node once it lives there.
  evidence log;
  mesh net{3};
  net.start([&log](host& started, std::size_t index) {
    serve_probes(started.add_mesh("m"), log);
    if (index != 0)
      started.mesh("m").placement_weight(0);
  });
  const auto call = [&net](std::string text) {
    return net.run(net.host(2).spots().request_to_spot("c", ask{std::move(text)}).submit<answer>()).text;
  };
  const auto made = net.run(net.host(2).spots().get_or_create("c", "room").submit());
  net.run_until_idle();
  CHECK(net.owner_of("c") == 0);
  CHECK(call("one") == "one!");
  CHECK(net.run(net.host(2).spots().close(made.spot)));
  net.host(0).mesh("m").placement_weight(0);
  net.host(1).mesh("m").placement_weight(100);
  net.advance(16s); // what host 2 knew is too old
  net.run(net.host(2).spots().get_or_create("c", "room").submit());
  net.run_until_idle();
  CHECK(net.owner_of("c") == 1);
  CHECK(call("two") == "two!");
}

// -- starting once ----------------------------------------------------------------------------------------------------

TEST_CASE("M-8 O-14 a call is started once: the second start is refused and delivers nothing") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  for (std::size_t from : {0, 1}) {
    log.runs.clear();
    auto send = net.host(from).spots().send_to_spot("c", note{"sent"});
    net.run(send.submit());
    CHECK(failure(net, send.submit()) == error_kind::invalid_operation);
    auto request = net.host(from).spots().request_to_spot("c", ask{"asked"});
    auto pending = request.submit<answer>();
    CHECK(failure(net, request.submit<answer>()) == error_kind::invalid_operation);
    CHECK(net.run(std::move(pending)).text == "asked!");
    CHECK(failure(net, request.submit<answer>()) == error_kind::invalid_operation);
    net.run_until_idle();
    CHECK(log.runs == std::vector<std::string>{"sent", "asked"});
  }
}

TEST_CASE("M-8 a start that was refused is a start all the same") {
  evidence log;
  mesh net{1};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  auto refused = net.host(0).spots().request_to_spot("c", ask{"refused"});
  CHECK(failure(net, refused.yield<answer>()) == error_kind::invalid_operation); // no turn to give away
  CHECK(failure(net, refused.submit<answer>()) == error_kind::invalid_operation);
  std::stop_source stop;
  stop.request_stop();
  auto cancelled = net.host(0).spots().send_to_spot("c", note{"refused"});
  CHECK(net.run(as_result(cancelled.submit(stop.get_token()))).is_cancelled());
  CHECK(failure(net, cancelled.submit()) == error_kind::invalid_operation);
  net.run_until_idle();
  CHECK(log.count("refused") == 0);
}

TEST_CASE("M-9 O-14 an option set twice is refused at the terminal, metadata may be repeated") {
  evidence log;
  mesh net{1};
  start_probes(net, log);
  const auto spots = net.host(0).spots();
  auto twice_marked = spots.send_to_spot("c", note{"x"});
  twice_marked.instance_spot("probe").instance_spot("probe");
  CHECK(failure(net, twice_marked.submit()) == error_kind::invalid_operation);
  auto twice_placed = spots.send_to_spot("c", note{"x"});
  twice_placed.instance_spot("probe").in_mesh("m").in_mesh("m");
  CHECK(failure(net, twice_placed.submit()) == error_kind::invalid_operation);
  auto twice_timed = spots.request_to_spot("c", ask{"x"});
  twice_timed.instance_spot("probe").timeout(1s).timeout(1s);
  CHECK(failure(net, twice_timed.submit<answer>()) == error_kind::invalid_operation);
  auto created = spots.create("room");
  created.timeout(1s).timeout(1s);
  CHECK(failure(net, created.submit()) == error_kind::invalid_operation);
  auto asked = spots.get_or_create("r", "room");
  asked.request(ask{"x"}).request(ask{"y"});
  CHECK(failure(net, asked.submit()) == error_kind::invalid_operation);
  auto placed = spots.get_or_create("r", "room");
  placed.in_mesh("m").in_mesh("m");
  CHECK(failure(net, placed.submit()) == error_kind::invalid_operation);
  CHECK(log.runs.empty());
  CHECK(log.incarnations == 1); // the Entry Spot
  auto repeated = spots.send_to_spot("c", note{"x"});
  repeated.instance_spot("probe").metadata("color", "red").metadata("color", "blue");
  net.run(repeated.submit());
  net.run_until_idle();
  CHECK(log.runs == std::vector<std::string>{"xblue"});
}

TEST_CASE("M-13 in_mesh without intent is refused and nothing is sent") {
  evidence log;
  mesh net{1};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  CHECK(failure(net, net.host(0).spots().send_to_spot("c", note{"x"}).in_mesh("m").submit())
        == error_kind::invalid_operation);
  CHECK(failure(net, net.host(0).spots().request_to_spot("c", ask{"x"}).in_mesh("m").submit<answer>())
        == error_kind::invalid_operation);
  net.run_until_idle();
  CHECK(log.count("x") == 0);
}

TEST_CASE("M-14 type and mesh of the call neither move nor restrict a Spot that exists") {
  evidence log;
  mesh net{2};
  net.start([&log](host& started, std::size_t index) {
    serve_probes(started.add_mesh("a"), log);
    auto& other = started.add_mesh("b");
    serve_probes(other, log);
    if (index != 0)
      started.mesh("a").placement_weight(0);
  });
  net.run(net.host(1).spots().request_to_spot("c", ask{"one"}).instance_spot("probe").in_mesh("a").submit<answer>());
  for (std::size_t from : {0, 1}) {
    auto call = net.host(from).spots().request_to_spot("c", describe{}).instance_spot("probe").in_mesh("b");
    CHECK(net.run(call.submit<description>()).mesh == "a");
  }
  CHECK(net.owner_of("c") == 0);
}

// -- arguments --------------------------------------------------------------------------------------------------------

TEST_CASE("M-15 O-4 bad arguments are refused at the call, before anything happens") {
  evidence log;
  mesh net{1};
  start_probes(net, log);
  net.faults(0).clear_log();
  const auto spots = net.host(0).spots();
  for (const auto& id : {std::string{}, std::string(256, 'a'), std::string{"\xff"}, std::string{"\xc3"}}) {
    CHECK_THROWS_AS(static_cast<void>(spots.send_to_spot(id, note{"x"})), std::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(spots.request_to_spot(id, ask{"x"})), std::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(spots.send_to_spot("c", note{"x"}).instance_spot(id)), std::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(spots.create(id)), std::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(spots.get_or_create(id, "room")), std::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(spots.find(id)), std::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(net.host(0).nodes().send_to_node("m", id, note{"x"})), std::invalid_argument);
  }
  auto call = spots.request_to_spot("c", ask{"x"}).instance_spot("probe");
  CHECK_THROWS_AS(call.timeout(0ms), std::invalid_argument);
  CHECK_THROWS_AS(call.timeout(-1ms), std::invalid_argument);
  CHECK_THROWS_AS(call.timeout(std::chrono::milliseconds{INT_MAX} + 1ns), std::invalid_argument);
  CHECK_THROWS_AS(call.timeout(std::chrono::seconds{18'446'744'075}), std::invalid_argument); // 1.3 s, were it to wrap
  CHECK_THROWS_AS(call.timeout(std::chrono::hours::max()), std::invalid_argument);
  CHECK_THROWS_AS(call.timeout(std::chrono::hours::min()), std::invalid_argument);
  auto room = spots.create("room");
  CHECK_THROWS_AS(room.timeout(std::chrono::hours::max()), std::invalid_argument);
  CHECK(net.faults(0).log().empty());
  zlink::host other;
  CHECK_THROWS_AS(other.add_mesh("m").request_timeout(std::chrono::hours::max()), std::invalid_argument);
  CHECK_THROWS_AS(other.mesh("m").send_timeout(std::chrono::hours::max()), std::invalid_argument);
  call.timeout(1ns); // rounds up to 1 ms; a refused option was not set
  auto longest =
    spots.request_to_spot("c", ask{"y"}).instance_spot("probe").timeout(std::chrono::milliseconds{INT_MAX});
  CHECK(net.run(longest.submit<answer>()).text == "y!");
}

TEST_CASE("M-16 ids are compared byte by byte") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  const std::vector<std::string> ids{"A", "a", "\xc3\xa9", "e\xcc\x81", std::string(255, 'x'), " a"};
  for (const auto& id : ids)
    net.run(ask_at(net.host(1), id, "to " + id));
  CHECK(log.incarnations == 2 + static_cast<int>(ids.size())); // with two Entry Spots
  for (const auto& id : ids)
    CHECK(net.owner_of(id) == 0);
}

TEST_CASE("M-17 an id that reads like a node is found by the store only") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  const auto rid = net.host(1).mesh("m").rid();
  CHECK(failure(net, net.host(0).spots().request_to_spot(rid, ask{"x"}).submit<answer>()) == error_kind::not_found);
  net.run(ask_at(net.host(1), rid, "x"));
  CHECK(net.owner_of(rid) == 0); // not at the node of that name
}

TEST_CASE("M-18 cancelling one call does not touch another, nor one that has ended") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  for (std::size_t from : {0, 1}) {
    std::stop_source stop;
    const auto spots = net.host(from).spots();
    auto over = spots.request_to_spot("c", ask{"over"}).submit<answer>(stop.get_token());
    net.run_until([&] { return over.ready(); });
    log.gate = latch{};
    auto first = spots.request_to_spot("c", held_ask{"first"}).submit<answer>(stop.get_token());
    auto second = spots.request_to_spot("c", held_ask{"second"}).submit<answer>();
    net.run_until([&] { return log.gate.waiting() == 1; });
    stop.request_stop();
    CHECK(net.run(as_result(std::move(first))).is_cancelled());
    CHECK_FALSE(second.ready());
    log.gate.open();
    CHECK(net.run(std::move(second)).text == "second!");
    CHECK(net.run(std::move(over)).text == "over!");
  }
}

} // namespace
} // namespace zlink::test::messaging
