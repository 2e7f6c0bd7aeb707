// Joins under many orders of events (05 sections 4, 8 and 12).
#include "tests/contract/membership/join_scene.hpp"

namespace membership_test {
namespace {

using words = std::vector<std::string>;

TEST_CASE("J-65 J-102 everything that has not started waits behind the Join, in its order, and runs once, as a member") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    scene s{2, seed};
    auto& net = s.net;
    auto& on = s.on;
    INFO("seed ", seed);
    barrier open;
    on.hold("handle ada first", open);
    auto first = talk(net.host(0), "ada", "first");
    net.run_until([&] { return open.waiting() == 1; });
    net.run(send_off(net.host(0), "ada", "r"));
    for (int i = 0; i < 4; ++i)
      net.run(tell_person(net.host(0), "ada", std::to_string(i)));
    open.open();
    for (int i = 4; i < 8; ++i) {
      net.advance(std::chrono::milliseconds{(seed * 7 + static_cast<std::uint64_t>(i)) % 5});
      net.run(tell_person(net.host(0), "ada", std::to_string(i)));
    }
    net.run(std::move(first));
    net.run(talk(net.host(0), "ada", "last"));
    words handled;
    bool completed = false;
    for (const auto& one : on.trace) {
      completed = completed || one.starts_with("completed");
      if (one.starts_with("handle ada") && !one.starts_with("handle ada first")) {
        CHECK(completed);
        handled.push_back(one);
      }
    }
    words expected;
    for (int i = 0; i < 8; ++i)
      expected.push_back("handle ada " + std::to_string(i) + " in r");
    expected.push_back("handle ada last in r");
    CHECK(handled == expected);
  }
}

TEST_CASE("J-9 J-167 C-114 joins, leaves and closes that meet: one outcome each, members and rows agree") {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    stage on;
    mesh net{{.hosts = 2, .seed = seed, .max_link_delay = 3ms, .max_store_delay = 4ms}};
    INFO("seed ", seed);
    net.start(serve_all(on));
    const std::string names[] = {"ada", "bob", "cyd"};
    std::map<std::string, std::string> rid;
    for (const auto& name : names)
      rid[name] = net.run(make_person(net.host(0), name)).actor.node_rid;
    const auto room = open_room(net, "r");
    open_room(net, "s");
    std::vector<zlink::task<void>> sends;
    std::vector<zlink::task<bool>> closes;
    std::uint64_t dice = seed;
    for (int i = 0; i < 12; ++i) {
      dice = dice * 6364136223846793005ULL + 1442695040888963407ULL;
      const auto& who = names[(dice >> 33) % 3];
      const std::string to = (dice >> 40) % 3 == 0 ? "" : (dice >> 40) % 3 == 1 ? "r" : "s";
      sends.push_back(send_off(net.host((dice >> 50) % 2), who, to));
      if (i % 5 == 4)
        closes.push_back(net.host((dice >> 52) % 2).spots().close(room));
      net.advance(std::chrono::milliseconds{(dice >> 55) % 4});
    }
    for (auto& sent : sends)
      net.run(std::move(sent));
    for (auto& close : closes)
      static_cast<void>(net.run(zlink::as_result(std::move(close))));
    net.run_until([&] { return on.ends.size() == 12; });
    net.run_until_idle();
    std::set<std::string> operations;
    for (const auto& end : on.ends)
      operations.insert(end.operation_id);
    CHECK(operations.size() == 12);
    for (const auto& name : names) {
      const auto row = person_row(net, name);
      REQUIRE(row);
      const auto heard = net.run(talk(net.host(0), name, "where"));
      CHECK(heard.spot == row->member_of->spot_id);
      if (const auto spot = creation_test::row_of(net, row->member_of->spot_id)) {
        CHECK(spot->node == row->node); // J-9
        CHECK(names_in(net, row->member_of->spot_id).find(name) != std::string::npos);
      }
    }
  }
}

TEST_CASE("J-118 J-55 at the deadline exactly one outcome wins, and the row agrees with it") {
  int accepted = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    scene s{2, seed};
    auto& net = s.net;
    auto& on = s.on;
    INFO("seed ", seed);
    barrier open;
    on.hold("gate", open);
    net.run(send_off(net.host(0), "ada", "r"));
    net.run_until([&] { return open.waiting() == 1; });
    net.advance(1'980ms + std::chrono::milliseconds{seed % 24});
    open.open();
    net.run_until([&] { return on.ends.size() == 1; });
    net.advance(1s);
    REQUIRE(on.ends.size() == 1);
    const bool in = on.ends[0].outcome == join_outcome::accepted;
    accepted += in ? 1 : 0;
    if (!in)
      CHECK(on.ends[0].error->kind() == error_kind::deadline_exceeded);
    CHECK((person_row(net, "ada")->member_of->spot_id == "r") == in);
    CHECK(names_in(net, "r") == (in ? "ada " : ""));
    CHECK(on.count("joined r ada") == (in ? 1 : 0));
    CHECK(net.run(net.host(0).spots().close(s.room)) == !in); // nobody is expected any more
  }
  CHECK(accepted > 100);
  CHECK(accepted < 900);
}

} // namespace
} // namespace membership_test
