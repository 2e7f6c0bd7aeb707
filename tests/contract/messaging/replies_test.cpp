// How requests end, and the encodings of the application (03 sections 5, 17).
#include "tests/contract/messaging/forged_peer.hpp"

namespace zlink::test::messaging {
namespace {

using namespace std::chrono_literals;
using testing::mesh;

TEST_CASE("M-137 a reply of another type is a protocol_error at the caller") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  for (std::size_t from : {0, 1}) {
    const auto spots = net.host(from).spots();
    CHECK(failure(net, spots.request_to_spot("c", ask{"x"}).submit<description>()) == error_kind::protocol_error);
    CHECK(failure(net, spots.request_to_spot("c", ask{"x"}).submit<void>()) == error_kind::protocol_error);
    CHECK(net.run(spots.request_to_spot("c", ask{"y"}).submit<answer>()).text == "y!");
  }
}

TEST_CASE("M-142 M-143 every cause answers a request with its kind, a send is dropped and counted, the next one runs") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(1), "c", "alive"));
  auto& faults = net.host(0).runtime().domain.counters.handler_exceptions;
  for (std::size_t from : {0, 1}) {
    const auto before = faults.load();
    const auto spots = net.host(from).spots();
    const auto next_runs = [&] {
      return net.run(spots.request_to_spot("c", ask{"next"}).submit<answer>()).text == "next!";
    };
    CHECK(failure(net, spots.request_to_spot("c", unserved{}).submit<answer>()) == error_kind::not_found);
    CHECK(next_runs());
    CHECK(failure(net, spots.request_to_spot("c", fault{}).submit<answer>()) == error_kind::internal_failure);
    CHECK(next_runs());
    const auto dropped = dropped_at(net, 0, detail::drop_reason::handler_failed);
    net.run(spots.send_to_spot("c", fault{}).submit());
    CHECK(next_runs());
    CHECK(dropped_at(net, 0, detail::drop_reason::handler_failed) == dropped + 1);
    CHECK(faults.load() == before + 2);
  }
  forged_peer peer{net, 1, 0}; // undecodable, a stale fence, a target that refuses admission
  const auto kind_of_end = [](const std::optional<error>& end) { return end ? end->kind() : error_kind::data_lost; };
  CHECK(kind_of_end(peer.ask_encoded("probe.ask", "text/unknown", {})) == error_kind::protocol_error);
  peer.header.fence = detail::message_fence{{1}, {1}};
  const auto object = net.host(0).runtime().objects.find("c");
  peer.header.fence = detail::message_fence{object->generation(), {object->authority().value + 1}};
  CHECK(kind_of_end(peer.ask_packet(ask{"x"})) == error_kind::unavailable);
  auto held = net.host(1).spots().request_to_spot("c", held_ask{"held"}).submit<answer>();
  net.run_until([&] { return log.gate.waiting() == 1; });
  auto ending = net.host(0).shutdown();
  net.run_until([&] { return net.host(0).status().state == host_state::draining; });
  CHECK(kind_of_end(peer.ask_packet(ask{"x"})) == error_kind::shutting_down);
  log.gate.open();
  CHECK(net.run(std::move(held)).text == "held!");
  net.run(std::move(ending));
  CHECK(log.count("x") == 0);
}

/// Fails with a text that is no UTF-8.
class garbled final : public instance_spot {
public:
  using instance_spot::instance_spot;
  void configure() override { context().handlers().add_packet<&garbled::on_ask>(); }

private:
  answer on_ask(const ask&, const message_context&) { throw std::runtime_error{"a \xff fault"}; }
};

TEST_CASE("M-142 X-163 a fault whose text is no UTF-8 answers all the same, near and far") {
  mesh net{2};
  net.start([](host& started, std::size_t index) {
    auto& node = started.add_mesh("m");
    node.object_server().add_instance_spot_factory<garbled>("garbled", [](auto& f) { f.disable_relocation(); });
    if (index != 0)
      node.placement_weight(0);
  });
  for (std::size_t from : {0, 1}) {
    auto call = net.host(from).spots().request_to_spot("c", ask{}).instance_spot("garbled").timeout(2s);
    CHECK(failure(net, call.submit<answer>()) == error_kind::internal_failure);
  }
}

TEST_CASE("M-142 a reply whose way back is gone is dropped and counted") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(1), "c", "alive"));
  auto call = net.host(1).spots().request_to_spot("c", held_ask{"x"}).submit<answer>();
  net.run_until([&] { return log.gate.waiting() == 1; });
  const auto link = node_at(net, 0).links->ready_link(node_at(net, 1).rid());
  REQUIRE(link);
  net.lose_links(0, 1);
  CHECK(failure(net, std::move(call)) == error_kind::unavailable);
  net.run_until([&] { return !link->ready(); }); // this side has noticed as well
  log.gate.open();
  net.run_until_idle();
  CHECK(log.count("end x") == 1);
  CHECK(link->counters().lost_replies.load() == 1);
}

