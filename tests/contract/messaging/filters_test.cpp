// Filters around node handlers (03 section 8).
#include "tests/contract/messaging/probe_spots.hpp"

#include <type_traits>

namespace zlink::test::messaging {
namespace {

using namespace std::chrono_literals;
using testing::mesh;

/// What filters and handlers of one host do and leave behind. Outlives the mesh.
struct filter_log {
  std::vector<std::string> steps;
  std::string behaviour; ///< of the filter "f2"
  int made = 0;
  int alive = 0;
  std::string next_twice;
  latch gate;
};

class tracing final : public message_filter {
public:
  tracing(filter_log& log, std::string name) : log_(log), name_(std::move(name)) {
    ++log_.made;
    ++log_.alive;
  }
  ~tracing() override { --log_.alive; }

  task<void> apply(const filter_context& context, filter_next& next) override {
    const std::string what = name_ == "f2" ? log_.behaviour : "";
    log_.steps.push_back(name_ + " in");
    if (what == "stop")
      co_return;
    if (what == "throw before")
      throw std::runtime_error{"a fault of the filter"};
    if (what == "forget") {
      auto never_awaited = next();
      co_return;
    }
    if (what == "hide") {
      auto passing = as_result(next());
      [[maybe_unused]] const auto hidden = co_await std::move(passing);
    } else {
      auto passing = next();
      co_await std::move(passing);
    }
    log_.steps.push_back(name_ + " out " + std::string{context.message().packet_name()});
    if (what == "twice") {
      auto again = as_result(next());
      const auto second = co_await std::move(again);
      log_.next_twice = second.has_value() ? "passed" : to_string(second.error().kind());
    }
    if (what == "throw after")
      throw std::runtime_error{"a fault of the filter"};
  }

private:
  filter_log& log_;
  std::string name_;
};

/// Tells what a filter may know.
class describing final : public message_filter {
public:
  explicit describing(filter_log& log) : log_(log) {}
  task<void> apply(const filter_context& context, filter_next& next) override {
    const auto seen = describe_context(context.message());
    log_.steps.push_back(std::string{to_string(context.kind())} + " of " + seen.packet + " in " + seen.mesh + " by "
                         + seen.source + (seen.correlation == "absent" ? ", no" : ", with") + " correlation, "
                         + seen.color);
    return next();
  }

private:
  filter_log& log_;
};

void serve_filtered(host& started, filter_log& log, evidence& spots) {
  auto& node = started.add_mesh("m");
  serve_probes(node, spots);
  for (const auto* name : {"f1", "f2"})
    node.add_filter([&log, name] { return std::make_unique<tracing>(log, name); });
  node.add_node_handler([&log](const note& m, const message_context&) { log.steps.push_back("h " + m.text); });
  node.add_node_handler([&log](const ask& m, const message_context&) {
    log.steps.push_back("h " + m.text);
    return answer{m.text + "!"};
  });
  node.add_node_handler([&log](const held_ask& m, const message_context&) -> task<answer> {
    return [](filter_log& kept, std::string text) -> task<answer> {
      auto waiting = kept.gate.wait();
      co_await std::move(waiting);
      co_return answer{std::move(text)};
    }(log, m.text);
  });
  node.add_node_handler([](const fault&, const message_context&) -> answer { throw std::runtime_error{"a fault"}; });
}

struct filtered_mesh {
  filtered_mesh() : net(2) {
    net.start([this](host& started, std::size_t index) {
      if (index == 0)
        serve_filtered(started, log, spots);
      else
        started.add_mesh("m").object_client();
    });
    rid = net.host(0).mesh("m").rid();
  }
  task<answer> ask_node(std::size_t from, std::string text) {
    return net.host(from).nodes().request_to_node("m", rid, ask{std::move(text)}).submit<answer>();
  }
  void send_node(std::size_t from, std::string text) {
    net.run(net.host(from).nodes().send_to_node("m", rid, note{std::move(text)}).submit());
    net.run_until_idle();
  }

