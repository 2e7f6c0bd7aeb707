// Which handler serves what, and what it is told (03 sections 4, 6, 8, 18).
#include "tests/contract/messaging/forged_peer.hpp"

#include <concepts>
#include <set>

namespace zlink::test::messaging {
namespace {

using namespace std::chrono_literals;
using testing::mesh;

// Another C++ type that travels under the name of `note`, as after a rename.
struct renamed_note {
  std::string text;
};
struct old_order {
  std::string text;
};
ZLINK_PACKET(renamed_note, "probe.renamed_note", text)
struct old_describe {
  int unused = 0;
};
ZLINK_PACKET(old_order, "probe.old_order", text)
ZLINK_PACKET(old_describe, "probe.old_describe", unused)

/// Handlers of several forms, in a Spot of any kind.
template <class Base>
class forms : public Base {
public:
  using Base::Base;
  void configure() override {
    const auto handlers = this->context().handlers();
    const auto& same = handlers.template add_packet<&forms::on_note>();
    CHECK(&same == &handlers); // chains
    handlers.template add_packet<&forms::serve_note>().template add_packet<&forms::on_ask>();
  }

private:
  task<void> on_note(const note& m, const message_context&) {
    last_ = m.text;
    co_return;
  }
  task<answer> serve_note(const note& m, const message_context&) { co_return answer{"request " + m.text}; }
  answer on_ask(const ask&, const message_context&) const { return answer{"last " + last_}; }
  std::string last_;
};

class doubled final : public instance_spot {
public:
  using instance_spot::instance_spot;
  void configure() override { context().handlers().add_packet<&doubled::on_ask>().add_packet<&doubled::also_on_ask>(); }

private:
  answer on_ask(const ask&, const message_context&) { return {}; }
  answer also_on_ask(const ask&, const message_context&) { return {}; }
};

class late final : public instance_spot {
public:
  using instance_spot::instance_spot;
  void configure() override { context().handlers().add_packet<&late::on_ask>(); }

private:
  answer on_ask(const ask& m, const message_context&) {
    try {
      context().handlers().add_packet<&late::on_note>();
    } catch (const operation_failed& what) {
      return answer{m.text + " " + to_string(what.kind())};
    }
    return answer{"registered"};
  }
  void on_note(const note&, const message_context&) {}
};

class named final : public spot<> {
public:
  using spot::spot;
  void configure() override {
    context()
      .handlers()
      .add_handler<&named::on_order>("probe.old_order")
      .add_handler<&named::on_note>("probe.renamed_note")
      .add_handler<&named::on_described>("probe.old_describe");
  }

private:
  answer on_order(const ask& m, const message_context&) { return answer{"ordered " + m.text}; }
  void on_note(const note& m, const message_context&) { last_ = m.text; }
  description on_described(const describe&, const message_context& context) { return describe_context(context); }
  std::string last_;
};

void serve_forms(host& started, std::size_t index) {
  auto& node = started.add_mesh("m");
  auto server = node.object_server();
  const auto moves_not = [](auto& factory) { factory.disable_relocation(); };
  server.add_instance_spot_factory<forms<instance_spot>>("forms", moves_not);
  server.add_spot_factory<forms<spot<>>>("forms_room", moves_not);
  server.add_instance_spot_factory<doubled>("doubled", moves_not);
  server.add_instance_spot_factory<late>("late", moves_not);
  server.add_spot_factory<named>("named", moves_not);
  server.add_entry_spot<forms<entry_spot<>>>();
  if (index != 0)
    node.placement_weight(0);
}

TEST_CASE("M-28 the call decides the kind: one packet served as a send and as a request") {
  mesh net{2};
  net.start(serve_forms);
  net.run(net.host(0).spots().get_or_create("room", "forms_room").submit());
  const std::vector<std::string> ids{"instance", "room", net.host(0).mesh("m").entry_spot_id()};
  net.run(net.host(0).spots().send_to_spot("instance", note{"x"}).instance_spot("forms").submit());
  net.advance(2s); // the Entry Spots are known everywhere
  for (std::size_t from : {0, 1})
    for (const auto& id : ids) {
      const auto text = "from " + std::to_string(from);
      net.run(net.host(from).spots().send_to_spot(id, note{text}).submit());
      CHECK(net.run(net.host(from).spots().request_to_spot(id, ask{}).submit<answer>()).text == "last " + text);
      CHECK(net.run(net.host(from).spots().request_to_spot(id, note{text}).submit<answer>()).text == "request " + text);
      CHECK(net.run(net.host(from).spots().request_to_spot(id, ask{}).submit<answer>()).text == "last " + text);
      CHECK(failure(net, net.host(from).spots().request_to_spot(id, held_note{}).submit<answer>())
            == error_kind::not_found); // a handler for sends serves no request
    }
}

TEST_CASE("M-28 a reply or error is never dispatched: it ends its call and reaches no handler") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  for (const auto* id : {"a", "b"})
    net.run(ask_at(net.host(0), id, "alive"));
  log.runs.clear();
  for (std::size_t from : {0, 1}) { // "a" asks "b"; both serve every packet that comes back
    auto call = net.host(from).spots().request_to_spot("a", relay{"b", "x", true, false});
    CHECK(net.run(call.submit<answer>()).text == "relayed x!");
  }
  CHECK(log.runs == std::vector<std::string>{"x", "x"});
}

TEST_CASE("M-50 two handlers for one key fail the activation before Ready, and the start for a node") {
  mesh net{2};
  net.start(serve_forms);
  for (std::size_t from : {0, 1})
    CHECK_FALSE(
      net.run(as_result(net.host(from).spots().request_to_spot("d", ask{}).instance_spot("doubled").submit<answer>()))
        .has_value());
  CHECK(failure(net, net.host(1).spots().request_to_spot("d", ask{}).submit<answer>()) == error_kind::not_found);
  CHECK_THROWS_AS(net.owner_of("d"), std::logic_error);
  mesh broken{1};
  CHECK_THROWS_AS(broken.start([](host& started) {
    auto& node = started.add_mesh("m");
    node.object_server();
    node.add_node_handler([](const ask&, const message_context&) { return answer{}; });
    node.add_node_handler([](const ask&, const message_context&) { return answer{}; });
  }),
                  configuration_error);
}

TEST_CASE("registering outside of configure() is invalid_operation") {
  mesh net{1};
  net.start(serve_forms);
  auto call = net.host(0).spots().request_to_spot("l", ask{"late"}).instance_spot("late");
  CHECK(net.run(call.submit<answer>()).text == "late invalid_operation");
}

TEST_CASE("M-29 the packet name selects the handler: equal shapes keep apart, a renamed type is still found") {
  mesh net{2};
  net.start(serve_forms);
  net.run(net.host(0).spots().get_or_create("n", "named").submit());
  for (std::size_t from : {0, 1}) {
    const auto spots = net.host(from).spots();
    CHECK(net.run(spots.request_to_spot("n", old_order{"bread"}).submit<answer>()).text == "ordered bread");
    CHECK(failure(net, spots.request_to_spot("n", ask{"bread"}).submit<answer>()) == error_kind::not_found);
    CHECK(failure(net, spots.request_to_spot("n", unserved{}).submit<answer>()) == error_kind::not_found);
  }
}

template <class Registry, auto Handler>
concept accepts_packet = requires(const Registry& registry) {
  { registry.template add_packet<Handler>() } -> std::same_as<const Registry&>;
};
template <class Registry, auto Handler>
concept accepts_named = requires(const Registry& registry) {
  registry.template add_handler<Handler>("name");
};

struct shapes {
  void plain_send(const note&, const message_context&) {}
  task<void> send(const note&, const message_context&) { co_return; }
  answer plain_request(const ask&, const message_context&) { return {}; }
  task<answer> request(const ask&, const message_context&) { co_return answer{}; }
};

TEST_CASE("an Instance registry takes packets and nothing else") {
  static_assert(accepts_packet<instance_spot_handler_registry, &shapes::send>);
  static_assert(accepts_packet<instance_spot_handler_registry, &shapes::request>);
  static_assert(!accepts_named<instance_spot_handler_registry, &shapes::send>);
  static_assert(accepts_packet<spot_handler_registry, &shapes::plain_send>);
  static_assert(accepts_packet<spot_handler_registry, &shapes::plain_request>);
  static_assert(accepts_named<spot_handler_registry, &shapes::send>);
  mesh net{1};
  CHECK_THROWS_AS(net.start([](host& started) {
    auto& node = started.add_mesh("m");
    node.object_client();
    node.add_node_handler([](const ask&, const message_context&) { return answer{}; });
  }),
                  configuration_error);
}

TEST_CASE("M-52 without a handler a request is not_found, a send is counted and dropped, neighbours run") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  auto& dropped =
    net.host(0).runtime().domain.counters.dropped[static_cast<std::size_t>(detail::drop_reason::no_handler)];
  for (std::size_t from : {0, 1}) {
    log.runs.clear();
    const auto before = dropped.load();
    const auto spots = net.host(from).spots();
    net.run(spots.send_to_spot("c", note{"before"}).submit());
    net.run(spots.send_to_spot("c", unserved{}).submit());
    net.run(spots.send_to_spot("c", note{"after"}).submit());
    net.run_until_idle();
    CHECK(dropped.load() == before + 1);
    CHECK(failure(net, spots.request_to_spot("c", unserved{}).submit<answer>()) == error_kind::not_found);
    CHECK(log.runs == std::vector<std::string>{"before", "after"});
  }
}

