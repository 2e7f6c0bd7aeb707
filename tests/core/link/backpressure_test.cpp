#include "link_pair.hpp"

#include <doctest/doctest.h>

using namespace link_test;
using namespace std::chrono_literals;

namespace {

/// About 1 KiB on the wire.
std::string kilobyte(char fill) { return std::string(960, fill); }

} // namespace

TEST_CASE("X-107 X-96 a stalled peer bounds the sender: sends wait, then end in deadline_exceeded") {
  replies_seen callers;
  link_pair net;
  net.a.outbound_bytes = 10'000;
  net.start();
  net.network.freeze("b");
  int admitted = 0;
  record* r = nullptr;
  while (net.a.session->try_send(r = net.make_note(kilobyte('x')), link_pair::to_spot("s")) == admission::admitted)
    ++admitted;
  CHECK(admitted >= 8);
  CHECK(admitted <= 10);
  CHECK(net.a.session->charged_bytes() <= 10'000);
  r->reply = callers.route(1);
  net.a.session->send(r, link_pair::to_spot("s"), net.in(1s));
  net.a.session->send(net.make_request("?", callers.route(2), net.in(30s)), link_pair::to_spot("s"), net.in(1s));
  CHECK(net.a.session->waiting_sends() == 2);
  net.executor.run_for(900ms);
  CHECK(callers.seen.empty());
  net.executor.run_for(200ms);
  REQUIRE(callers.seen.size() == 2);
  CHECK(callers.failure(0) == error_kind::deadline_exceeded);
  CHECK(callers.failure(1) == error_kind::deadline_exceeded);
  CHECK(net.a.replies->size() == 0);
  net.network.thaw("b");
  net.settle();
  CHECK(net.b.owner.messages.size() == static_cast<std::size_t>(admitted)); // never submitted later
}

TEST_CASE("X-107 a record is charged until the peer took it, not until it was written") {
  replies_seen caller;
  link_pair net;
  net.a.outbound_bytes = 10'000;
  net.b.owner.takes = false;
  net.start();
  record* r = nullptr;
  while (net.a.session->try_send(r = net.make_note(kilobyte('x')), link_pair::to_spot("s")) == admission::admitted) {
  }
  free_record(r);
  net.settle();
  const auto arrived = net.b.owner.messages.size();
  CHECK(arrived >= 8);
  r = net.make_note(kilobyte('w'));
  r->reply = caller.route(1);
  net.a.session->send(r, link_pair::to_spot("s"), net.in(1s));
  net.settle();
  CHECK(caller.seen.empty());
  net.b.session->consumed(net.b.owner.messages[0].wire_bytes);
  net.settle();
  CHECK(caller.seen.size() == 1); // M-2: admitted
  CHECK(caller.seen[0].body.empty());
  CHECK(net.b.owner.messages.size() == arrived + 1);
}

TEST_CASE("X-107 a peer that sends on without credit is cut off before it fills this node's memory") {
  link_pair net;
  constexpr std::uint64_t told = 64 * 1024;
  net.a.self.frame_limit = net.b.self.frame_limit = 16 * 1024;
  net.b.owner.takes = false;
  net.make_sessions();
  SUBCASE("one that keeps to what it told is waited for") { net.remake(net.a, told, told); }
  SUBCASE("one that does not is not") { net.remake(net.a, told, 100 * told); }
  net.a.session->start();
  net.b.session->start();
  net.settle();
  REQUIRE(net.a.session->ready());
  const bool honest = net.a.outbound_bytes == told;
  std::uint64_t sent = 0;
  for (int i = 0; i < 200; ++i) {
    auto* r = net.make_note(std::string(1000, 'x'));
    if (net.a.session->try_send(r, link_pair::to_spot("s")) == admission::admitted)
      sent += 1000;
    else
      free_record(r);
    if (i % 10 == 0)
      net.settle();
  }
  net.settle();
  CHECK(net.b.session->ready() == honest);
  CHECK((net.b.owner.messages.size() - 1) * 1000 <= told + 10 * 1100);
  CHECK(sent > (honest ? told / 2 : told));
}

TEST_CASE("X-107 M-48 one record larger than the whole bound is admitted when nothing is charged") {
  replies_seen caller;
  link_pair net;
  net.a.outbound_bytes = 10'000;
  net.start();
  const std::string big(5 << 20, 'b');
  CHECK(net.a.session->try_send(net.make_note(big), link_pair::to_spot("s")) == admission::admitted);
  auto* small = net.make_note("small");
  CHECK(net.a.session->try_send(small, link_pair::to_spot("s")) == admission::no_room);
  small->reply = caller.route(1);
  net.a.session->send(small, link_pair::to_spot("s"), net.in(1s));
  net.settle();
  REQUIRE(net.b.owner.messages.size() == 2);
  CHECK(net.b.owner.text(0) == big);
  CHECK(net.b.owner.text(1) == "small");
  // Also behind small ones, which the peer consumed without a word until it was asked.
  CHECK(net.a.session->try_send(net.make_note("little"), link_pair::to_spot("s")) == admission::admitted);
  net.settle();
  net.a.session->send(net.make_note(big), link_pair::to_spot("s"), net.in(1s));
  net.settle();
  CHECK(net.b.owner.messages.size() == 4);
}

TEST_CASE("M-151 X-96 waiting sends are admitted in the order in which they began to wait") {
  replies_seen callers;
  link_pair net;
  net.a.outbound_bytes = 10'000;
  net.b.owner.takes = false;
  net.start();
  net.a.session->send(net.make_note(std::string(9'000, 'f')), link_pair::to_spot("s"), net.in(1s));
  const std::string texts[] = {std::string(6'000, '1'), "2", "3"};
  for (std::uint64_t i = 0; i < 3; ++i) {
    auto* r = net.make_note(texts[i]);
    r->reply = callers.route(i);
    net.a.session->send(r, link_pair::to_spot("s"), net.in(10s));
  }
  auto* r = net.make_note("overtakes?");
  CHECK(net.a.session->try_send(r, link_pair::to_spot("s")) == admission::no_room);
  free_record(r);
  net.settle();
  CHECK(callers.seen.empty());
  net.b.session->consumed(net.b.owner.messages[0].wire_bytes);
  net.settle();
  REQUIRE(callers.seen.size() == 3);
  for (std::uint64_t i = 0; i < 3; ++i)
    CHECK(callers.seen[i].id == i);
  REQUIRE(net.b.owner.messages.size() == 4);
  CHECK(net.b.owner.text(1) == texts[0]);
  CHECK(net.b.owner.text(3) == "3");
}

TEST_CASE("X-98 sends beyond the encoded ones wait as they are, in order, and end one by one") {
  replies_seen callers;
  link_pair net;
  net.a.outbound_bytes = 2'000;
  net.a.encoded_waiters = 3;
  net.start();
  net.a.session->set_pressure(false, 1);
  net.b.session->set_pressure(true, 2);
  net.settle();
  for (std::uint64_t i = 0; i < 2'000; ++i) {
    auto* r = net.make_note(std::to_string(i));
    r->reply = callers.route(i);
    net.a.session->send(r, link_pair::to_spot("s"), net.in(i % 2 == 0 ? 60s : 1s));
  }
  CHECK(net.a.session->waiting_sends() == 2'000);
  net.executor.run_for(1100ms);
  CHECK(callers.seen.size() == 1'000);
  CHECK(callers.failure(999) == error_kind::deadline_exceeded);
  net.b.session->set_pressure(false, 3);
  net.executor.run_for(5s);
  REQUIRE(callers.seen.size() == 2'000);
  REQUIRE(net.b.owner.messages.size() == 1'000);
  bool in_order = true;
  for (std::size_t i = 0; i < 1'000; ++i)
    in_order = in_order && net.b.owner.text(i) == std::to_string(2 * i) && callers.seen[1'000 + i].id == 2 * i;
  CHECK(in_order);
}

TEST_CASE("S-63 a lost link ends waiting sends and requests in unavailable") {
  replies_seen callers;
  link_pair net;
  net.start();
  net.b.session->set_pressure(true, 4);
  net.settle();
  auto* r = net.make_note("x");
  r->reply = callers.route(1);
  net.a.session->send(r, link_pair::to_spot("s"), net.in(10s));
  net.a.session->send(net.make_request("?", callers.route(2)), link_pair::to_spot("s"), net.in(10s));
  net.network.lose_connections("a", "b");
  net.settle();
  REQUIRE(callers.seen.size() == 2);
  CHECK(callers.failure(0) == error_kind::unavailable);
  CHECK(callers.failure(1) == error_kind::unavailable);
  CHECK(net.b.owner.messages.empty());
}

TEST_CASE("X-106 X-107 a paused node: sends to it wait, requests in flight complete, replies pass, it stays ready") {
  replies_seen at_a;
  replies_seen at_b;
  link_pair net;
  net.start();
  net.a.session->send(net.make_request("in flight", at_a.route(1)), link_pair::to_spot("s"), net.in(1s));
  net.b.session->send(net.make_request("from b", at_b.route(2)), link_pair::to_spot("s"), net.in(1s));
  net.settle();
  net.b.session->set_pressure(true, 5);
  net.settle();
  CHECK(net.a.owner.pressures == std::vector<bool>{true});
  CHECK(net.a.session->peer_paused());
  auto* r = net.make_note("waits");
  CHECK(net.a.session->try_send(r, link_pair::to_spot("s")) == admission::no_room);
  r->reply = at_a.route(3);
  net.a.session->send(r, link_pair::to_spot("s"), net.in(60s));
  net.a.owner.answer(0, note{"reply to the paused node"});
  net.b.owner.answer(0, note{"reply of the paused node"});
  net.a.session->send_control(7, {});
  net.settle();
  CHECK(at_b.seen.size() == 1);
  CHECK(at_a.seen.size() == 1);
  CHECK(net.b.owner.controls.size() == 1);
  CHECK(net.b.owner.messages.size() == 1);
  net.executor.run_for(40s);
  CHECK(net.a.session->ready());
  net.b.session->set_pressure(false, 6);
  net.settle();
  CHECK(net.a.owner.pressures == std::vector<bool>{true, false});
  CHECK(at_a.seen.size() == 2);
  CHECK(net.b.owner.messages.size() == 2);
}

TEST_CASE("X-106 X-107 data admitted before the pause is held back while a reply leaves") {
  replies_seen at_b;
  link_pair net{5ms, 3};
  net.start();
  net.b.session->send(net.make_request("?", at_b.route(1)), link_pair::to_spot("s"), net.in(1s));
  net.settle();
  // a's line is busy: what follows queues up behind the batch under way.
  net.network.cut_one_way("a", "b");
  for (int i = 0; i < 10; ++i)
    net.a.session->send(net.make_note(std::to_string(i)), link_pair::to_spot("s"), net.in(1s));
  net.b.session->set_pressure(true, 7);
  net.settle();
  net.a.owner.answer(0, note{"reply"});
  net.network.heal("a", "b");
  net.settle();
  CHECK(at_b.seen.size() == 1);
  CHECK(net.b.owner.messages.size() == 1); // the batch that was under way
  net.b.session->set_pressure(false, 8);
  net.settle();
  CHECK(net.b.owner.messages.size() == 10);
}

TEST_CASE("X-106 a new link learns the state before use, equal values are not sent, a stale one changes nothing") {
  link_pair net;
  net.make_sessions();
  net.b.session->set_pressure(true, 9);
  net.a.session->start();
  net.b.session->start();
  net.settle();
  CHECK(net.a.owner.paused_at_ready);
  CHECK(net.a.owner.pressures.empty());
  const auto batches = net.b.session->counters().batches_out.load();
  net.b.session->set_pressure(true, 10);
  net.settle();
  CHECK(net.b.session->counters().batches_out == batches);

  // A peer whose frames overtake each other: sequence 5 (paused) came before 4 (running).
  link_pair other;
  other.make_sessions();
  struct quiet final : link_connection_events {
    bool on_batch(byte_view) override { return false; }
    bool on_turn() override { return false; }
    void on_writable() override {}
    void on_closed(std::string) override {}
  };
  other.b.connection->start(std::make_shared<quiet>());
  other.a.session->start();
  bytes batch;
  append_hello(batch, other.b.self);
  append_hello_answer(batch, {true, {3, false}, {}});
  append_pressure(batch, {5, true});
  append_pressure(batch, {4, false});
  other.b.connection->write(batch);
  other.settle();
  CHECK(other.a.session->peer_paused());
  CHECK(other.a.owner.pressures == std::vector<bool>{true});
}

TEST_CASE("X-106 of two reports that meet out of order the newer one counts") {
  link_pair net;
  net.start();
  net.b.session->set_pressure(true, 3);
  net.b.session->set_pressure(false, 4);
  net.b.session->set_pressure(true, 3); // of the thread that came first, and was held up
  net.settle();
  CHECK_FALSE(net.a.session->peer_paused());
  net.b.session->set_pressure(true, 5);
  net.settle();
  CHECK(net.a.session->peer_paused());
}

TEST_CASE("X-77 a flood is worked through in slices of at most 64 records, and nothing is lost") {
  link_pair flood;
  flood.start();
  for (int i = 0; i < 1'000; ++i)
    flood.a.session->send(flood.make_note(std::to_string(i)), link_pair::to_spot("s"), flood.in(1s));
  std::size_t largest_step = 0;
  std::size_t before = 0;
  CHECK(flood.executor.run_until(
    [&] {
      const auto now = flood.b.owner.messages.size();
      largest_step = std::max(largest_step, now - before); // called after every job
      before = now;
      return now == 1'000;
    },
    1s));
  CHECK(largest_step <= 64);
  flood.settle();
  CHECK(flood.b.owner.messages.size() == 1'000);
}

TEST_CASE("S-64 what had arrived when the connection ended is still delivered, before on_down") {
  link_pair net;
  net.start();
  for (int i = 0; i < 1'000; ++i)
    net.a.session->send(net.make_note(std::to_string(i)), link_pair::to_spot("s"), net.in(1s));
  CHECK(net.executor.run_until([&] { return net.b.owner.messages.size() >= 64; }, 1s));
  net.executor.run_until([&] { return net.a.session->counters().batches_out > 2; }, 1s);
  const auto before = net.b.owner.messages.size();
  CHECK(before < 900);
  net.network.lose_connections("a", "b");
  net.settle();
  CHECK(net.b.owner.messages.size() == 1'000);
  CHECK(net.b.owner.downs.size() == 1);
}

TEST_CASE("S-64 an orderly close still sends what was admitted, replies first, within its linger") {
  replies_seen at_b;
  link_pair net{5ms, 9};
  net.start();
  net.b.session->send(net.make_request("?", at_b.route(1)), link_pair::to_spot("s"), net.in(1s));
  net.settle();
  net.network.cut_one_way("a", "b");
  for (int i = 0; i < 5'000; ++i)
    net.a.session->send(net.make_note(kilobyte('x')), link_pair::to_spot("s"), net.in(10ms));
  const auto admitted = net.a.session->counters().messages_out.load();
  CHECK(admitted > 3'000);
  net.a.owner.answer(0, note{"last word"});
  net.a.session->close("drained");
  CHECK(net.a.owner.downs.size() == 1);
  net.network.heal("a", "b");
  net.executor.run_for(900ms);
  CHECK(at_b.seen.size() == 1);
  CHECK(net.b.owner.messages.size() == admitted);
  CHECK(net.b.owner.downs == std::vector<std::string>{"closed by the peer: drained"});
}
