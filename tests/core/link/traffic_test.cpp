#include "link_pair.hpp"

#include <doctest/doctest.h>

using namespace link_test;
using namespace std::chrono_literals;

TEST_CASE("M-132 a request travels with all its parts and its reply finds the way back") {
  replies_seen caller;
  link_pair net;
  net.start();
  auto header = link_pair::to_spot("cart-17");
  header.fence = message_fence{{3}, {4}};
  header.instance_intent = true;
  header.activation = message_activation{"cart", "mesh", {5}, {6}};
  auto* r = net.make_request("price?", caller.route(77), net.in(2500ms));
  r->more().metadata.set("trace", "on");
  net.a.session->send(r, header, net.in(1s));
  CHECK(net.a.replies->size() == 1);
  net.settle();
  REQUIRE(net.b.owner.messages.size() == 1);
  auto& got = net.b.owner.messages[0];
  CHECK(got.target == target_kind::spot);
  CHECK(got.target_id == "cart-17");
  CHECK(got.fence == message_fence{{3}, {4}});
  CHECK(got.intent);
  CHECK(got.stable_type == "cart");
  CHECK(got.r->kind == record_kind::request);
  CHECK(got.r->from_link);
  CHECK(got.r->operation == operation_id{1, 2});
  CHECK(got.r->extra->metadata.get("trace") == "on");
  CHECK(got.r->deadline > net.time->now() + 2s);
  CHECK(got.r->deadline <= net.time->now() + 2500ms);
  CHECK(net.b.owner.text(0) == "price?");
  net.b.owner.answer(0, note{"9.90"});
  net.settle();
  REQUIRE(caller.seen.size() == 1);
  CHECK(caller.seen[0].id == 77);
  CHECK(recording_owner::text_of(caller.seen[0].body) == "9.90");
  CHECK(caller.references == 0);
  CHECK(net.a.replies->size() == 0);
  header.operation = {3, 2}; // the whole id counts
  net.a.session->send(net.make_request("again", caller.route(78)), header, net.in(1s));
  net.settle();
  CHECK(net.b.owner.messages.at(1).r->operation == operation_id{3, 2});
}

TEST_CASE("O-7 every end of a request arrives as what it was: empty, each error kind with its code, cancelled") {
  replies_seen caller;
  link_pair net;
  net.start();
  const auto ask = [&] {
    net.a.session->send(net.make_request("?", caller.route(1)), link_pair::to_spot("s"), net.in(1s));
    net.settle();
    return net.b.owner.messages.size() - 1;
  };
  net.b.owner.answer_empty(ask());
  net.settle();
  CHECK(caller.seen.back().body.empty());
  for (int kind = 0; kind <= static_cast<int>(error_kind::invalid_configuration); ++kind) {
    net.b.owner.answer(ask(), error{static_cast<error_kind>(kind), "why", {"errno", -kind}});
    net.settle();
    auto* what = caller.seen.back().body.get<error>();
    REQUIRE(what != nullptr);
    CHECK(what->kind() == static_cast<error_kind>(kind));
    CHECK(what->message() == "why");
    CHECK(what->code() == error::platform_code{"errno", -kind});
  }
  net.b.owner.answer(ask(), cancelled_t{});
  net.settle();
  CHECK(caller.seen.back().body.get<cancelled_t>() != nullptr);
}

TEST_CASE("X-165 a reply that cannot be encoded becomes internal_failure at the caller") {
  replies_seen caller;
  link_pair net;
  net.start();
  net.a.session->send(net.make_request("?", caller.route(1)), link_pair::to_spot("s"), net.in(1s));
  net.settle();
  struct no_packet {};
  net.b.owner.answer(0, no_packet{});
  net.settle();
  REQUIRE(caller.seen.size() == 1);
  CHECK(caller.failure(0) == error_kind::internal_failure);
}

TEST_CASE("M-135 S-63 M-5 a lost link ends every outstanding request in unavailable, once, and nothing is sent again") {
  replies_seen caller;
  link_pair net;
  net.start();
  for (std::uint64_t i = 0; i < 10; ++i)
    net.a.session->send(net.make_request("?", caller.route(i)), link_pair::to_spot("s"), net.in(1s));
  net.settle();
  net.b.owner.answer(4, note{"just in time"});
  net.settle();
  net.network.lose_connections("a", "b");
  net.settle();
  CHECK(caller.seen.size() == 10);
  for (std::size_t i = 1; i < 10; ++i)
    CHECK(caller.failure(i) == error_kind::unavailable);
  CHECK(net.b.owner.messages.size() == 10);
  net.b.owner.answer(5, note{"too late"});
  net.settle();
  CHECK(caller.seen.size() == 10);
  CHECK(net.b.session->counters().lost_replies == 1);
  net.a.session->send(net.make_request("?", caller.route(99)), link_pair::to_spot("s"), net.in(1s));
  CHECK(caller.failure(10) == error_kind::unavailable);
  CHECK(net.b.owner.messages.size() == 10);
}

TEST_CASE("M-146 a reply that nobody waits for is counted and dropped") {
  replies_seen caller;
  link_pair net;
  net.start();
  net.a.session->send(net.make_request("?", caller.route(1), net.in(1s)), link_pair::to_spot("s"), net.in(1s));
  net.settle();
  net.executor.run_for(6s); // the deadline has passed, and the next sweep too
  REQUIRE(caller.seen.size() == 1);
  CHECK(caller.failure(0) == error_kind::deadline_exceeded);
  net.b.owner.answer(0, note{"late"});
  net.settle();
  CHECK(caller.seen.size() == 1);
  CHECK(net.a.session->counters().unmatched_replies == 1);
}