/// What handlers of sends were told.
class listening final : public instance_spot {
public:
  listening(instance_spot_context context, std::vector<description>& heard)
    : instance_spot(std::move(context)), heard_(heard) {}
  void configure() override { context().handlers().add_packet<&listening::on_note>(); }

private:
  void on_note(const note&, const message_context& context) { heard_.push_back(describe_context(context)); }
  std::vector<description>& heard_;
};

TEST_CASE("M-31 a handler knows mesh, packet, content type, metadata, and the correlation id of a request") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  std::set<std::string> correlations;
  for (std::size_t from : {0, 1})
    for (int i = 0; i < 2; ++i) {
      auto call = net.host(from).spots().request_to_spot("c", describe{}).metadata("color", "red");
      const auto seen = net.run(call.submit<description>());
      CHECK(seen.mesh == "m");
      CHECK(seen.channel.empty());
      CHECK(seen.topic.empty());
      CHECK(seen.source.empty());
      CHECK(seen.packet == "probe.describe");
      CHECK(seen.content_type == (from == 0 ? "" : "application/vnd.zlink.binary"));
      CHECK(seen.color == "red");
      CHECK(seen.correlation != "absent");
      correlations.insert(seen.correlation);
    }
  CHECK(correlations.size() == 4);
}

TEST_CASE("M-31 a send has no correlation id") {
  std::vector<description> heard;
  mesh net{2};
  net.start([&heard](host& started, std::size_t index) {
    auto& node = started.add_mesh("m");
    node.object_server().add_instance_spot_factory<listening>("listening", [&heard](auto& factory) {
      factory.disable_relocation().construct_with([&heard](instance_spot_context context) {
        return std::make_unique<listening>(std::move(context), heard);
      });
    });
    if (index != 0)
      node.placement_weight(0);
  });
  for (std::size_t from : {0, 1}) {
    auto call = net.host(from).spots().send_to_spot("c", note{}).instance_spot("listening").metadata("color", "blue");
    net.run(call.submit());
  }
  net.run_until_idle();
  REQUIRE(heard.size() == 2);
  for (const auto& seen : heard) {
    CHECK(seen.correlation == "absent");
    CHECK(seen.packet == "probe.note");
    CHECK(seen.color == "blue");
    CHECK(seen.mesh == "m");
  }
}