  filter_log log;
  evidence spots;
  std::string rid;
  mesh net;
};

using steps = std::vector<std::string>;

TEST_CASE("M-54 filters run in the order of registration going in, the reverse going out") {
  filtered_mesh all;
  for (std::size_t from : {0, 1}) {
    all.log.steps.clear();
    CHECK(all.net.run(all.ask_node(from, "x")).text == "x!");
    CHECK(all.log.steps == steps{"f1 in", "f2 in", "h x", "f2 out probe.ask", "f1 out probe.ask"});
    all.log.steps.clear();
    all.send_node(from, "y");
    CHECK(all.log.steps == steps{"f1 in", "f2 in", "h y", "f2 out probe.note", "f1 out probe.note"});
  }
}

TEST_CASE("M-54 a second next is invalid_operation and runs the handler no second time") {
  filtered_mesh all;
  all.log.behaviour = "twice";
  CHECK(all.net.run(all.ask_node(1, "x")).text == "x!");
  CHECK(all.log.next_twice == "invalid_operation");
  CHECK(std::ranges::count(all.log.steps, "h x") == 1);
}

TEST_CASE("M-55 a filter that does not let pass: a request is rejected, a send ends silently, no handler runs") {
  filtered_mesh all;
  for (const auto* how : {"stop", "forget"})
    for (std::size_t from : {0, 1}) {
      all.log.behaviour = how;
      all.log.steps.clear();
      CHECK(failure(all.net, all.ask_node(from, "x")) == error_kind::rejected);
      CHECK(all.log.steps == steps{"f1 in", "f2 in", "f1 out probe.ask"});
      all.log.steps.clear();
      all.send_node(from, "y");
      CHECK(all.log.steps == steps{"f1 in", "f2 in", "f1 out probe.note"});
      all.log.behaviour.clear();
      CHECK(all.net.run(all.ask_node(from, "after")).text == "after!");
    }
}

TEST_CASE("M-55 a filter makes no reply: the handler's end counts, a fault before it is internal_failure") {
  filtered_mesh all;
  const auto fails = [&] {
    return failure(all.net, all.net.host(1).nodes().request_to_node("m", all.rid, fault{}).submit<answer>());
  };
  CHECK(fails() == error_kind::internal_failure);
  all.log.behaviour = "hide"; // the handler's fault, kept back by the filter
  CHECK(fails() == error_kind::internal_failure);
  all.log.behaviour = "throw after";
  CHECK(all.net.run(all.ask_node(1, "x")).text == "x!");
  all.log.behaviour = "throw before";
  all.log.steps.clear();
  CHECK(failure(all.net, all.ask_node(1, "x")) == error_kind::internal_failure);
  CHECK(all.log.steps == steps{"f1 in", "f2 in"});
}

TEST_CASE("M-53 filters stand around node messages only: none around Spots, none without a handler") {
  filtered_mesh all;
  auto& net = all.net;
  CHECK(net.run(ask_at(net.host(1), "c", "to spot")).text == "to spot!");
  net.run(net.host(1).spots().send_to_spot("c", note{"to spot"}).submit());
  net.run(net.host(0).spots().get_or_create("r", "room").submit());
  net.run(net.host(1).spots().request_to_spot("r", ask{"to room"}).submit<answer>());
  const auto entry = net.host(0).mesh("m").entry_spot_id();
  net.advance(2s);
  CHECK(net.run(net.host(1).spots().request_to_spot(entry, ask{"to entry"}).submit<answer>()).text == "to entry!");
  CHECK(all.log.made == 0);
  const auto unknown = net.host(1).nodes().request_to_node("m", all.rid, unserved{}).submit<answer>();
  net.run_until_idle();
  CHECK(all.log.made == 0);
  net.run(all.ask_node(1, "to node"));
  CHECK(all.log.made == 2);
}

TEST_CASE("X-160 filters are made for each dispatch and disposed once at its end: success, stop, fault, late handler") {
  filtered_mesh all;
  auto& net = all.net;
  int expected = 0;
  for (const auto* how : {"", "stop", "throw before", "throw after"}) {
    all.log.behaviour = how;
    static_cast<void>(net.run(as_result(all.ask_node(1, "x"))));
    net.run_until_idle();
    CHECK(all.log.made == (expected += 2));
    CHECK(all.log.alive == 0);
  }
  all.log.behaviour.clear();
  auto held = net.host(1).nodes().request_to_node("m", all.rid, held_ask{"held"}).submit<answer>();
  auto other = all.ask_node(1, "beside"); // a dispatch of its own, with filters of its own
  CHECK(net.run(std::move(other)).text == "beside!");
  net.run_until_idle();
  CHECK(all.log.alive == 2);
  all.log.gate.open();
  CHECK(net.run(std::move(held)).text == "held");
  net.run_until_idle();
  CHECK(all.log.alive == 0);
  CHECK(all.log.made == (expected += 4));
}

TEST_CASE("M-56 a filter knows the message context and the kind of dispatch, nothing else") {
  static_assert(!std::is_copy_constructible_v<filter_context>);
  filter_log log;
  mesh net{2};
  net.start([&log](host& started, std::size_t index) {
    auto& node = started.add_mesh("m");
    if (index != 0)
      return;
    node.add_filter([&log] { return std::make_unique<describing>(log); });
    node.add_node_handler([](const note&, const message_context&) {});
    node.add_node_handler([](const ask& m, const message_context&) { return answer{m.text}; });
  });
  const auto rid = net.host(0).mesh("m").rid();
  const auto from = net.host(1).mesh("m").rid();
  const auto nodes = net.host(1).nodes();
  net.run(nodes.request_to_node("m", rid, ask{"x"}).metadata("color", "red").submit<answer>());
  net.run(nodes.send_to_node("m", rid, note{"x"}).metadata("color", "blue").submit());
  net.run_until_idle();
  CHECK(log.steps
        == steps{"node_request of probe.ask in m by " + from + ", with correlation, red",
                 "node_send of probe.note in m by " + from + ", no correlation, blue"});
}

TEST_CASE("filters are declared before start only") {
  filtered_mesh all;
  CHECK_THROWS_AS(all.net.host(0).mesh("m").add_filter([&log = all.log] { return std::make_unique<tracing>(log, "x"); }),
                  configuration_error);
}

/// Does not wait for what comes behind it.
class impatient final : public message_filter {
public:
  explicit impatient(std::vector<std::string>& steps) : steps_(steps) {}
  task<void> apply(const filter_context&, filter_next& next) override {
    next().then([&steps = steps_](result<void>) { steps.push_back("handler ended"); });
    steps_.push_back("filter ended");
    return task<void>::done();
  }

private:
  std::vector<std::string>& steps_;
};

task<answer> answer_behind(latch& gate, std::string text) {
  auto waiting = gate.wait();
  co_await std::move(waiting);
  co_return answer{text + '!'};
}

TEST_CASE("X-160 M-142 M-54 a dispatch ends with its handler, though its filter leaves that to a callback") {
  std::vector<std::string> steps;
  latch gate;
  evidence log;
  mesh net{1};
  net.start([&](host& started) {
    auto& node = started.add_mesh("m");
    serve_probes(node, log);
    node.add_filter([&steps] { return std::make_unique<impatient>(steps); });
    node.add_node_handler([&gate](const ask& m, const message_context&) { return answer_behind(gate, m.text); });
  });
  auto asked = net.host(0).nodes().request_to_node("m", net.host(0).mesh("m").rid(), ask{"x"}).submit<answer>();
  net.run_until_idle();
  CHECK_FALSE(asked.ready());
  gate.open();
  CHECK(net.run(std::move(asked)).text == "x!");
  net.run_until_idle();
  CHECK(steps == std::vector<std::string>{"filter ended", "handler ended"});
}

} // namespace
} // namespace zlink::test::messaging
