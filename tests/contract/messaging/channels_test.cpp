// Messages to one of the nodes that serve a channel (03 section 14).
#include "tests/contract/messaging/probe_spots.hpp"

#include <algorithm>
#include <functional>
#include <stop_token>
#include <type_traits>

namespace zlink::test::messaging {
namespace {

using namespace std::chrono_literals;
using testing::mesh;

/// What the handlers of one host saw.
struct desk {
  std::vector<std::string> runs;
  std::vector<std::string> filtered;
  latch gate;
};

class noting final : public message_filter {
public:
  explicit noting(desk& log) : log_(log) {}
  task<void> apply(const filter_context& context, filter_next& next) override {
    log_.filtered.push_back(to_string(context.kind()));
    return next();
  }

private:
  desk& log_;
};

void serve_channel(mesh_node& node, desk& log, std::size_t index) {
  node.add_filter([&log] { return std::make_unique<noting>(log); });
  node.add_channel_server("desk")
    .add_handler([&log](const note& m, const message_context&) { log.runs.push_back(m.text); })
    .add_handler([&log, index](const ask& m, const message_context&) {
      log.runs.push_back(m.text);
      return answer{std::to_string(index)};
    })
    .add_handler([](const describe&, const message_context& context) { return describe_context(context); })
    .add_handler([&log](const held_ask& m, const message_context&) -> task<answer> {
      return [](desk& kept, std::string text) -> task<answer> {
        kept.runs.push_back("begin " + text);
        co_await kept.gate.wait();
        co_return answer{text + "!"};
      }(log, m.text);
    });
}

/// Host 0 is a client of channel "desk", all others serve it; their routing ids are in the order of their numbers.
struct desk_mesh {
  explicit desk_mesh(std::size_t hosts, std::uint64_t seed = 1, std::vector<std::uint32_t> weights = {})
    : desks(hosts), net({.hosts = hosts, .seed = seed}) {
    net.start([&](host& started, std::size_t index) {
      auto& node = started.add_mesh("m");
      node.send_timeout(2s);
      node.rid_prefix(std::string(1, static_cast<char>('a' + index)));
      if (index == 0) {
        node.add_channel_client("desk");
        return;
      }
      serve_channel(node, desks[index], index);
      if (index <= weights.size())
        node.channel_weight("desk", weights[index - 1]);
    });
  }
  task<answer> call(std::string text = "x") {
    return net.host(0).channels().request_to_channel("desk", ask{std::move(text)}).submit<answer>();
  }
  /// The hosts that so many calls reach, one after the other.
  std::string order(int calls) {
    std::string seen;
    for (int i = 0; i < calls; ++i)
      seen += net.run(call()).text;
    return seen;
  }

