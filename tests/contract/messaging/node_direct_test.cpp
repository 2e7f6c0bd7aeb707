// Messages to a node, and the clients inside and outside of Spots (03 sections 3, 8, 13).
#include "tests/contract/messaging/probe_spots.hpp"

#include "zlink/execution/turn.hpp"

#include <future>
#include <optional>
#include <stop_token>
#include <thread>

namespace zlink::test::messaging {
namespace {

using namespace std::chrono_literals;
using testing::mesh;

/// What the node handlers of one host saw.
struct node_log {
  std::vector<std::string> runs;
};

void serve_nodes(host& started, std::size_t index, std::vector<node_log>& logs, evidence& log) {
  auto& node = started.add_mesh("m");
  auto& mine = logs.at(index);
  serve_probes(node, log);
  node.send_timeout(2s);
  node.add_node_handler([&mine](const note& m, const message_context&) { mine.runs.push_back(m.text); });
  node.add_node_handler([&mine, index](const ask& m, const message_context&) {
    mine.runs.push_back(m.text);
    return answer{m.text + " at " + std::to_string(index)};
  });
  node.add_node_handler([](const describe&, const message_context& context) { return describe_context(context); });
  if (index != 0)
    node.placement_weight(0);
}

struct node_mesh {
  explicit node_mesh(std::size_t hosts, std::uint64_t seed = 1) : logs(hosts), net({.hosts = hosts, .seed = seed}) {
    net.start([this](host& started, std::size_t index) { serve_nodes(started, index, logs, log); });
    for (std::size_t i = 0; i < hosts; ++i)
      rids.push_back(net.host(i).mesh("m").rid());
  }
  task<answer> ask_node(std::size_t from, const std::string& rid, std::string text) {
    return net.host(from).nodes().request_to_node("m", rid, ask{std::move(text)}).submit<answer>();
  }

