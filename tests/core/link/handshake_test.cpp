#include "link_pair.hpp"

#include <doctest/doctest.h>

using namespace link_test;
using namespace std::chrono_literals;

TEST_CASE("S-58 S-59 both sides know each other before the link is ready") {
  link_pair net;
  net.make_sessions();
  CHECK(net.a.session->try_send(nullptr, link_pair::to_spot("s")) == admission::sealed);
  net.a.session->start();
  net.settle();
  CHECK(net.a.owner.readies == 0); // the other side is silent
  CHECK_FALSE(net.a.session->ready());
  net.b.session->start();
  net.settle();
  CHECK(net.a.owner.readies == 1);
  CHECK(net.b.owner.readies == 1);
  CHECK(net.a.session->peer() == net.b.self);
  CHECK(net.b.session->peer() == net.a.self);
}

TEST_CASE("S-59 a verdict that comes late keeps the link unready, and admits it then") {
  link_pair net;
  net.b.owner.decide = false;
  net.start();
  CHECK(net.a.owner.readies == 0);
  CHECK(net.b.owner.readies == 0);
  auto* r = net.make_note("x");
  CHECK(net.a.session->try_send(r, link_pair::to_spot("s")) == admission::sealed);
  free_record(r);
  net.b.session->admit();
  CHECK(net.b.session->ready());
  net.settle();
  CHECK(net.a.session->ready());
  CHECK(net.a.owner.readies + net.b.owner.readies == 2);
}

TEST_CASE("S-58 S-62 another mesh, own RID, wrong RID, wrong lifecycle, wrong trust profile are refused") {
  link_pair net;
  std::string told;
  SUBCASE("mesh") {
    net.b.self.mesh = "other";
    told = "mesh \"other\" instead of \"mesh\"";
  }
  SUBCASE("own RID") {
    net.b.self.rid = "a";
    told = "RID \"a\" is this node's own";
  }
  SUBCASE("RID") {
    net.a.owner.expected.rid = "c";
    told = "RID \"b\" instead of \"c\"";
  }
  SUBCASE("lifecycle") {
    net.a.owner.expected.lifecycle = lifecycle_generation{23};
    told = "another run of node \"b\" than its descriptor names";
  }
  SUBCASE("trust") {
    net.a.owner.expected.security_identity = "CN=b";
    told = "another security identity than expected";
  }
  net.start();
  CHECK(net.a.owner.readies == 0);
  CHECK(net.b.owner.readies == 0);
  REQUIRE(net.a.owner.downs.size() == 1);
  REQUIRE(net.b.owner.downs.size() == 1);
  CHECK(net.a.owner.downs[0].find(told) != std::string::npos);
}

TEST_CASE("S-58 the refused side learns the reason") {
  link_pair net;
  net.a.owner.expected.rid = "c";
  net.start();
  REQUIRE(net.b.owner.downs.size() == 1);
  CHECK(net.b.owner.downs[0] == "refused by the peer: RID \"b\" instead of \"c\"");
}

namespace {

/// Speaks to a session without being one.
class raw_peer final : public link_connection_events {
public:
  bool on_batch(byte_view batch) override {
    frame_reader in{batch};
    while (!in.at_end()) {
      const auto f = in.next(1 << 20);
      frames.emplace_back(f.type, bytes{f.body.begin(), f.body.end()});
    }
    return false;
  }
  bool on_turn() override { return false; }
  void on_writable() override {}
  void on_closed(std::string) override { ++closed; }
  int count(frame_type type) const {
    int n = 0;
    for (const auto& f : frames)
      n += f.first == type;
    return n;
  }
  std::vector<std::pair<frame_type, bytes>> frames;
  int closed = 0;
};

} // namespace

TEST_CASE("S-58 a repeated hello is answered again and changes nothing; another identity ends the link") {
  link_pair net;
  net.make_sessions();
  const auto peer = std::make_shared<raw_peer>();
  net.b.connection->start(peer);
  net.a.session->start();
  net.settle();
  bytes hello;
  append_hello(hello, net.b.self);
  append_hello_answer(hello, {true, {}, {}});
  net.b.connection->write(hello);
  net.settle();
  CHECK(net.a.session->ready());
  CHECK(peer->count(frame_type::hello_answer) == 1);
  hello.clear();
  append_hello(hello, net.b.self);
  net.b.connection->write(hello);
  net.settle();
  CHECK(net.a.owner.hellos == 1);
  CHECK(net.a.owner.readies == 1);
  CHECK(net.a.owner.downs.empty());
  CHECK(peer->count(frame_type::hello_answer) == 2);
  hello.clear();
  append_hello(hello, link_pair::identity("b", 99));
  net.b.connection->write(hello);
  net.settle();
  CHECK(net.a.owner.downs.size() == 1);
  CHECK(peer->closed == 1);
}

TEST_CASE("D-15 S-58 another protocol version is refused whatever follows it") {
  link_pair net;
  net.make_sessions();
  const auto peer = std::make_shared<raw_peer>();
  net.b.connection->start(peer);
  net.a.session->start();
  const bytes future{std::byte{4}, std::byte{1}, std::byte{9}, std::byte{0xff}, std::byte{0xff}};
  net.b.connection->write(future);
  net.settle();
  REQUIRE(net.a.owner.downs.size() == 1);
  CHECK(net.a.owner.downs[0].find("protocol version 9 instead of 1") != std::string::npos);
  CHECK(net.a.owner.hellos == 0);
  REQUIRE(peer->count(frame_type::hello_answer) == 1);
  CHECK_FALSE(decode_hello_answer(peer->frames.back().second).admitted);
}

