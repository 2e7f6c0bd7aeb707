// Whom TLS lets in: only those whose certificate the authority signed, who hold its key, and who are where they were dialled.
#include "adapters/tcp/tcp_link.hpp"
#include "tests/core/store/manual_clock.hpp"
#include "tests/link_abuse/raw_peer.hpp"
#include "tests/links/certificates.hpp"

#include <optional>

using namespace zlink;
using namespace zlink::detail;
using namespace zlink::test;

namespace {

/// Two transports, one dials the other; how that ends.
class attempt {
public:
  attempt(std::optional<mesh_tls> listening, std::optional<mesh_tls> dialling, const std::string& host = "127.0.0.1") {
    listening_ = make(std::move(listening), told_);
    dialling_ = make(std::move(dialling), dialling_told_);
    auto where = listening_->listen("127.0.0.1", 0, [this](auto made) {
      identity_ = made->peer_security_identity();
      ++accepted_;
    });
    where.host = host;
    dialling_->connect(where, 20'000, [this](auto made) {
      connected_ = made.has_value();
      why_ = made ? std::string{} : made.error().message();
      ++ended_;
    });
    CHECK(poll_until([&] { return ended_ == 1; }));
    if (connected_)
      CHECK(poll_until([&] { return accepted_ == 1; }));
    dialling_->stop();
    listening_->stop();
  }
  bool let_in() const { return connected_ && accepted_ == 1; }
  bool kept_out() const { return !connected_ && accepted_ == 0; }
  const std::string& why() const { return why_; }
  const std::string& identity() const { return identity_; }
  tcp_link& listening() { return *listening_; }
  tcp_link& dialling() { return *dialling_; }
  const std::vector<link_refusal>& told() const { return told_; }
  const std::vector<link_refusal>& dialling_told() const { return dialling_told_; }

private:
  static std::shared_ptr<tcp_link> make(std::optional<mesh_tls> tls, std::vector<link_refusal>& told) {
    tcp_link_options options;
    options.mesh = "m";
    options.tls = std::move(tls);
    options.time = std::make_shared<manual_clock>();
    options.on_refused = [&told](const link_refusal& what) { told.push_back(what); };
    return make_tcp_link(std::move(options));
  }
  std::vector<link_refusal> told_;
  std::vector<link_refusal> dialling_told_;
  std::shared_ptr<tcp_link> listening_;
  std::shared_ptr<tcp_link> dialling_;
  std::string why_;
  std::string identity_;
  std::atomic<bool> connected_{false};
  std::atomic<int> accepted_{0};
  std::atomic<int> ended_{0};
};

} // namespace

TEST_CASE("O-141 O-143 two nodes of one authority meet, and each knows the other by its certificate") {
  test_authority authority;
  attempt made{authority.issue("a"), authority.issue("b", {.names = "DNS:node-b.example,IP:192.0.2.7,URI:zlink:b"})};
  CHECK(made.let_in());
  CHECK(made.identity() == "DNS:node-b.example,IP:192.0.2.7,URI:zlink:b");
  CHECK(made.listening().refused() == 0);
}

TEST_CASE("a certificate of another authority, one that is over, or one that is not yet good is refused, counted and told") {
  test_authority authority;
  test_authority other;
  const auto check = [&](const mesh_tls& stranger) {
    attempt dials{authority.issue("a"), stranger};
    CHECK(dials.kept_out());
    CHECK(dials.listening().refused() == 1);
    CHECK(dials.told().size() == 1);
    attempt listens{stranger, authority.issue("b")};
    CHECK(listens.kept_out());
    CHECK(listens.dialling().refused(refusal::certificate) == 1);
    CHECK(listens.dialling_told().size() == 1);
  };
  auto foreign = other.issue("c");
  check(foreign);
  foreign.ca = authority.file("ca.crt"); // it would take us; we do not take it
  check(foreign);
  check(authority.issue("old", {.valid_from_days = -5, .valid_days = 3}));
  check(authority.issue("new", {.valid_from_days = 3, .valid_days = 3}));
}

TEST_CASE("O-143 who is dialled must have a certificate for the host that was dialled") {
  test_authority authority;
  CHECK(attempt(authority.issue("a"), authority.issue("b"), "localhost").let_in());
  CHECK(attempt(authority.issue("a"), authority.issue("b"), "127.0.0.1").let_in());
  for (const auto* names : {"DNS:localhost", "DNS:127.0.0.1", "IP:192.0.2.1", "DNS:*.example"}) {
    attempt made{authority.issue("a", {.names = names}), authority.issue("b")};
    CHECK(made.kept_out());
    CHECK(made.why().find("TLS") != std::string::npos);
    CHECK(made.dialling().refused(refusal::certificate) == 1);
  }
}

TEST_CASE("one end with TLS and the other without do not meet, whichever it is") {
  test_authority authority;
  attempt plain_dials{authority.issue("a"), std::nullopt};
  CHECK(plain_dials.kept_out());
  CHECK(plain_dials.listening().refused(refusal::certificate) == 1);
  attempt plain_listens{std::nullopt, authority.issue("b")};
  CHECK(plain_listens.kept_out());
  CHECK(plain_listens.listening().refused(refusal::not_a_peer) == 1);
}

TEST_CASE("a port with TLS takes noise as any other") {
  test_authority authority;
  tcp_link_options options;
  options.tls = authority.issue("a");
  options.handshake_timeout = std::chrono::milliseconds{500};
  honest_pair nodes{options};
  for (int i = 0; i < 100; ++i) {
    raw_peer peer{nodes.port()};
    peer.send(bytes(static_cast<std::size_t>(1 + i * 7), static_cast<std::byte>(i)));
    peer.send_batch(bytes(50, std::byte{0x16}));
    CHECK(peer.closed_by_the_other());
  }
  CHECK(nodes.listening().refused() == 100);
  CHECK(nodes.alone());
  CHECK(nodes.works());
}
