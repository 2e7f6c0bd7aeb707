// What the lane of a Join carries: sums that do not fit, ids that are its own, and requests that end once whatever happens to the
// links (05 sections 7 and 8, 06 sections 8 and 17).
#include "tests/contract/relocation/apart_scene.hpp"
#include "tests/contract/relocation/tampered_wire.hpp"

namespace relocation_test {
namespace {

TEST_CASE("J-117 J-103 L-96 a Join whose payload was changed on the way has lost data: nobody tries again, the Actor goes on in order") {
  for (const int what : {0, 1, 2}) { // a byte flipped, a chunk lost, a shorter one
    CAPTURE(what);
    stage on;
    tampered_wire wire;
    barrier gate;
    mesh net{{.hosts = 3, .adjust = wire.taps()}};
    net.start(serve_rooms(on));
    const apart s{net, on};
    wire.sent.clear();
    wire.rule = [&](lane_record& r) {
      if (r.command == control_command::restore_chunk)
        spoil_chunk(r, what);
      return true;
    };
    on.hold("gate", gate);
    net.run(net.host(0).actors().send_to_actor("ada", enter{s.room}).submit());
    net.run_until([&] { return gate.waiting() == 1; });
    auto q1 = say(net.host(s.here), "ada", "q1");
    auto q2 = say(net.host(s.here), "ada", "q2");
    gate.open();
    CHECK(net.run(std::move(q1)).rid == rid_of(net, s.here));
    CHECK(net.run(std::move(q2)).heard == words{"zero", "q1", "q2"});
    CHECK(on.count("completed ada failed data_lost") == 1);
    CHECK(on.count("completed ada") == 1);
    CHECK(wire.count(control_command::restore) == 1);
    CHECK(on.count("restore") + on.count("make") + on.count("joined") + on.count("left") == 0);
    wire.rule = nullptr;
    go_to(net, on, "ada", s.room);
    CHECK(net.run(say(net.host(0), "ada", "in")).room == s.room);
  }
}

TEST_CASE("J-117 L-97 two contents under the identity of a Join: data is lost, neither is used") {
  stage on;
  tampered_wire wire;
  barrier never;
  mesh net{{.hosts = 3, .adjust = wire.taps()}};
  net.start(serve_rooms(on));
  const apart s{net, on};
  on.hold("restore", never); // both are there before it is ready
  net.run(net.host(0).actors().send_to_actor("ada", enter{s.room}).submit());
  net.run_until([&] { return never.waiting() == 1; });
  auto again = wire.last(control_command::restore);
  change<zlink::detail::restore_request>(again, [](auto& request) { request.sum ^= 1; });
  forge(net, s.here, s.there, again);
  net.run_until_idle();
  never.open();
  net.run_until([&] { return on.count("completed ada") == 1; });
  CHECK(on.count("completed ada failed data_lost") == 1);
  CHECK(on.count("joined") + on.count("left") == 0);
  CHECK(net.run(say(net.host(0), "ada", "on")).heard == words{"zero", "on"});
  CHECK(home_of_player(net, "ada") == s.here);
}

TEST_CASE("J-116 the OperationId of a Join is neither its RelocationId nor the id of a reservation or of an aggregate") {
  stage on;
  tampered_wire wire;
  std::vector<zlink::detail::unique_id> others;
  mesh net{{.hosts = 3, .adjust = wire.taps()}};
  net.start(serve_rooms(on));
  const apart s{net, on};
  on.operations.clear();
  wire.sent.clear();
  net.host(s.there).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::relay_ready_sent)
      others.push_back(player_row(net, "ada")->move->reservation);
  };
  go_to(net, on, "ada", s.room);
  REQUIRE(on.operations.size() == 1);
  REQUIRE(others.size() == 1);
  others.push_back(wire.last(control_command::restore).move);
  CHECK(player_row(net, "ada")->move->relocation == others.back());
  CHECK(net.run(start_move(net, s.room, s.there, s.here)).left);
  const auto request = zlink::decode<zlink::detail::restore_request>(wire.last(control_command::restore).body);
  others.push_back(wire.last(control_command::restore).move);
  others.push_back({request.aggregate_high, request.aggregate_low});
  for (const auto& other : others) {
    CHECK(other);
    CHECK(on.operations.front() != zlink::detail::format_uuid_v4(other));
  }
  CHECK(std::set<zlink::detail::unique_id>(others.begin(), others.end()).size() == others.size());
}

/// Requests of all three hosts that wait behind a Join, and those to come; what was told of each.
struct asked_all {
  asked_all(mesh& net, stage& on) : net(net), on(on) {}
  void ask(std::size_t host, const std::string& word) {
    ++sent;
    say(net.host(host), "ada", word, 8s).then([this, word](zlink::result<played> end) {
      ++ends[word];
      if (end)
        answered.insert(word);
    });
  }
  mesh& net;
  stage& on;
  std::size_t sent = 0;
  std::map<std::string, int> ends;
  std::set<std::string> answered;
};

TEST_CASE("L-142 L-202 L-181 requests accepted before a Join and finished behind it, while links are lost at reply time: one end each, run once") {
  int answered = 0;
  int lost = 0;
  for (std::uint64_t seed = 1; seed <= 36; ++seed) {
    CAPTURE(seed);
    stage on;
    barrier gate;
    barrier handler;
    mesh net{{.hosts = 3, .seed = seed, .max_link_delay = 2ms, .max_store_delay = 1ms}};
    asked_all all{net, on};
    net.start(serve_rooms(on));
    const apart s{net, on};
    const std::size_t third = 3 - s.here - s.there;
    on.during = [&](const std::string& step, const std::string&) {
      if (step == "gate")
        return gate.passed();
      return step == "handle" ? handler.passed() : zlink::task<void>::done();
    };
    net.run(net.host(0).actors().send_to_actor("ada", enter{s.room}).submit());
    net.run_until([&] { return gate.waiting() == 1; });
    for (std::size_t host = 0; host < 3; ++host)
      all.ask(host, "q" + std::to_string(host));
    net.advance(10ms); // the source has all of them
    gate.open();
    net.run_until([&] { return handler.waiting() == 1; });
    REQUIRE(on.count("completed ada accepted") == 1);
    const bool undisturbed = seed % 4 == 0;
    const auto cut = [&] {
      if (undisturbed)
        return;
      const std::pair<std::size_t, std::size_t> ways[] = {{third, s.there}, {s.here, s.there}, {third, s.here}};
      const auto [a, b] = ways[seed % 3];
      net.lose_links(a, b);
    };
    if (seed / 3 % 2 == 0)
      cut(); // before the first reply
    handler.open();
    net.advance(std::chrono::microseconds{seed * 97});
    cut(); // or while replies are on their way
    net.advance(10s);
    CHECK(all.ends.size() == all.sent);
    for (const auto& one : all.ends) {
      CHECK_MESSAGE(one.second == 1, one.first);
      CHECK_MESSAGE(on.count("handle ada " + one.first) == 1, one.first);
    }
    CHECK((!undisturbed || all.answered.size() == all.sent));
    answered += static_cast<int>(all.answered.size());
    lost += static_cast<int>(all.sent - all.answered.size());
    on.during = nullptr;
    CHECK(net.run(say(net.host(0), "ada", "last")).heard.size() == 5); // zero, three, last: whatever was told of them
  }
  CHECK(answered > 0);
  CHECK(lost > 0);
}

} // namespace
} // namespace relocation_test