  std::vector<node_log> logs;
  evidence log;
  std::vector<std::string> rids;
  mesh net;
};

TEST_CASE("M-88 a node message runs at exactly that node, and nowhere if that node is gone") {
  node_mesh all{3};
  auto& net = all.net;
  for (std::size_t from = 0; from < 3; ++from)
    for (std::size_t to = 0; to < 3; ++to) {
      const auto text = std::to_string(from) + " to " + std::to_string(to);
      CHECK(net.run(all.ask_node(from, all.rids[to], text)).text == text + " at " + std::to_string(to));
      net.run(net.host(from).nodes().send_to_node("m", all.rids[to], note{text}).submit());
      net.run_until_idle();
      CHECK(all.logs[to].runs == std::vector<std::string>{text, text});
      all.logs[to].runs.clear();
    }
  net.kill(2);
  CHECK_FALSE(net.run(as_result(all.ask_node(0, all.rids[2], "x"))).has_value());
  net.advance(1min);
  for (const auto& log : all.logs)
    CHECK(log.runs.empty());
}

TEST_CASE("M-89 the node itself is a target, an unknown one not_found, one that is not ready waits for the send timeout") {
  node_mesh all{2};
  auto& net = all.net;
  CHECK(net.run(all.ask_node(0, all.rids[0], "self")).text == "self at 0");
  CHECK(failure(net, all.ask_node(0, "no-such-node", "x")) == error_kind::not_found);
  CHECK(failure(net, net.host(0).nodes().send_to_node("m", "no-such-node", note{"x"}).submit())
        == error_kind::not_found);
  net.partition({0}, {1});
  net.run_until_idle(); // the loss is noticed
  const auto began = net.elapsed();
  CHECK(failure(net, all.ask_node(0, all.rids[1], "x")) == error_kind::unavailable);
  CHECK(net.elapsed() - began >= 2s); // the send timeout
  CHECK(net.elapsed() - began < 3s);
}

TEST_CASE("M-89 M-148 what waits for a node to become ready arrives in order, also with what is sent just then") {
  std::size_t refused = 0; // with most seeds the first ones' patience ends before the nodes have met
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    node_mesh all{2, seed};
    auto& net = all.net;
    std::vector<std::string> accepted; // in the order of their sending
    std::vector<std::pair<std::string, std::optional<result<void>>>> sent(200);
    net.partition({0}, {1});
    net.run_until_idle();
    for (std::size_t i = 0; i < sent.size(); ++i) {
      auto& [text, outcome] = sent[i];
      text = std::to_string(i);
      net.host(0).nodes().send_to_node("m", all.rids[1], note{text}).submit().then(
        [&kept = outcome](result<void> ended) { kept = std::move(ended); });
      if (i == 5)
        net.heal(); // it takes seconds until they have found each other again
      net.advance(50ms);
    }
    net.advance(5s);
    for (auto& [text, outcome] : sent) {
      REQUIRE(outcome.has_value());
      if (outcome->has_value())
        accepted.push_back(text);
      else
        ++refused;
      if (!outcome->has_value())
        CHECK(outcome->error().kind() == error_kind::unavailable);
    }
    CAPTURE(seed);
    CHECK(accepted.size() > 50);
    CHECK(all.logs[1].runs == accepted);
  }
  CHECK(refused > 100);
}

TEST_CASE("M-89 a draining node decides itself: it takes nothing new, and nobody takes its place") {
  node_mesh all{2};
  auto& net = all.net;
  net.run(ask_at(net.host(0), "c", "alive"));
  auto held = net.host(0).spots().request_to_spot("c", held_ask{"held"}).submit<answer>();
  net.run_until([&] { return all.log.gate.waiting() == 1; });
  auto ending = net.host(0).shutdown();
  net.run_until([&] { return net.host(0).status().state == host_state::draining; });
  CHECK(failure(net, all.ask_node(1, all.rids[0], "x")) == error_kind::shutting_down);
  net.run(net.host(1).nodes().send_to_node("m", all.rids[0], note{"x"}).submit());
  all.log.gate.open();
  static_cast<void>(net.run(as_result(std::move(held))));
  net.run(std::move(ending));
  for (const auto& log : all.logs)
    CHECK(log.runs.empty());
}

TEST_CASE("M-89 an object client takes no node messages, but may send them") {
  std::vector<node_log> logs(2);
  evidence log;
  mesh net{2};
  net.start([&](host& started, std::size_t index) {
    if (index == 0)
      serve_nodes(started, index, logs, log);
    else
      started.add_mesh("m").object_client();
  });
  const auto server = net.host(0).mesh("m").rid();
  const auto client = net.host(1).mesh("m").rid();
  for (std::size_t from : {0, 1})
    CHECK(failure(net, net.host(from).nodes().request_to_node("m", client, ask{"x"}).submit<answer>())
          == error_kind::not_found);
  CHECK(net.run(net.host(1).nodes().request_to_node("m", server, ask{"y"}).submit<answer>()).text == "y at 0");
}

TEST_CASE("M-90 node and Spot handlers of one packet name never cross over") {
  node_mesh all{2};
  auto& net = all.net;
  net.run(ask_at(net.host(0), "c", "alive"));
  all.log.runs.clear();
  for (std::size_t from : {0, 1}) {
    CHECK(net.run(all.ask_node(from, all.rids[0], "to node")).text == "to node at 0");
    CHECK(all.log.runs.empty());
    CHECK(net.run(net.host(from).spots().request_to_spot("c", ask{"to spot"}).submit<answer>()).text == "to spot!");
    CHECK(all.logs[0].runs == std::vector<std::string>{"to node"});
    all.log.runs.clear();
    all.logs[0].runs.clear();
    CHECK(failure(net, net.host(from).nodes().request_to_node("m", all.rids[0], held_ask{}).submit<answer>())
          == error_kind::not_found); // a Spot would serve it
  }
}

TEST_CASE("M-91 a node of another mesh is not reached, nor through a mesh this host is not in") {
  std::vector<node_log> logs(2);
  evidence log;
  mesh net{2};
  net.start([&](host& started, std::size_t index) {
    serve_nodes(started, index, logs, log);
    if (index == 0)
      started.add_mesh("other").add_node_handler([](const ask&, const message_context&) { return answer{"other"}; });
  });
  const auto other = net.host(0).mesh("other").rid();
  const auto nodes = net.host(1).nodes();
  CHECK(failure(net, nodes.request_to_node("m", other, ask{"x"}).submit<answer>()) == error_kind::not_found);
  CHECK(failure(net, nodes.request_to_node("other", other, ask{"x"}).submit<answer>()) == error_kind::not_found);
  CHECK(net.run(net.host(0).nodes().request_to_node("other", other, ask{"x"}).submit<answer>()).text == "other");
}

TEST_CASE("M-31 a node handler is told the source RID and the metadata") {
  node_mesh all{2};
  auto& net = all.net;
  for (std::size_t from : {0, 1}) {
    auto call = net.host(from).nodes().request_to_node("m", all.rids[0], describe{}).metadata("color", "red");
    const auto seen = net.run(call.submit<description>());
    CHECK(seen.source == all.rids[from]);
    CHECK(seen.mesh == "m");
    CHECK(seen.color == "red");
    CHECK(seen.packet == "probe.describe");
    CHECK(seen.correlation != "absent");
  }
}

// -- inside and outside -----------------------------------------------------------------------------------------------

TEST_CASE("M-21 outside of turns yield is refused, and nothing is sent") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  for (std::size_t from : {0, 1}) {
    CHECK(failure(net, net.host(from).spots().request_to_spot("c", ask{"x"}).yield<answer>())
          == error_kind::invalid_operation);
    CHECK(failure(net, net.host(from).spots().create("room").yield()) == error_kind::invalid_operation);
  }
  net.run_until_idle();
  CHECK(log.count("x") == 0);
}

