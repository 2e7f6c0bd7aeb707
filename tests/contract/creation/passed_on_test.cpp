// A node that has no room for a Spot: its messages go on to one that has (C-41), and its own ceiling holds (C-37).
#include "tests/contract/creation/scripted_spots.hpp"

#include <map>

namespace creation_test {
namespace {

using zlink::placement::slot_bucket;

/// Host 0 is a client, the others have room for so many Spots each.
auto serve_narrowly(stage& on, std::uint32_t limit) {
  return [&on, limit](zlink::host& host, std::size_t index) {
    serve_beside_client(on)(host, index);
    if (index != 0)
      host.mesh("m").spot_limit(limit);
  };
}
zlink::task<void> tell(zlink::host& host, std::string id, std::string word) {
  return host.spots().send_to_spot(std::move(id), hint{std::move(word)}).instance_spot("cell").submit();
}
std::vector<std::string> words_of(const stage& on, const std::string& id) {
  std::vector<std::string> words;
  const auto prefix = "handle " + id + ' ';
  for (const auto& one : on.trace)
    if (one.starts_with(prefix))
      words.push_back(one.substr(prefix.size()));
  return words;
}

TEST_CASE("C-41 C-36 C-40 first messages find the node that has room left, whoever sends them") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    stage on;
    mesh net{{.hosts = 4, .seed = seed, .max_link_delay = 5ms, .max_store_delay = 5ms}};
    INFO("seed ", net.seed());
    net.start(serve_narrowly(on, 2));
    std::vector<zlink::task<told>> calls;
    for (int i = 0; i < 6; ++i)
      calls.push_back(rouse(net.host(static_cast<std::size_t>(i) % 4), "c" + std::to_string(i), "hello"));
    std::map<std::string, int> on_node;
    for (auto& call : calls)
      ++on_node[net.run(std::move(call)).rid];
    for (std::size_t host = 1; host < 4; ++host) {
      CHECK(on_node[net.host(host).mesh("m").rid()] == 2);
      CHECK(spots_on(net, host) == slot_bucket{2, 0});
    }
    CHECK(on.count("factory c") == 6);
    const auto full = net.run(zlink::as_result(rouse(net.host(0), "more", "hello")));
    REQUIRE_FALSE(full.has_value());
    CHECK(full.error().kind() == error_kind::unavailable);
    CHECK(full.error().message().find("capacity") != std::string::npos);
    CHECK(on.count("factory") == 6);
    for (std::size_t host = 0; host < 4; ++host)
      CHECK(net.host(host).status().spots == (host == 0 ? 0 : 2));
  }
}

TEST_CASE("C-41 M-148 what follows a message to a full node follows it to the next one too, in order") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    stage on;
    mesh net{{.hosts = 3, .seed = seed, .max_link_delay = 4ms, .max_store_delay = 4ms}};
    INFO("seed ", net.seed());
    net.start(serve_narrowly(on, 1));
    const auto taken = net.run(rouse(net.host(0), "first", "x")).rid; // one of the two is full from now on
    std::vector<zlink::task<void>> sends;
    for (int i = 0; i < 12; ++i) {
      sends.push_back(tell(net.host(0), "b", std::to_string(i)));
      if (i % 3 == 0)
        net.advance(std::chrono::milliseconds{(seed + static_cast<std::uint64_t>(i)) % 4});
    }
    const auto reply = net.run(rouse(net.host(0), "b", "12"));
    CHECK(reply.rid != taken);
    CHECK(words_of(on, "b") == std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"});
    CHECK(on.count("factory b") == 1);
    for (auto& sent : sends)
      net.run(std::move(sent));
  }
}