  std::vector<desk> desks;
  mesh net;
};

std::vector<std::string> mistakes_of(std::function<void(host&)> registration) {
  mesh net{1};
  try {
    net.start(std::move(registration));
  } catch (const configuration_error& what) {
    return what.mistakes().empty() ? std::vector<std::string>{what.what()} : what.mistakes();
  }
  return {};
}

TEST_CASE("M-92 M-93 M-96 a node is client or server of a channel, once, on one mesh, with a weight in 0..10000") {
  CHECK(mistakes_of([](host& h) { h.add_mesh("m").add_channel_client("c").add_channel_server("c"); }).size() == 1);
  CHECK(mistakes_of([](host& h) {
          h.add_mesh("m").add_channel_server("c");
          h.mesh("m").add_channel_client("c");
        }).size() == 1);
  CHECK(mistakes_of([](host& h) { h.add_mesh("m").add_channel_client("c").add_channel_client("c"); }).size() == 1);
  const auto twice = mistakes_of([](host& h) {
    h.add_mesh("m").add_channel_client("c");
    h.add_mesh("n").add_channel_server("c");
  });
  REQUIRE(twice.size() == 1);
  CHECK(twice[0].find("\"m\"") != std::string::npos);
  CHECK(twice[0].find("\"n\"") != std::string::npos);
  CHECK(mistakes_of([](host& h) { h.add_mesh("m").add_channel_server("c").weight(10'001); }).size() == 1);
  CHECK(mistakes_of([](host& h) { h.add_mesh("m").add_channel_client("c").channel_weight("c", 1); }).size() == 1);
  CHECK(mistakes_of([](host& h) { h.add_mesh("m").add_channel_server("c").weight(10'000).weight(0); }).empty());
  for (const auto& bad : {std::string{}, std::string(256, 'x'), std::string{"\xff"}}) {
    mesh net{1};
    net.start([&](host& h) {
      CHECK_THROWS_AS(h.add_mesh("m").add_channel_client(bad), std::invalid_argument);
      CHECK_THROWS_AS(h.mesh("m").add_channel_server(bad), std::invalid_argument);
    });
    CHECK_THROWS_AS(net.host(0).channels().send_to_channel(bad, note{"x"}), std::invalid_argument);
  }
}

TEST_CASE("M-92 M-94 a client calls and is called by nobody, a server is both; the call types name no member") {
  desk_mesh all{3};
  auto& net = all.net;
  for (int i = 0; i < 4; ++i)
    CHECK(net.run(net.host(1).channels().request_to_channel("desk", ask{"from a server"}).submit<answer>()).text == "2");
  CHECK(all.order(4) == "1212");
  CHECK(all.desks[0].runs.empty());
  net.run(net.host(0).channels().send_to_channel("desk", note{"one way"}).submit());
  net.run_until_idle();
  CHECK(std::ranges::count(all.desks[1].runs, "one way") + std::ranges::count(all.desks[2].runs, "one way") == 1);
  using call_type = decltype(net.host(0).channels().request_to_channel("desk", ask{}));
  static_assert(!std::is_copy_constructible_v<call_type>);
}

TEST_CASE("M-95 M-100 without a member to take it a call ends at once, in the same way for send and request") {
  const auto both = [](desk_mesh& all, const std::string& channel) {
    const auto before = all.net.elapsed();
    const auto request = failure(all.net, all.net.host(0).channels().request_to_channel(channel, ask{"x"}).submit<answer>());
    const auto send = failure(all.net, all.net.host(0).channels().send_to_channel(channel, note{"x"}).submit());
    CHECK(request == send);
    CHECK(all.net.elapsed() == before);
    return send;
  };
  desk_mesh alone{1};
  CHECK(both(alone, "never registered") == error_kind::not_found);
  CHECK(both(alone, "desk") == error_kind::not_found); // nobody serves it

  desk_mesh all{2};
  CHECK(failure(all.net, all.net.host(1).channels().send_to_channel("desk", note{"x"}).submit()) == error_kind::not_found);
  CHECK(all.desks[1].runs.empty()); // the sole server does not call itself
  all.net.host(1).mesh("m").channel_weight("desk", 0);
  all.net.run_until_idle();
  CHECK(both(all, "desk") == error_kind::unavailable);
  all.net.host(1).mesh("m").channel_weight("desk", 100);
  all.net.run_until_idle();
  CHECK(all.order(1) == "1");
  all.net.partition({0}, {1});
  all.net.run_until_idle();
  CHECK(both(all, "desk") == error_kind::unavailable);
  all.net.heal();
  all.net.run(all.net.host(0).mesh("m").until_channel_ready("desk"));
  CHECK(all.order(1) == "1");
}

TEST_CASE("M-97 members are chosen smoothly by weight, ties by routing id, and survivors keep what they have saved") {
  desk_mesh weighted{3, 1, {100, 300}};
  CHECK(weighted.order(8) == "21222122");
  desk_mesh equal{4};
  CHECK(equal.order(6) == "123123");
  desk_mesh many{3, 1, {100, 300}};
  const auto seen = many.order(800);
  CHECK(std::ranges::count(seen, '1') == 200);

  desk_mesh changing{4, 1, {100, 300, 0}};
  CHECK(changing.order(1) == "2"); // saved: 100, -100
  changing.net.host(3).mesh("m").channel_weight("desk", 100);
  changing.net.run_until_idle();
  CHECK(changing.order(1) == "1"); // 200, 200, 100: the smaller routing id
}

TEST_CASE("M-96 M-101 a weight that changes at run time counts for what starts later, and 0 takes out of new selections") {
  desk_mesh all{3};
  auto& net = all.net;
  auto& node = net.host(1).mesh("m");
  CHECK_THROWS_AS(node.channel_weight("desk", 10'001), configuration_error);
  CHECK_THROWS_AS(node.channel_weight("nobody", 1), configuration_error);
  auto held = net.host(0).channels().request_to_channel("desk", held_ask{"held"}).submit<answer>();
  net.run_until([&] { return all.desks[1].gate.waiting() == 1; });
  node.channel_weight("desk", 0);
  net.run_until_idle();
  CHECK(all.order(6) == "222222");
  all.desks[1].gate.open();
  CHECK(net.run(std::move(held)).text == "held!");
  node.channel_weight("desk", 100);
  net.run_until_idle();
  const auto seen = all.order(6);
  CHECK(std::ranges::count(seen, '1') == 3);
}

TEST_CASE("M-99 M-63 S-63 the member is fixed when the call is submitted: its loss is the call's end") {
  desk_mesh all{3};
  auto& net = all.net;
  auto held = net.host(0).channels().request_to_channel("desk", held_ask{"held"}).submit<answer>();
  net.run_until([&] { return all.desks[1].gate.waiting() == 1; });
  net.kill(1);
  CHECK(failure(net, std::move(held)) == error_kind::unavailable);
  CHECK(std::ranges::count(all.desks[2].runs, "begin held") == 0);
  CHECK(all.order(3) == "222");
  all.desks[1].gate.open();
}

TEST_CASE("M-99 a full way to the chosen member is waited for, though another one is free") {
  desk_mesh all{3};
  auto& net = all.net;
  net.mute(0, 1);
  const std::string large(1 << 20, 'x');
  std::vector<task<void>> sends;
  for (int i = 0; i < 16; ++i) // every second one is for the mute member
    sends.push_back(net.host(0).channels().send_to_channel("desk", note{large}).submit());
  net.advance(1s);
  CHECK(all.desks[2].runs.size() == 8);
  int late = 0;
  for (auto& sent : sends) {
    const auto outcome = net.run(as_result(std::move(sent)));
    if (!outcome) {
      CHECK(outcome.error().kind() == error_kind::deadline_exceeded);
      ++late;
    }
  }
  CHECK(late > 0);
  CHECK(all.desks[2].runs.size() == 8);
}

TEST_CASE("M-102 a member that shuts down gets no new work and finishes what it has") {
  desk_mesh all{3};
  auto& net = all.net;
  auto held = net.host(0).channels().request_to_channel("desk", held_ask{"held"}).submit<answer>();
  net.run_until([&] { return all.desks[1].gate.waiting() == 1; });
  auto ending = net.host(1).shutdown();
  net.advance(10ms);
  CHECK(all.order(50) == std::string(50, '2'));
  all.desks[1].gate.open();
  CHECK(net.run(std::move(held)).text == "held!");
  net.run(std::move(ending));
  CHECK(all.order(3) == "222");
}

TEST_CASE("M-31 M-53 M-56 a channel handler knows its channel, and the node's filters stand around it") {
  desk_mesh all{2};
  auto& net = all.net;
  const auto seen =
    net.run(net.host(0).channels().request_to_channel("desk", describe{}).metadata("color", "red").submit<description>());
  CHECK(seen.mesh == "m");
  CHECK(seen.channel == "desk");
  CHECK(seen.topic.empty());
  CHECK(seen.source.empty());
  CHECK(seen.packet == "probe.describe");
  CHECK(seen.color == "red");
  net.run(net.host(0).channels().send_to_channel("desk", note{"x"}).submit());
  net.run_until_idle();
  CHECK(all.desks[1].filtered == std::vector<std::string>{"channel_request", "channel_send"});
  CHECK(failure(net, net.host(0).channels().request_to_channel("desk", unserved{}).submit<answer>()) == error_kind::not_found);
}

TEST_CASE("M-95 M-59 until_channel_ready tells when a member can be chosen, and only where the node takes part") {
  desk_mesh all{2};
  auto& net = all.net;
  net.run(net.host(0).mesh("m").until_channel_ready("desk"));
  CHECK(failure(net, net.host(0).mesh("m").until_channel_ready("else")) == error_kind::not_found);
  net.host(1).mesh("m").channel_weight("desk", 0);
  net.run_until_idle();
  auto waiting = net.host(0).mesh("m").until_channel_ready("desk");
  net.advance(1s);
  std::stop_source stop;
  auto cancelled = net.host(0).mesh("m").until_channel_ready("desk", stop.get_token());
  stop.request_stop();
  CHECK(net.run(as_result(std::move(cancelled))).is_cancelled());
  net.host(1).mesh("m").channel_weight("desk", 1);
  net.run(std::move(waiting));
}

TEST_CASE("M-32 a Spot calls a channel, also with yield") {
  evidence log;
  desk seen;
  mesh net{2};
  struct caller final : instance_spot {
    using instance_spot::instance_spot;
    void configure() override { context().handlers().add_packet<&caller::on_ask>(); }
    task<answer> on_ask(const ask& m, const message_context&) {
      auto asking = context().outbound().request_to_channel("desk", ask{m.text}).timeout(1s).yield<answer>();
      auto got = co_await std::move(asking);
      auto telling = context().outbound().send_to_channel("desk", note{"told " + got.text}).submit();
      co_await std::move(telling);
      co_return got;
    }
  };
  net.start([&](host& started, std::size_t index) {
    auto& node = started.add_mesh("m");
    if (index == 1) {
      serve_channel(node, seen, index);
      return;
    }
    node.add_channel_client("desk");
    node.object_server().add_instance_spot_factory<caller>("caller", [](auto& factory) { factory.disable_relocation(); });
  });
  const auto got = net.run(
    net.host(0).spots().request_to_spot("s", ask{"hello"}).instance_spot("caller").submit<answer>());
  CHECK(got.text == "1");
  net.run_until_idle();
  CHECK(seen.runs == std::vector<std::string>{"hello", "told 1"});
}

} // namespace
} // namespace zlink::test::messaging
