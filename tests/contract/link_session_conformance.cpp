// Link sessions over real transports: the same on each of them.
#include "tests/contract/link_conformance.hpp"
#include "zlink/execution/system_executor.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/packet.hpp"

#include <atomic>
#include <mutex>

using namespace zlink;
using namespace zlink::detail;
using namespace zlink::test;

namespace {

struct question {
  std::string text;
};
ZLINK_PACKET(question, "link_conformance.question", text)

/// Answers every request with an empty reply.
class answering_owner final : public link_owner {
public:
  void on_hello(link_session& link, const link_identity&) override { link.admit(); }
  void on_ready(link_session&) override { ready = true; }
  bool on_message(link_session& link, byte_view frame, std::uint32_t, steady_time arrived) override {
    message_header header;
    if (auto* r = link.open(frame, arrived, header)) {
      r->body.reset();
      send_reply(r);
    }
    return true;
  }
  void on_control(link_session&, std::uint16_t, byte_view) override {}
  void on_peer_pressure(link_session&, bool) override {}
  void on_undecodable(link_session&, const std::string&) override {}
  void on_down(link_session&, const std::string&) override { down = true; }

  std::atomic<bool> ready{false};
  std::atomic<bool> down{false};
};

class end_counter final : public reply_receiver {
public:
  void receive_reply(record* r) noexcept override {
    (r->body.empty() ? answers : failures) += 1;
    free_record(r);
  }
  void ref_receiver() noexcept override {}
  void unref_receiver() noexcept override {}
  std::atomic<int> answers{0};
  std::atomic<int> failures{0};
};

class system_source final : public random_source {
public:
  std::uint64_t next() override { return random_.next(); }

private:
  system_random random_;
};

} // namespace

TEST_CASE("S-59 M-135 sessions over a transport: requests are answered, and fail when the other node stops") {
  for_each_transport([](transports_under_test& nodes) {
    const auto time = std::make_shared<system_clock>();
    const auto environment = make_system_environment();
    infrastructure infra{environment->make_serial("infra", time), time};
    codec_registry codecs;
    answering_owner owners[2];
    counted_ptr<link_session> sessions[2];
    std::mutex mutex;
    const auto begin = [&](std::size_t i, std::shared_ptr<link_connection> connection) {
      link_options options;
      options.self.mesh = "mesh";
      options.self.rid = i == 0 ? "a" : "b";
      options.self.frame_limit = 1 << 20;
      options.self.window_bytes = options.outbound_bytes;
      options.connection = std::move(connection);
      options.owner = &owners[i];
      options.infra = &infra;
      options.random = std::make_shared<system_source>();
      options.codecs = &codecs;
      options.replies = std::make_shared<reply_table>();
      auto made = link_session::make(std::move(options));
      made->start();
      std::lock_guard guard{mutex};
      sessions[i] = std::move(made);
    };
    std::atomic<int> connected{0};
    std::shared_ptr<link_connection> made[2];
    const auto where = nodes.node(0).listen(nodes.host(0), 0, [&](auto c) {
      made[0] = std::move(c);
      ++connected;
    });
    nodes.node(1).connect(where, 20'000, [&](auto c) {
      made[1] = std::move(c.value());
      ++connected;
    });
    REQUIRE(nodes.until([&] { return connected == 2; }));
    begin(0, made[0]);
    begin(1, made[1]);
    REQUIRE(nodes.until([&] { return owners[0].ready && owners[1].ready; }));
    end_counter caller;
    message_header header;
    header.target_id = "s";
    header.operation = {1, 1};
    const auto ask = [&] {
      auto* r = make_record(record_kind::request);
      r->body.emplace<question>(question{"?"});
      r->reply = {&caller, 1};
      sessions[1]->send(r, header, time->now() + std::chrono::seconds{10});
    };
    for (int i = 0; i < 1'000; ++i)
      ask();
    REQUIRE(nodes.until([&] { return caller.answers == 1'000; }));
    nodes.node(0).stop();
    REQUIRE(nodes.until([&] { return owners[0].down && owners[1].down; }));
    ask();
    CHECK(caller.failures == 1);
    nodes.node(1).stop();
    nodes.node(2).stop();
    nodes.until([] { return true; });
    infra.stop();
  });
}