TEST_CASE("S-59 a message before the end of the handshake ends the link") {
  link_pair net;
  net.make_sessions();
  net.b.connection->start(std::make_shared<raw_peer>());
  net.a.session->start();
  bytes batch;
  append_control(batch, 1, {});
  net.b.connection->write(batch);
  net.settle();
  CHECK(net.a.owner.controls.empty());
  CHECK(net.a.owner.downs.size() == 1);
}

TEST_CASE("S-59 a peer that stops half way through the handshake is given up after 15 s") {
  link_pair net;
  net.make_sessions();
  net.b.connection->start(std::make_shared<raw_peer>());
  net.a.session->start();
  net.executor.run_for(14s);
  CHECK(net.a.owner.downs.empty());
  net.executor.run_for(2s);
  REQUIRE(net.a.owner.downs.size() == 1);
  CHECK(net.a.owner.readies == 0);
}

TEST_CASE("S-64 an orderly close is known to both sides at once") {
  link_pair net;
  net.start();
  net.a.session->close("node drains");
  CHECK(net.a.owner.downs == std::vector<std::string>{"node drains"});
  CHECK_FALSE(net.a.session->ready());
  net.settle();
  CHECK(net.b.owner.downs == std::vector<std::string>{"closed by the peer: node drains"});
}

TEST_CASE("S-64 a lost connection is known to both sides at once, and ends each once") {
  link_pair net;
  net.start();
  net.network.lose_connections("a", "b");
  net.settle();
  net.a.session->close("later");
  net.settle();
  CHECK(net.a.owner.downs == std::vector<std::string>{"connection lost"});
  CHECK(net.b.owner.downs == std::vector<std::string>{"connection lost"});
}

TEST_CASE("S-61 late frames of an ended link change nothing") {
  link_pair net;
  net.start();
  for (int i = 0; i < 3; ++i)
    CHECK(net.b.session->try_send(net.make_note("late"), link_pair::to_spot("s")) == admission::admitted);
  net.b.session->send_control(7, {});
  net.a.session->close("over"); // before anything of that has arrived
  net.settle();
  CHECK(net.a.owner.messages.empty());
  CHECK(net.a.owner.controls.empty());
  CHECK(net.a.owner.downs.size() == 1);
}

TEST_CASE("S-64 probes every 5 s from readiness, one id until it is answered, 15 s without an answer end the link") {
  link_pair net;
  net.make_sessions();
  const auto peer = std::make_shared<raw_peer>();
  net.b.connection->start(peer);
  net.a.session->start();
  bytes hello;
  append_hello(hello, net.b.self);
  append_hello_answer(hello, {true, {}, {}});
  net.b.connection->write(hello);
  net.executor.run_until([&] { return net.a.session->ready(); }, 1s);
  net.executor.run_for(4900ms);
  CHECK(peer->count(frame_type::probe) == 0);
  net.executor.run_for(200ms);
  CHECK(peer->count(frame_type::probe) == 1);
  net.executor.run_for(5s);
  REQUIRE(peer->count(frame_type::probe) == 2);
  const auto first = decode_probe(peer->frames[peer->frames.size() - 2].second);
  CHECK(decode_probe(peer->frames.back().second) == first); // unchanged while unanswered

  const auto answer = [&](std::uint64_t id) {
    bytes batch;
    append_probe(batch, id, true);
    net.b.connection->write(batch);
    net.executor.run();
  };
  SUBCASE("no answer") {
    net.executor.run_for(4800ms);
    CHECK(net.a.owner.downs.empty());
    net.executor.run_for(200ms);
    CHECK(net.a.owner.downs == std::vector<std::string>{"no answer to probes in time"});
    CHECK(peer->closed == 1);
  }
  SUBCASE("an answer to another probe") {
    answer(first + 1);
    net.executor.run_for(5s);
    CHECK(net.a.owner.downs.size() == 1);
  }
  SUBCASE("the matching answer, once") {
    answer(first); // at 10.1 s: the deadline is now 25.1 s
    net.executor.run_for(5s);
    CHECK(decode_probe(peer->frames.back().second) != first);
    answer(first); // late repetition: no effect
    net.executor.run_for(9900ms);
    CHECK(net.a.owner.downs.empty());
    net.executor.run_for(200ms);
    CHECK(net.a.owner.downs.size() == 1);
  }
}

TEST_CASE("S-64 a live link stays for minutes without traffic") {
  link_pair net;
  net.start();
  net.executor.run_for(300s);
  CHECK(net.a.owner.downs.empty());
  CHECK(net.b.owner.downs.empty());
}

TEST_CASE("S-64 traffic does not extend the deadline: one-way loss under steady traffic ends the link in 15 s") {
  link_pair net;
  net.start();
  net.network.cut_one_way("a", "b"); // b hears nothing more, a hears everything
  const auto from = net.time->now();
  while (net.a.owner.downs.empty() && net.time->now() - from < 30s) {
    net.b.session->send_control(1, {});
    net.executor.run_for(100ms);
  }
  CHECK(net.a.owner.controls.size() > 100);
  CHECK(net.time->now() - from <= 15s);
  CHECK(net.time->now() - from > 14s);
  CHECK(net.b.owner.downs.size() == 1);
}

TEST_CASE("S-64 a frozen peer is noticed after 15 s") {
  link_pair net;
  net.start();
  net.network.freeze("b");
  net.executor.run_for(14s);
  CHECK(net.a.session->ready());
  net.executor.run_for(2s);
  CHECK_FALSE(net.a.session->ready());
}
