// Two link sessions, "a" and "b", over a network in memory, with everything their owners hear.
#pragma once

#include "tests/sim/manual_executor.hpp"
#include "tests/sim/sim_transport.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/packet.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace link_test {

struct note {
  std::string text;
};
ZLINK_PACKET(note, "link_test.note", text)

using namespace zlink;
using namespace zlink::detail;

/// Waits for replies; counts what comes for each id.
class replies_seen final : public reply_receiver {
public:
  struct reply {
    std::uint64_t id;
    payload body;
  };
  void receive_reply(record* r) noexcept override {
    seen.push_back({r->reply.id, std::move(r->body)});
    free_record(r);
  }
  void ref_receiver() noexcept override { ++references; }
  void unref_receiver() noexcept override { --references; }

  /// A route that answers here as `id`.
  reply_route route(std::uint64_t id) {
    ref_receiver();
    return {this, id};
  }
  std::optional<error_kind> failure(std::size_t i) {
    auto* what = seen.at(i).body.get<error>();
    return what == nullptr ? std::nullopt : std::optional{what->kind()};
  }

  std::vector<reply> seen;
  int references = 0;
};

class recording_owner final : public link_owner {
public:
  struct received {
    record* r; ///< null once answered
    target_kind target;
    std::string target_id;
    std::string topic;
    std::string reply_node;
    std::optional<message_fence> fence;
    bool intent = false;
    std::string stable_type;
    std::uint32_t wire_bytes;
  };
  ~recording_owner() {
    for (auto& m : messages)
      if (m.r != nullptr)
        free(m.r);
  }
  void on_hello(link_session& link, const link_identity& peer) override {
    ++hellos;
    if (!decide)
      return;
    if (auto refusal = unexpected_peer(peer, expected))
      link.refuse(*refusal);
    else
      link.admit();
  }
  void on_ready(link_session& link) override {
    ++readies;
    paused_at_ready = link.peer_paused();
  }
  bool on_message(link_session& link, byte_view frame, std::uint32_t wire_bytes, steady_time arrived) override {
    message_header h;
    auto* r = link.open(frame, arrived, h);
    if (r == nullptr)
      return true;
    messages.push_back({r, h.target, std::string{h.target_id}, std::string{h.topic}, std::string{h.reply_node}, h.fence,
                        h.instance_intent, std::string{h.activation ? h.activation->stable_type : ""}, wire_bytes});
    return takes;
  }
  void on_control(link_session&, std::uint16_t command, byte_view data) override {
    controls.emplace_back(command, bytes{data.begin(), data.end()});
  }
  void on_peer_pressure(link_session&, bool paused) override { pressures.push_back(paused); }
  void on_undecodable(link_session&, const std::string& why) override { undecodable.push_back(why); }
  void on_down(link_session&, const std::string& reason) override { downs.push_back(reason); }

  /// Answers a request that was received.
  template <class T>
  void answer(std::size_t i, T value) {
    auto* r = std::exchange(messages.at(i).r, nullptr);
    r->body.emplace<T>(std::move(value));
    send_reply(r);
  }
  void answer_empty(std::size_t i) {
    auto* r = std::exchange(messages.at(i).r, nullptr);
    r->body.reset();
    send_reply(r);
  }
  std::string text(std::size_t i) { return text_of(messages.at(i).r->body); }
  static std::string text_of(payload& body) {
    auto* encoded = body.get<encoded_value>();
    return encoded == nullptr ? "?" : decode<note>(encoded->data()).text;
  }
  static void free(record* r) {
    if (auto* receiver = std::exchange(r->reply.receiver, nullptr))
      receiver->unref_receiver();
    free_record(r);
  }

  bool decide = true; ///< answer the hello at once
  bool takes = true;
  link_expectation expected;
  int hellos = 0;
  int readies = 0;
  bool paused_at_ready = false;
  std::vector<received> messages;
  std::vector<std::pair<std::uint16_t, bytes>> controls;
  std::vector<bool> pressures;
  std::vector<std::string> undecodable;
  std::vector<std::string> downs;
};

