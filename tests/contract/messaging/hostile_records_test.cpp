// Records that no host of ours sends: refused with the error the contract names, counted, and of no consequence for
// anything else (bad input from peers; M-137, M-143, S-64).
#include "tests/contract/messaging/forged_peer.hpp"
#include "zlink/caf/message_codec.hpp"

#include <random>

namespace zlink::test::messaging {
namespace {

using namespace std::chrono_literals;
using detail::control_command;
using detail::drop_reason;
using detail::target_kind;
using testing::mesh;

const std::string binary{binary_content_type};

bytes garbage(std::size_t size) { return bytes(size, std::byte{0xee}); }

error_kind kind_of(const std::optional<error>& end) {
  REQUIRE(end.has_value());
  return end->kind();
}

TEST_CASE("M-137 M-142 O-41 a body that cannot be decoded: protocol_error for a request, a counted drop for a send, no run") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(1), "c", "alive"));
  forged_peer peer{net, 1, 0};
  const auto good = encode(ask{"x"});
  struct body {
    std::string name;
    std::string content_type;
    bytes data;
  };
  const std::vector<body> bad{
    {"probe.ask", "application/x-unknown", good},  // never read as something else (M-37)
    {"probe.ask", "Application/JSON", good},       // compared verbatim
    {"probe.ask", binary, garbage(40)},
    {"probe.ask", std::string{json_content_type}, good},
    {"probe.ask", std::string{detail::caf_content_type}, good},
    {"caf:@i32,@i32", std::string{detail::caf_content_type}, garbage(40)},
    {"caf:no_such_type", std::string{detail::caf_content_type}, {}},
    {"caf:@i32", std::string{detail::caf_content_type}, {}},
  };
  for (const auto& b : bad) {
    CAPTURE(b.name);
    CAPTURE(b.content_type);
    const auto end = peer.ask_encoded(b.name, b.content_type, b.data);
    const bool served = b.name == "probe.ask";
    CHECK(kind_of(end) == (served ? error_kind::protocol_error : error_kind::not_found));
    const auto dropped = dropped_at(net, 0, served ? drop_reason::undecodable : drop_reason::no_handler);
    peer.send_encoded(served ? "probe.note" : b.name, b.content_type, b.data);
    CHECK(dropped_at(net, 0, served ? drop_reason::undecodable : drop_reason::no_handler) == dropped + 1);
    CHECK(net.run(ask_at(net.host(1), "c", "next")).text == "next!");
  }
  CHECK(log.count("x") == 0);
  CHECK(log.runs.size() == 1 + bad.size());
}

TEST_CASE("M-143 a packet name that nobody serves, empty, long or not UTF-8 is not_found") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(1), "c", "alive"));
  forged_peer peer{net, 1, 0};
  for (const auto& name : {std::string{}, std::string(70'000, 'x'), std::string{"\xff\xfe"}, std::string{"probe"}})
    CHECK(kind_of(peer.ask_encoded(name, binary, {})) == error_kind::not_found);
  CHECK(net.run(ask_at(net.host(1), "c", "next")).text == "next!");
}

TEST_CASE("targets that this node does not serve: other families, other nodes, types and meshes unknown here") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(1), "c", "alive"));
  forged_peer peer{net, 1, 0};
  for (auto kind : {target_kind::actor, target_kind::channel, target_kind::publish}) {
    peer.header.target = kind;
    peer.header.topic = kind == target_kind::publish ? "topic" : "";
    CHECK(kind_of(peer.ask_packet(ask{"x"})) == error_kind::not_found); // no such Actor here, and no part in the channel
    peer.send_packet(note{"x"});
  }
  peer.header.topic = "";
  peer.header.target = target_kind::node;
  peer.header.target_id = "no-such-node";
  CHECK(kind_of(peer.ask_packet(ask{"x"})) == error_kind::not_found);
  peer.header.target = target_kind::spot;
  peer.header.target_id = "nobody";
  CHECK(kind_of(peer.ask_packet(ask{"x"})) == error_kind::not_found);
  peer.header.instance_intent = true;
  CHECK(kind_of(peer.ask_packet(ask{"x"})) == error_kind::not_found); // a marker alone, for a Spot that is not here
  peer.header.activation = detail::message_activation{"no such type", "m", {}, {}};
  CHECK(kind_of(peer.ask_packet(ask{"x"})) == error_kind::not_found);
  peer.header.activation->stable_type = "room"; // a type, but none of Instance Spots
  CHECK(kind_of(peer.ask_packet(ask{"x"})) == error_kind::not_found);
  CHECK_FALSE(net.run(net.host(0).spots().find("nobody")).has_value());
  CHECK(log.count("x") == 0);
  CHECK(net.run(ask_at(net.host(1), "c", "next")).text == "next!");
}