TEST_CASE("M-148 10,000 messages of all families from one origin arrive in order, whatever the delays") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    replies_seen caller;
    link_pair net{30ms, seed};
    net.start();
    const target_kind kinds[] = {target_kind::spot, target_kind::actor, target_kind::publish, target_kind::channel};
    for (int i = 0; i < 10'000; ++i) {
      auto header = link_pair::to_spot("x");
      header.target = kinds[i % 4];
      header.topic = header.target == target_kind::publish ? "t" : "";
      if (i % 5 == 0)
        net.a.session->send(net.make_request(std::to_string(i), caller.route(1)), header, net.in(10s));
      else
        net.a.session->send(net.make_note(std::to_string(i)), header, net.in(10s));
      if (i % 97 == 0)
        net.executor.run_for(1ms);
    }
    net.executor.run_for(5s);
    REQUIRE(net.b.owner.messages.size() == 10'000);
    bool in_order = true;
    for (std::size_t i = 0; i < 10'000; ++i)
      in_order = in_order && net.b.owner.text(i) == std::to_string(i) && net.b.owner.messages[i].target == kinds[i % 4];
    CHECK(in_order);
    CHECK(net.a.session->counters().batches_out < 5000); // many messages share a batch
  }
}

TEST_CASE("channel, topic and the RID of a node-direct sender are there for the context, and nothing else") {
  link_pair net;
  net.start();
  const auto send_to = [&](target_kind kind, std::string_view id, std::string_view topic) {
    auto header = link_pair::to_spot(id);
    header.target = kind;
    header.topic = topic;
    net.a.session->send(net.make_note("x"), header, net.in(1s));
    net.settle();
    return net.b.owner.messages.back().r;
  };
  CHECK(send_to(target_kind::spot, "s", "")->extra == nullptr);
  CHECK(send_to(target_kind::channel, "chat", "")->extra->channel == "chat");
  auto* published = send_to(target_kind::publish, "chat", "news");
  CHECK(published->extra->channel == "chat");
  CHECK(published->extra->topic == "news");
}

TEST_CASE("a followed request goes on with its reply route, and the answer goes straight to the origin") {
  replies_seen caller;
  link_pair origin_and_old;
  origin_and_old.start();
  link_pair old_and_new;
  old_and_new.a.self.rid = "old";
  old_and_new.b.self.rid = "new";
  old_and_new.start();
  origin_and_old.a.session->send(origin_and_old.make_request("?", caller.route(5)), link_pair::to_spot("s"),
                                 origin_and_old.in(1s));
  origin_and_old.settle();
  // The old owner passes it on ...
  auto* r = std::exchange(origin_and_old.b.owner.messages[0].r, nullptr);
  const auto route = r->reply.id;
  old_and_new.a.session->send(r, link_pair::to_spot("s"), old_and_new.in(1s));
  CHECK(old_and_new.a.replies->size() == 0);
  old_and_new.settle();
  auto& arrived = old_and_new.b.owner.messages.at(0);
  CHECK(arrived.reply_node == "a");
  CHECK(arrived.r->reply.id == route);
  // ... and the new one answers by its own link to the origin: here the same wire, by another session object.
  auto* answer = std::exchange(arrived.r, nullptr);
  answer->reply.receiver->unref_receiver();
  answer->reply.receiver = origin_and_old.b.session.get();
  origin_and_old.b.session->ref();
  answer->body.emplace<note>(note{"here"});
  send_reply(answer);
  origin_and_old.settle();
  REQUIRE(caller.seen.size() == 1);
  CHECK(recording_owner::text_of(caller.seen[0].body) == "here");
}

TEST_CASE("M-38 malformed metadata: a request gets protocol_error, a send is dropped, no handler sees either") {
  link_pair net;
  net.make_sessions();
  net.a.session->start();
  struct silent final : link_connection_events {
    bool on_batch(byte_view batch) override {
      frame_reader in{batch};
      while (!in.at_end())
        if (const auto f = in.next(1 << 20); f.type == frame_type::reply)
          reply.assign(f.body.begin(), f.body.end());
      return false;
    }
    bool on_turn() override { return false; }
    void on_writable() override {}
    void on_closed(std::string) override {}
    bytes reply;
  };
  const auto peer = std::make_shared<silent>();
  net.b.connection->start(peer);
  bytes batch;
  append_hello(batch, net.b.self);
  append_hello_answer(batch, {true, {}, {}});
  const bytes bad{std::byte{1}, std::byte{0}, std::byte{0}};
  frame_buffer buffer;
  for (bool request : {true, false}) {
    begin_message(buffer, link_pair::to_spot("s"), {"p", "text/x", bad}, request, false);
    const auto frame = buffer.finish();
    set_message_times(frame, 42, 0);
    batch.insert(batch.end(), frame.begin(), frame.end());
  }
  net.b.connection->write(batch);
  net.settle();
  CHECK(net.a.owner.messages.empty());
  CHECK(net.a.session->counters().undecodable == 2);
  REQUIRE_FALSE(peer->reply.empty());
  const auto reply = decode_reply_frame(peer->reply);
  CHECK(reply.reply_route == 42);
  CHECK(reply.failure->kind() == error_kind::protocol_error);
  CHECK(net.a.owner.downs.empty());
}