class counting_random final : public random_source {
public:
  std::uint64_t next() override { return ++last; }
  std::uint64_t last = 0;
};

/// Runs on one thread under a manual clock.
class link_pair {
public:
  struct node {
    std::shared_ptr<link_transport> transport;
    std::shared_ptr<link_connection> connection;
    recording_owner owner;
    std::shared_ptr<reply_table> replies = std::make_shared<reply_table>();
    link_identity self;
    std::uint64_t outbound_bytes = 4'096'000;
    std::uint32_t encoded_waiters = 1024;
    counted_ptr<link_session> session;
  };

  explicit link_pair(steady_duration max_delay = steady_duration::zero(), std::uint64_t seed = 0)
    : executor(time, seed), infra(executor.make_serial("infra", time), time),
      network({[this](auto job) { executor.post(std::move(job)); },
               [this](auto delay, auto job) { executor.post_after(delay, std::move(job)); },
               [this] { return executor.random(); }},
              max_delay) {
    a.self = identity("a", 11);
    b.self = identity("b", 22);
    connect();
  }
  ~link_pair() {
    for (auto* n : {&a, &b}) {
      if (n->session)
        n->session->close("test over");
    }
    executor.run_for(std::chrono::seconds{2});
  }

  static link_identity identity(const std::string& rid, std::uint64_t lifecycle) {
    link_identity who;
    who.mesh = "mesh";
    who.rid = rid;
    who.lifecycle = {lifecycle};
    who.revision = {1};
    who.role = object_role::server;
    who.channels = {{"chat", true, 100}};
    who.frame_limit = 64 << 20;
    who.window_bytes = 4'096'000;
    who.entry_spot_id = rid + "-entry";
    return who;
  }
  /// Both sessions, not started.
  void make_sessions() {
    for (auto* n : {&a, &b})
      remake(*n, n->outbound_bytes, n->outbound_bytes);
  }
  /// A session that tells its peer one window and keeps to another.
  void remake(node& one, std::uint64_t told, std::uint64_t kept) {
    one.outbound_bytes = kept;
    one.self.window_bytes = told;
    link_options options;
    options.self = one.self;
    options.connection = one.connection;
    options.owner = &one.owner;
    options.infra = &infra;
    options.random = random;
    options.codecs = &codecs;
    options.replies = one.replies;
    options.outbound_bytes = kept;
    options.encoded_waiters = one.encoded_waiters;
    one.session = link_session::make(options);
  }
  void start() {
    make_sessions();
    a.session->start();
    b.session->start();
    settle();
  }
  /// A new pair of connections, for new sessions.
  void connect() {
    a.transport = network.make_transport("a");
    b.transport = network.make_transport("b");
    const auto where = b.transport->listen("b", 0, [this](auto made) { b.connection = std::move(made); });
    a.transport->connect(where, 1000, [this](auto made) { a.connection = std::move(made.value()); });
    executor.run_until([this] { return a.connection && b.connection; }, std::chrono::seconds{1});
  }
  void settle() { executor.run_for(max_settle); }
  steady_time in(steady_duration after) const { return time->now() + after; }

  /// A one-way record.
  record* make_note(std::string text) {
    auto* r = make_record(record_kind::send);
    r->body.emplace<note>(note{std::move(text)});
    return r;
  }
  record* make_request(std::string text, reply_route route, steady_time deadline = {}) {
    auto* r = make_note(std::move(text));
    r->kind = record_kind::request;
    r->reply = route;
    r->deadline = deadline;
    return r;
  }
  static message_header to_spot(std::string_view id) {
    message_header h;
    h.target_id = id;
    h.operation = {1, 2};
    return h;
  }

  static constexpr std::chrono::milliseconds max_settle{200};
  std::shared_ptr<test::manual_clock> time = std::make_shared<test::manual_clock>();
  test::manual_executor executor;
  infrastructure infra;
  test::sim_network network;
  std::shared_ptr<counting_random> random = std::make_shared<counting_random>();
  codec_registry codecs;
  node a;
  node b;
};

} // namespace link_test