TEST_CASE("C-41 messages of the full node itself go on as well, with their replies, and each runs once") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    stage on;
    mesh net{{.hosts = 2, .seed = seed, .max_link_delay = 3ms, .max_store_delay = 3ms}};
    INFO("seed ", net.seed());
    net.start([&on](zlink::host& host, std::size_t) {
      serve(on)(host);
      host.mesh("m").spot_limit(1);
    });
    const auto first = net.run(rouse(net.host(0), "first", "x")).rid;
    const std::size_t full = net.host(0).mesh("m").rid() == first ? 0 : 1;
    std::vector<zlink::task<told>> calls;
    for (int i = 0; i < 4; ++i)
      calls.push_back(rouse(net.host(full), "b", std::to_string(i)));
    for (auto& call : calls)
      CHECK(net.run(std::move(call)).rid == net.host(1 - full).mesh("m").rid());
    CHECK(words_of(on, "b") == std::vector<std::string>{"0", "1", "2", "3"});
  }
}

TEST_CASE("C-41 a node that has room again is found again") {
  stage on;
  mesh net{3};
  net.start(serve_narrowly(on, 1));
  net.run(rouse(net.host(0), "one", "x"));
  net.run(rouse(net.host(0), "two", "x"));
  CHECK(failure(net, rouse(net.host(0), "three", "x")) == error_kind::unavailable);
  on.handler = [](const zlink::common_spot_context& context, const std::string& word) -> zlink::task<void> {
    if (word != "close")
      co_return;
    auto closing = static_cast<const zlink::instance_spot_context&>(context).close();
    co_await std::move(closing);
  };
  net.run(rouse(net.host(0), "one", "close"));
  net.run_until_idle();
  CHECK(net.run(rouse(net.host(0), "three", "x")).word == "x");
  CHECK(failure(net, rouse(net.host(0), "four", "x")) == error_kind::unavailable);
}

TEST_CASE("C-37 a node does not exceed its own ceiling, whatever the store says") {
  stage on;
  mesh net{1};
  net.start([&on](zlink::host& host) {
    auto server = host.add_mesh("m").object_server();
    add_cells(server, on, "cell", 2);
    add_rooms(server, on);
    host.mesh("m").spot_limit(3);
  });
  const auto forget_counts = [&net] { // a store that was emptied, or filled again from an old copy
    const auto key = zlink::placement::capacity_key("m", net.host(0).mesh("m").rid());
    auto counts = *stored<zlink::placement::capacity_record>(net, key).record;
    counts.spots = {};
    counts.types.clear();
    put(net, key, zlink::placement::encode(counts));
  };
  net.run(rouse(net.host(0), "a", "x"));
  net.run(rouse(net.host(0), "b", "x"));
  forget_counts();
  CHECK(failure(net, rouse(net.host(0), "c", "x")) == error_kind::unavailable); // of the type
  CHECK(net.run(open_room(net.host(0), "r")).state == zlink::spot_create_state::created);
  forget_counts();
  CHECK(failure(net, open_room(net.host(0), "s")) == error_kind::unavailable);
  CHECK(on.count("factory") == 3);
  CHECK_FALSE(row_of(net, "c"));
  CHECK_FALSE(row_of(net, "s"));
}

TEST_CASE("C-37 C-36 places come back from Spots that end, fail or are refused") {
  stage on;
  mesh net{1};
  net.start([&on](zlink::host& host) {
    serve(on)(host);
    host.mesh("m").spot_limit(1);
  });
  for (int round = 0; round < 3; ++round) {
    on.answer = [](const std::string&) { return zlink::reject(); };
    CHECK(net.run(open_room(net.host(0), "r")).state == zlink::spot_create_state::rejected);
    on.answer = nullptr;
    on.at = [](const std::string& step, const std::string&) {
      if (step == "initialize")
        throw std::runtime_error{"not today"};
    };
    CHECK(failure(net, open_room(net.host(0), "r")) == error_kind::internal_failure);
    CHECK(failure(net, rouse(net.host(0), "a", "x")) == error_kind::internal_failure);
    on.at = nullptr;
    const auto made = net.run(open_room(net.host(0), "r"));
    CHECK(made.state == zlink::spot_create_state::created);
    CHECK(net.run(net.host(0).spots().close(made.spot)));
  }
}

} // namespace
} // namespace creation_test