TEST_CASE("control records: garbage is counted and dropped or answered protocol_error, and changes nothing") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(1), "c", "alive"));
  forged_peer peer{net, 1, 0};
  const auto envelope = [](bytes body) { return encode(detail::control_envelope{7, 7, std::move(body)}); };
  auto undecodable = dropped_at(net, 0, drop_reason::undecodable);
  for (std::uint16_t command : {0, 1, 2, 3, 4, 999}) {
    peer.control(command, garbage(30));
    CHECK(dropped_at(net, 0, drop_reason::undecodable) == ++undecodable);
  }
  for (auto command : {control_command::create_spot, control_command::close_spot, control_command::stale_route}) {
    peer.control(static_cast<std::uint16_t>(command), envelope(garbage(30)));
    CHECK(dropped_at(net, 0, drop_reason::undecodable) == ++undecodable);
  }
  peer.control(static_cast<std::uint16_t>(control_command::answer), envelope(garbage(30))); // nobody has asked
  peer.control(999, envelope({}));
  // Well formed, but nothing that this node would do.
  detail::create_question question;
  question.id = "c";
  question.type = "room";
  const auto& source = node_at(net, 1).identity;
  const auto& target = node_at(net, 0).identity;
  question.route = {source.node_rid, source.lifecycle.value, target.node_rid, target.lifecycle.value,
                    std::numeric_limits<std::int64_t>::max()};
  peer.control(static_cast<std::uint16_t>(control_command::create_spot), envelope(encode(question)));
  detail::close_question close{"c", 1, 1, {}, question.route};
  close.route.left_ms = std::numeric_limits<std::int64_t>::min();
  peer.control(static_cast<std::uint16_t>(control_command::close_spot), envelope(encode(close)));
  detail::stale_route stale{"c", 1, 1};
  peer.control(static_cast<std::uint16_t>(control_command::stale_route), envelope(encode(stale)));
  net.advance(1s);
  CHECK(net.owner_of("c") == 0);
  CHECK(net.run(ask_at(net.host(1), "c", "next")).text == "next!");
  CHECK(log.runs == std::vector<std::string>{"alive", "next"});
}

// -- bytes ------------------------------------------------------------------------------------------------------------

/// How much of what a host writes is spoilt.
struct tampering {
  bool on = false;
  std::mt19937_64 random;
  std::size_t spoilt = 0;

  void spoil(bytes& batch) {
    if (!on || batch.empty() || random() % 3 != 0)
      return;
    ++spoilt;
    for (auto changes = 1 + random() % 3; changes != 0; --changes)
      switch (random() % 4) {
        case 0: batch.resize(1 + random() % batch.size()); break;
        case 1: batch.insert(batch.end(), 1 + random() % 40, static_cast<std::byte>(random())); break;
        default: batch[random() % batch.size()] = static_cast<std::byte>(random()); break;
      }
  }
};

class tampered_connection final : public detail::link_connection {
public:
  tampered_connection(std::shared_ptr<detail::link_connection> real, tampering& how) : real_(std::move(real)), how_(how) {}
  void start(std::shared_ptr<detail::link_connection_events> events) override { real_->start(std::move(events)); }
  void write(bytes batch) override {
    how_.spoil(batch);
    real_->write(std::move(batch));
  }
  void limit_batches(std::uint64_t largest) override { real_->limit_batches(largest); }
  void close() override { real_->close(); }
  std::string peer_address() const override { return real_->peer_address(); }

private:
  std::shared_ptr<detail::link_connection> real_;
  tampering& how_;
};

class tampered_transport final : public detail::link_transport {
public:
  tampered_transport(std::shared_ptr<detail::link_transport> real, tampering& how) : real_(std::move(real)), how_(how) {}
  detail::endpoint listen(const std::string& host, std::uint16_t port, accept_handler accepted) override {
    return real_->listen(host, port, [this, accepted = std::move(accepted)](auto connection) mutable {
      accepted(std::make_shared<tampered_connection>(std::move(connection), how_));
    });
  }
  void connect(const detail::endpoint& where, std::uint32_t timeout_ms, connect_handler done) override {
    real_->connect(where, timeout_ms, [this, done = std::move(done)](auto outcome) mutable {
      if (outcome)
        done(std::shared_ptr<detail::link_connection>{std::make_shared<tampered_connection>(std::move(*outcome), how_)});
      else
        done(std::move(outcome));
    });
  }
  void stop() override { real_->stop(); }

private:
  std::shared_ptr<detail::link_transport> real_;
  tampering& how_;
};

TEST_CASE("S-64 a peer whose bytes are spoilt ends nobody: every call has its end, and all is well when it stops") {
  std::size_t spoilt = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    evidence log;
    tampering how;
    how.random.seed(seed);
    mesh net{{.hosts = 2, .seed = seed, .max_link_delay = 3ms, .adjust = [&how](std::size_t host, host_options& options) {
                if (host == 1)
                  options.transport = [&how, real = options.transport](caf::actor_system& system, const std::string& name) {
                    return std::make_shared<tampered_transport>(real(system, name), how);
                  };
              }}};
    INFO("seed ", net.seed());
    start_probes(net, log);
    net.run(ask_at(net.host(0), "c", "alive"));
    how.on = true;
    std::vector<task<answer>> calls;
    for (int i = 0; i < 12; ++i) {
      calls.push_back(net.host(1).spots().request_to_spot("c", ask{"x"}).timeout(2s).submit<answer>());
      calls.push_back(net.host(0).nodes().request_to_node("m", net.host(1).mesh("m").rid(), ask{"y"}).submit<answer>());
      net.host(1).spots().send_to_spot("c", note{"z"}).submit();
      net.advance(5ms);
    }
    for (auto& call : calls)
      static_cast<void>(net.run(as_result(std::move(call))));
    how.on = false;
    net.lose_links(0, 1); // what it has said of its pauses and credit goes with the link
    net.advance(3s);
    net.run(net.host(1).mesh("m").until_peers_ready(1));
    CHECK(net.run(ask_at(net.host(1), "c", "after")).text == "after!");
    spoilt += how.spoilt;
  }
  CHECK(spoilt > 500);
}

} // namespace
} // namespace zlink::test::messaging