TEST_CASE("M-22 the host's client used in a turn belongs to that turn: the same cycle is refused, yield works") {
  evidence log;
  mesh net{1};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  for (const bool by_host : {false, true}) {
    auto cycle = net.host(0).spots().request_to_spot("c", relay{"c", "x", false, by_host});
    const auto ended = net.run(as_result(cycle.submit<answer>()));
    REQUIRE_FALSE(ended.has_value());
    CHECK(ended.error().kind() == error_kind::internal_failure); // the handler let its own refusal pass
    CHECK(ended.error().message().find("invalid_operation") != std::string::npos);
    CHECK(log.count("x") == 0);
    auto yielded = net.host(0).spots().request_to_spot("c", relay{"c", "y", true, by_host});
    CHECK(net.run(yielded.submit<answer>()).text == "relayed y!");
  }
}

TEST_CASE("M-23 Spot clients need an object role, as client or as server; node messages do not") {
  evidence log;
  mesh net{3};
  net.start([&log](host& started, std::size_t index) {
    auto& node = started.add_mesh("m");
    if (index == 0)
      serve_probes(node, log);
    if (index == 1)
      node.object_client();
    if (index != 1)
      node.add_node_handler([](const ask& m, const message_context&) { return answer{"node " + m.text}; });
  });
  for (std::size_t from : {0, 1}) {
    CHECK(net.run(ask_at(net.host(from), "c", "x")).text == "x!");
    CHECK(net.run(net.host(from).spots().get_or_create("r", "room").submit()).spot.spot_id == "r");
    CHECK(net.run(net.host(from).spots().find("c")).has_value());
  }
  const auto spots = net.host(2).spots();
  CHECK(failure(net, spots.request_to_spot("c", ask{"x"}).submit<answer>()) == error_kind::not_configured);
  CHECK(failure(net, spots.send_to_spot("c", note{"x"}).submit()) == error_kind::not_configured);
  CHECK(failure(net, spots.create("room").submit()) == error_kind::not_configured);
  CHECK(failure(net, spots.find("c")) == error_kind::not_configured);
  CHECK(failure(net, spots.close({"r", 1, "m", "n"})) == error_kind::not_configured);
  const auto server = net.host(0).mesh("m").rid();
  const auto none = net.host(2).mesh("m").rid();
  CHECK(net.run(net.host(2).nodes().request_to_node("m", server, ask{"x"}).submit<answer>()).text == "node x");
  CHECK(net.run(net.host(0).nodes().request_to_node("m", none, ask{"x"}).submit<answer>()).text == "node x");
}

/// Blocks in its turn; tells what came of it.
class blocking final : public instance_spot {
public:
  using instance_spot::instance_spot;
  void configure() override { context().handlers().add_packet<&blocking::on_ask>(); }

private:
  answer on_ask(const ask&, const message_context&) {
    try {
      return sync_wait(context().host().spots().request_to_spot("other", ask{"x"}).submit<answer>());
    } catch (const operation_failed& what) {
      return answer{to_string(what.kind())};
    }
  }
};

