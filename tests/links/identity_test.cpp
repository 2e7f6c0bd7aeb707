// What a node says of itself and what its certificate says (O-143).
#include "adapters/tcp/tcp_link.hpp"
#include "tests/links/certificates.hpp"
#include "tests/links/poll.hpp"
#include "zlink/execution/system_executor.hpp"
#include "zlink/messaging/link_session.hpp"

#include <doctest/doctest.h>

#include <mutex>

using namespace zlink;
using namespace zlink::detail;
using namespace zlink::test;

namespace {

class noting_owner final : public link_owner {
public:
  void on_hello(link_session& link, const link_identity& peer) override {
    {
      std::lock_guard guard{mutex};
      heard = peer.security_identity;
    }
    link.admit();
  }
  void on_ready(link_session&) override { ready = true; }
  bool on_message(link_session&, byte_view, std::uint32_t, steady_time) override { return true; }
  void on_control(link_session&, std::uint16_t, byte_view) override {}
  void on_peer_pressure(link_session&, bool) override {}
  void on_undecodable(link_session&, const std::string&) override {}
  void on_down(link_session&, const std::string& why) override {
    std::lock_guard guard{mutex};
    reason = why;
    down = true;
  }
  template <class F>
  auto read(F f) {
    std::lock_guard guard{mutex};
    return f(*this);
  }
  std::mutex mutex;
  std::string heard;
  std::string reason;
  std::atomic<bool> ready{false};
  std::atomic<bool> down{false};
};

class fixed_source final : public random_source {
public:
  std::uint64_t next() override { return 4; }
};

/// Two sessions over TLS, of which the dialling one says that of itself.
struct meeting {
  explicit meeting(const std::string& claim) {
    std::shared_ptr<link_connection> ends[2];
    std::atomic<int> connected{0};
    const auto where = nodes[0]->listen("127.0.0.1", 0, [&](auto made) {
      ends[0] = std::move(made);
      ++connected;
    });
    nodes[1]->connect(where, 20'000, [&](auto made) {
      ends[1] = std::move(made.value());
      ++connected;
    });
    REQUIRE(poll_until([&] { return connected == 2; }));
    for (std::size_t i = 0; i < 2; ++i) {
      link_options options;
      options.self.mesh = "m";
      options.self.rid = i == 0 ? "a" : "b";
      options.self.frame_limit = 1 << 20;
      options.self.security_identity = i == 0 ? nodes[0]->security_identity() : claim;
      options.connection = std::move(ends[i]);
      options.owner = &owners[i];
      options.infra = &infra;
      options.random = std::make_shared<fixed_source>();
      options.codecs = &codecs;
      options.replies = std::make_shared<reply_table>();
      sessions[i] = link_session::make(std::move(options));
      sessions[i]->start();
    }
    REQUIRE(poll_until([&] { return (owners[0].ready && owners[1].ready) || (owners[0].down && owners[1].down); }));
  }
  ~meeting() {
    for (auto& node : nodes)
      node->stop();
    infra.stop();
  }
  static std::shared_ptr<tcp_link> make(test_authority& authority, const std::string& name) {
    tcp_link_options options;
    options.mesh = "m";
    options.tls = authority.issue(name, {.names = "DNS:" + name + ",IP:127.0.0.1"});
    return make_tcp_link(std::move(options));
  }

  test_authority authority;
  std::shared_ptr<system_clock> time = std::make_shared<system_clock>();
  std::shared_ptr<execution_environment> environment = make_system_environment();
  infrastructure infra{environment->make_serial("infra", time), time};
  codec_registry codecs;
  noting_owner owners[2];
  std::shared_ptr<tcp_link> nodes[2]{make(authority, "a"), make(authority, "b")};
  counted_ptr<link_session> sessions[2];
};

} // namespace

TEST_CASE("O-143 a node that says what its certificate says is admitted, and known by it") {
  meeting made{"DNS:b,IP:127.0.0.1"};
  CHECK(made.owners[0].ready);
  CHECK(made.owners[0].read([](auto& owner) { return owner.heard; }) == "DNS:b,IP:127.0.0.1");
}

TEST_CASE("O-143 a node that says nothing of itself is known by its certificate") {
  meeting made{""};
  CHECK(made.owners[0].read([](auto& owner) { return owner.heard; }) == "DNS:b,IP:127.0.0.1");
}

TEST_CASE("O-143 a node that claims another identity than its certificate has is refused") {
  meeting made{"DNS:a,IP:127.0.0.1"};
  CHECK(made.owners[0].down);
  CHECK_FALSE(made.owners[0].ready);
  CHECK(made.owners[0].read([](auto& owner) { return owner.reason; }).find("security identity") != std::string::npos);
}
