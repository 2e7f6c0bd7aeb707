// What an Actor has begun and does not await: it is part of the Actor all the same.
#include "tests/contract/membership/join_scene.hpp"

namespace membership_test {
namespace {

/// Outlives the mesh, whose end ends waits as well.
struct wait_evidence {
  std::vector<std::string> ends_of_wait;
};

/// In Ada's handler: waits for more peers than there will ever be, and notes how that ended.
struct waiting_scene : wait_evidence, scene {
  waiting_scene() {
    on.handler = [this](zlink::actor& who, const std::string& word) -> zlink::task<void> {
      auto waiting = who.context().host().mesh("m").until_peers_ready(99);
      std::move(waiting).then([this](zlink::result<void> outcome) {
        ends_of_wait.push_back(outcome ? "came" : outcome.is_cancelled() ? "cancelled" : to_string(outcome.error().kind()));
      });
      if (word == "join")
        who.context().join_spot("r").timeout(3s).defer();
      co_return;
    };
  }
};

TEST_CASE("J-86 J-55 a wait for peers that an Actor has begun keeps its Join from the commit") {
  waiting_scene s;
  auto& net = s.net;
  net.run(talk(net.host(0), "ada", "join"));
  net.advance(2'999ms);
  CHECK(s.on.ends.empty());
  net.advance(1ms);
  net.run_until([&] { return s.on.ends.size() == 1; });
  REQUIRE(s.on.ends.front().error);
  CHECK(s.on.ends.front().error->kind() == error_kind::deadline_exceeded);
  CHECK(s.on.count("joined r") == 0);
  CHECK_FALSE(net.run(net.host(0).actors().find_spot("ada")));
  CHECK(s.ends_of_wait.empty());
}

TEST_CASE("J-134 D-5 an Actor that ends waits for what it has begun up to the deadline, and then ends that") {
  waiting_scene s;
  auto& net = s.net;
  net.run(talk(net.host(0), "ada", "x"));
  auto ending = net.host(0).actors().destroy(s.ada.actor);
  net.run_until([&] { return s.on.alive == 0; });
  CHECK(ending.ready());
  CHECK(s.ends_of_wait == std::vector<std::string>{"unavailable"});
}

TEST_CASE("J-130 J-150 a room that goes over its members and sends each home passes nobody over") {
  for (const std::size_t many : {1, 2, 7}) {
    CAPTURE(many);
    scene s;
    auto& net = s.net;
    auto& on = s.on;
    std::vector<std::string> came{"ada"};
    for (std::size_t i = 1; i < many; ++i) {
      came.push_back("p" + std::to_string(i));
      net.run(make_person(net.host(0), came.back()));
    }
    for (const auto& id : came)
      move_person(net, on, id, "r");
    net.run(net.host(0).spots().request_to_spot("r", say{"out"}).submit<said>());
    net.run_until_idle();
    CHECK(on.sent_home == came); // in the order in which they came
    CHECK(net.run(net.host(0).spots().request_to_spot("r", say{"list"}).submit<said>()).word.empty());
    for (const auto& id : came)
      CHECK(on.count("left r " + id) == 1);
    move_person(net, on, "ada", "r");
    CHECK(net.run(net.host(0).spots().request_to_spot("r", say{"list"}).submit<said>()).word == "ada ");
  }
}

TEST_CASE("members are told in the order in which they came, whoever has left meanwhile") {
  scene s;
  auto& net = s.net;
  auto& on = s.on;
  std::vector<std::string> inside;
  for (int i = 0; i < 9; ++i) {
    inside.push_back("p" + std::to_string(i));
    net.run(make_person(net.host(0), inside.back()));
    move_person(net, on, inside.back(), "r");
  }
  const auto told = [&] { return net.run(net.host(0).spots().request_to_spot("r", say{"list"}).submit<said>()).word; };
  std::uint64_t draw = 7;
  for (int i = 0; i < 60; ++i) {
    draw = draw * 6364136223846793005ULL + 1442695040888963407ULL;
    const std::string id = "p" + std::to_string((draw >> 33) % 9);
    const auto at = std::ranges::find(inside, id);
    const bool was_inside = at != inside.end();
    if (was_inside)
      inside.erase(at);
    else
      inside.push_back(id);
    move_person(net, on, id, was_inside ? "" : "r");
    std::string wanted;
    for (const auto& who : inside)
      wanted += who + ' ';
    REQUIRE(told() == wanted);
  }
}

} // namespace
} // namespace membership_test