TEST_CASE("M-21 X-43 outside of turns one may wait, callbacks come from the dispatcher, and there one may not") {
  host here;
  here.add_mesh("m").object_server().add_instance_spot_factory<blocking>(
    "blocking", [](auto& factory) { factory.disable_relocation(); });
  here.start();
  const auto call = [&here] {
    return here.spots().request_to_spot("c", ask{"x"}).instance_spot("blocking").submit<answer>();
  };
  CHECK(sync_wait(call()).text == "invalid_operation"); // the main thread may, the handler may not
  struct told {
    std::thread::id thread;
    bool in_turn = true;
    error_kind refused{};
  };
  std::promise<told> heard;
  call().then([&](result<answer>) {
    told what;
    what.thread = std::this_thread::get_id();
    what.in_turn = detail::current_turn() != nullptr;
    try {
      sync_wait(call());
    } catch (const operation_failed& failure) {
      what.refused = failure.kind();
    }
    heard.set_value(what);
  });
  const auto what = heard.get_future().get();
  CHECK(what.thread != std::this_thread::get_id());
  CHECK_FALSE(what.in_turn);
  CHECK(what.refused == error_kind::invalid_operation);
  CHECK_THROWS_AS(sync_wait(here.spots().request_to_spot("c", ask{"x"}).yield<answer>()), operation_failed);
}

// -- what is kept beyond the end of its Spot ------------------------------------------------------------------------------

/// Leaves its context and its outbound behind.
class leaving final : public instance_spot {
public:
  struct legacy {
    std::optional<instance_spot_context> context;
    std::optional<spot_outbound> outbound;
    std::optional<spot_send_call> call;
  };
  leaving(instance_spot_context context, legacy& left) : instance_spot(std::move(context)), left_(left) {}
  void configure() override { context().handlers().add_packet<&leaving::on_ask>(); }
  task<void> on_closing(const spot_closing_context&, std::stop_token) override {
    left_.outbound.emplace(context().outbound());
    left_.call.emplace(context().outbound().send_to_spot("other", note{"late"}));
    auto still = context().outbound().send_to_spot("other", note{"in time"});
    auto sending = still.submit();
    co_await std::move(sending);
    left_.context.emplace(std::move(const_cast<instance_spot_context&>(context())));
  }

private:
  task<answer> on_ask(const ask& m, const message_context&) {
    co_await context().close();
    co_return answer{m.text};
  }
  legacy& left_;
};

TEST_CASE("M-24 what is kept of a Spot that has closed tells its identity, and sends nothing: unavailable") {
  leaving::legacy left;
  evidence log;
  mesh net{2};
  net.start([&](host& started, std::size_t index) {
    auto& node = started.add_mesh("m");
    serve_probes(node, log).add_instance_spot_factory<leaving>("leaving", [&left](auto& factory) {
      factory.disable_relocation().construct_with(
        [&left](instance_spot_context context) { return std::make_unique<leaving>(std::move(context), left); });
    });
    if (index != 0)
      node.placement_weight(0);
  });
  net.run(ask_at(net.host(1), "other", "alive"));
  net.run(net.host(1).spots().request_to_spot("c", ask{"x"}).instance_spot("leaving").submit<answer>());
  net.run_until_idle();
  REQUIRE(left.context.has_value());
  CHECK(log.count("in time") == 1);
  CHECK(left.context->spot_id() == "c");
  CHECK(left.context->mesh_name() == "m");
  CHECK(left.context->node_rid() == net.host(0).mesh("m").rid());
  CHECK(left.context->object_generation() > 0);
  CHECK(failure(net, left.call->submit()) == error_kind::unavailable);
  CHECK(failure(net, left.outbound->send_to_spot("other", note{"late"}).submit()) == error_kind::unavailable);
  CHECK(failure(net, left.context->outbound().request_to_spot("other", ask{"late"}).submit<answer>())
        == error_kind::unavailable);
  CHECK(failure(net, left.context->ask<int>(caf::actor{}, 1s, 1)) == error_kind::unavailable);
  CHECK_FALSE(net.run(left.context->close()));
  net.run_until_idle();
  CHECK(log.count("late") == 0);
  left = {};
}

} // namespace
} // namespace zlink::test::messaging