TEST_CASE("M-131 a reply that comes at once finds its operation") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  for (std::size_t from : {0, 1}) {
    for (int i = 0; i < 300; ++i)
      CHECK(net.run(net.host(from).spots().request_to_spot("c", ask{"x"}).submit<answer>()).text == "x!");
    // A refusal on the caller's own stack is such a reply.
    CHECK(failure(net, net.host(from).nodes().request_to_node("m", "no-such-node", ask{"x"}).submit<answer>())
          == error_kind::not_found);
    CHECK(dropped_at(net, from, detail::drop_reason::late_reply) == 0);
    CHECK(net.host(from).status().operations == 0);
  }
}

// -- encodings of the application --------------------------------------------------------------------------------------

/// The built-in encoding, backwards; counts what it does.
class backwards final : public codec {
public:
  std::string content_type() const override { return "application/x-backwards"; }
  bool handles(const packet_info& type) const override { return type.name == "probe.ask" || type.name == "probe.answer"; }
  void encode(const packet_info& type, const void* value, bytes& to) const override {
    bytes plain;
    type.encode_binary(value, plain);
    to.insert(to.end(), plain.rbegin(), plain.rend());
    ++encoded;
  }
  void decode(const packet_info& type, byte_view from, void* value) const override {
    const bytes plain{from.rbegin(), from.rend()};
    type.decode_binary(value, plain);
    ++decoded;
  }
  mutable int encoded = 0;
  mutable int decoded = 0;
};

class choosy final : public spot<> {
public:
  using spot::spot;
  void configure() override { context().handlers().add_packet<&choosy::on_ask>(); }
  task<spot_create_response> on_create(const message& request) override {
    co_return accept(answer{"created for " + request.as<ask>().text});
  }

private:
  answer on_ask(const ask& m, const message_context& context) {
    return answer{m.text + " as " + std::string{context.content_type()}};
  }
};

TEST_CASE("M-34 M-37 an encoding added to the hosts serves requests, replies and creations between nodes") {
  const auto codec = std::make_shared<backwards>();
  mesh net{2};
  net.start([&codec](host& started, std::size_t index) {
    started.add_codec(codec);
    auto& node = started.add_mesh("m");
    node.object_server().add_spot_factory<choosy>("choosy", [](auto& factory) { factory.disable_relocation(); });
    node.add_node_handler([](const ask& m, const message_context&) { return answer{"node " + m.text}; });
    if (index != 0)
      node.placement_weight(0);
  });
  auto creation = net.host(1).spots().get_or_create("c", "choosy").request(ask{"me"});
  const auto made = net.run(creation.submit());
  REQUIRE(made.reply.has_value());
  CHECK(made.reply->as<answer>().text == "created for me");
  codec->encoded = codec->decoded = 0;
  CHECK(net.run(net.host(1).spots().request_to_spot("c", ask{"x"}).submit<answer>()).text
        == "x as application/x-backwards");
  CHECK(codec->encoded == 2);
  CHECK(codec->decoded == 2); // once each (M-45)
  const auto rid = net.host(0).mesh("m").rid();
  CHECK(net.run(net.host(1).nodes().request_to_node("m", rid, ask{"y"}).submit<answer>()).text == "node y");
}

TEST_CASE("M-139 a reply takes the way the request came: the store is not asked") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(1), "c", "alive"));
  auto pending = net.host(1).spots().request_to_spot("c", held_ask{"x"}).submit<answer>();
  net.run_until([&] { return log.gate.waiting() == 1; });
  const auto reads =
    net.faults(0).count(testing::store_operation::read) + net.faults(1).count(testing::store_operation::read);
  log.gate.open();
  CHECK(net.run(std::move(pending)).text == "x!");
  CHECK(net.faults(0).count(testing::store_operation::read) + net.faults(1).count(testing::store_operation::read)
        == reads);
}

TEST_CASE("M-141 a reply leaves before the next message of the Spot runs") {
  evidence log;
  mesh net{1};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  auto first = net.host(0).spots().request_to_spot("c", ask{"first"}).submit<answer>();
  auto second = net.host(0).spots().request_to_spot("c", held_ask{"second"}).submit<answer>();
  CHECK(net.run(std::move(first)).text == "first!"); // though the second holds the Spot for good
  CHECK_FALSE(second.ready());
  log.gate.open();
  net.run(std::move(second));
}

} // namespace
} // namespace zlink::test::messaging
