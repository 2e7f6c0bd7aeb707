// Calls of CAF actors to Spots by `spot_actor`: deadlines, room, names, and what is CAF's own.
#include "tests/contract/messaging/probe_spots.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

namespace zlink::test::messaging {
namespace {

using namespace std::chrono_literals;
using testing::mesh;

struct point {
  int x = 0;
  int y = 0;
};
struct turned_point {
  int y = 0;
  int x = 0;
};
ZLINK_PACKET(point, "address.point", x, y)
ZLINK_PACKET(turned_point, "address.turned_point", y, x)

/// Serves `ask` under another name, `point` by a type of another name, and plain notes.
class renamed final : public spot<> {
public:
  using spot::spot;
  void configure() override {
    context().handlers().add_handler<&renamed::on_ask>("address.custom").add_handler<&renamed::on_point>("address.point");
  }

private:
  answer on_ask(const ask& m, const message_context&) { return {m.text + '!'}; }
  answer on_point(const turned_point& p, const message_context&) { return {std::to_string(p.x) + ',' + std::to_string(p.y)}; }
};

template <class Question>
void caf_ask(mesh& net, const caf::actor& whom, Question question, std::string& end) {
  net.system().spawn([whom, question, &end](caf::event_based_actor* self) {
    self->request(whom, caf::infinite, question)
      .then([&end](const answer& a) { end = a.text; }, [&end](const caf::error& e) { end = caf::to_string(e); });
  });
}

TEST_CASE("M-29 M-4 a packet name that registration gave counts for CAF messages too, near and far") {
  for (std::size_t from : {0, 1}) {
    CAPTURE(from);
    std::string asked;
    std::string pointed;
    mesh net{2};
    net.start([](host& started, std::size_t index) {
      auto& node = started.add_mesh("m");
      node.object_server().add_spot_factory<renamed>("renamed", [](auto& factory) { factory.disable_relocation(); });
      if (index != 0)
        node.placement_weight(0);
    });
    net.run(net.host(0).spots().get_or_create("c", "renamed").submit());
    caf_ask(net, net.host(from).spot_actor("c"), ask{"x"}, asked);
    caf_ask(net, net.host(from).spot_actor("c"), point{1, 2}, pointed);
    net.run_until_idle();
    CHECK(asked.find("not_found") != std::string::npos);
    CHECK_FALSE(pointed.empty());
    CHECK(pointed.find("not_found") == std::string::npos);
    CHECK(net.run(net.host(from).spots().request_to_spot("c", point{1, 2}).submit<answer>()).text == pointed);
  }
}

TEST_CASE("D-16 X-150 a CAF request to a Spot ends at its deadline, wherever the Spot lives") {
  for (std::size_t from : {0, 1}) {
    CAPTURE(from);
    evidence log;
    std::string end;
    mesh net{2};
    start_probes(net, log);
    net.run(ask_at(net.host(0), "c", "alive"));
    caf_ask(net, net.host(from).spot_actor("c"), held_ask{"h"}, end);
    net.advance(29s);
    CHECK(end.empty());
    net.advance(2s);
    CHECK(end.find("deadline_exceeded") != std::string::npos);
    log.gate.open();
    net.run_until_idle();
  }
}

TEST_CASE("X-94 D-3 a CAF request waits for room until its deadline, not as long as a send") {
  for (std::size_t from : {0, 1}) {
    CAPTURE(from);
    evidence log;
    std::string end;
    mesh net{{.hosts = 2, .adjust = [](std::size_t, host_options& o) { o.application_lane_records = 1; }}};
    start_probes(net, log);
    net.run(ask_at(net.host(0), "c", "alive"));
    net.run(net.host(0).spots().send_to_spot("c", held_note{"h"}).submit());
    net.run_until_idle();
    caf_ask(net, net.host(from).spot_actor("c"), ask{"later"}, end);
    net.advance(5s);
    CHECK(end.empty());
    log.gate.open();
    net.run_until_idle();
    CHECK(end == "later!");
  }
}

TEST_CASE("D-13 M-58 exit messages and ended links are CAF's own: they wake no Spot") {
  for (std::size_t from : {0, 1}) {
    evidence log;
    mesh net{2};
    start_probes(net, log);
    const auto before = log.incarnations;
    const auto address = net.host(from).spot_actor("c", {.instance_spot = "probe"});
    caf::anon_send_exit(address, caf::exit_reason::user_shutdown);
    net.system().spawn([address](caf::event_based_actor* self) {
      self->link_to(address);
      self->quit(caf::exit_reason::user_shutdown);
    });
    net.run_until_idle();
    CHECK(log.incarnations == before);
  }
}

TEST_CASE("X-149 M-13 options of spot_actor that cannot be meant are refused") {
  evidence log;
  mesh net{1};
  start_probes(net, log);
  auto& host = net.host(0);
  for (const auto limit : {std::chrono::milliseconds{-5}, std::chrono::milliseconds{3'000'000'000}, std::chrono::milliseconds::max()})
    CHECK_THROWS_AS(static_cast<void>(host.spot_actor("c", {.send_timeout = limit})), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(host.spot_actor("c", {.in_mesh = "m"})), std::invalid_argument);
}

} // namespace
} // namespace zlink::test::messaging