TEST_CASE("M-31 M-29 the packet name is the one the message was sent under, near and far") {
  mesh net{2};
  net.start(serve_forms);
  net.run(net.host(0).spots().get_or_create("n", "named").submit());
  for (std::size_t from : {0, 1}) {
    auto call = net.host(from).spots().request_to_spot("n", old_describe{}).metadata("color", "red");
    const auto seen = net.run(call.submit<description>());
    CHECK(seen.packet == "probe.old_describe");
    CHECK(seen.color == "red");
  }
}

TEST_CASE("M-38 metadata: limits at the call, the last value counts, nothing is passed on by itself") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  for (const auto* id : {"c", "d"})
    net.run(ask_at(net.host(0), id, "alive"));
  for (std::size_t from : {0, 1}) {
    const auto spots = net.host(from).spots();
    auto full = spots.request_to_spot("c", describe{});
    // One pair: a count, two lengths, and the bytes make 1,024.
    const std::string most(1024 - 1 - 1 - 5 - 2, 'v');
    full.metadata("color", most);
    CHECK_THROWS_AS(full.metadata("color", most + "v"), std::invalid_argument);
    CHECK(net.run(full.submit<description>()).color == most);
    auto bad = spots.request_to_spot("c", describe{});
    CHECK_THROWS_AS(bad.metadata("", "x"), std::invalid_argument);
    CHECK_THROWS_AS(bad.metadata("key", "\xff"), std::invalid_argument);
    CHECK_THROWS_AS(bad.metadata("key", std::string(1, '\0')), std::invalid_argument);
    log.runs.clear();
    auto outer = spots.request_to_spot("c", relay{"d", "nested", false, false}).metadata("color", "red");
    net.run(outer.submit<answer>());
    net.run(spots.send_to_spot("d", note{"plain"}).submit());
    net.run_until_idle();
    CHECK(log.runs == std::vector<std::string>{"nested", "plain"});
  }
}

TEST_CASE("metadata of a Spot message arrives near, far, and with the message that wakes the Spot") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  for (std::size_t from : {0, 1}) {
    const std::string id = "cold " + std::to_string(from);
    auto first = net.host(from).spots().request_to_spot(id, describe{}).instance_spot("probe").metadata("color", "red");
    CHECK(net.run(first.submit<description>()).color == "red");
    net.run(net.host(from).spots().send_to_spot(id, note{"sent "}).metadata("color", "blue").submit());
  }
  net.run_until_idle();
  CHECK(log.runs == std::vector<std::string>{"sent blue", "sent blue"});
}

} // namespace
} // namespace zlink::test::messaging
