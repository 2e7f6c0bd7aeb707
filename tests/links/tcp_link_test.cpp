// tcp_link passes the conformance suite of links on real sockets, plain and protected, and stays where it may be.
#include "adapters/tcp/tcp_link.hpp"
#include "tests/contract/link_conformance.hpp"
#include "tests/links/certificates.hpp"
#include "tests/links/poll.hpp"

#include <atomic>

using namespace zlink;
using namespace zlink::detail;
using namespace zlink::test;

namespace {

class tcp_transports : public transports_under_test {
public:
  explicit tcp_transports(bool protect) {
    for (std::size_t i = 0; i < 3; ++i) {
      tcp_link_options options;
      options.mesh = "mesh";
      options.secret = "all nodes of the mesh know this";
      if (protect)
        options.tls = authority().issue("node" + std::to_string(i));
      nodes_[i] = make_tcp_link(std::move(options));
    }
  }
  link_transport& node(std::size_t i) override { return *nodes_[i]; }
  std::string host(std::size_t) override { return "127.0.0.1"; }
  bool until(std::function<bool()> done) override { return poll_until(done); }

private:
  static test_authority& authority() {
    static test_authority one;
    return one;
  }
  std::shared_ptr<tcp_link> nodes_[3];
};

const transport_registration plain{"tcp", [] { return std::make_unique<tcp_transports>(false); }};
const transport_registration secure{"tcp with TLS", [] { return std::make_unique<tcp_transports>(true); }};

tcp_link_options of_mesh(std::string name) {
  tcp_link_options options;
  options.mesh = std::move(name);
  return options;
}

} // namespace

TEST_CASE("O-141 links over TCP stay on loopback unless TLS is configured") {
  const auto transport = make_tcp_link(of_mesh("m"));
  for (const auto* far : {"0.0.0.0", "::", "192.0.2.1", "node.example"})
    CHECK_THROWS_AS(transport->listen(far, 0, [](auto) {}), configuration_error);
  std::atomic<int> refused{0};
  transport->connect({"tcp", "192.0.2.1", 9}, 1000,
                     [&](auto made) { refused += made.error().kind() == error_kind::not_configured ? 1 : 100; });
  transport->connect({"caf", "127.0.0.1", 9}, 1000,
                     [&](auto made) { refused += made.error().kind() == error_kind::not_configured ? 1 : 100; });
  CHECK(poll_until([&] { return refused == 2; }));
  CHECK(transport->listen("localhost", 0, [](auto) {}).port != 0);
  transport->stop();
}

TEST_CASE("O-141 with TLS any address may be listened on") {
  test_authority authority;
  auto options = of_mesh("m");
  options.tls = authority.issue("node");
  const auto transport = make_tcp_link(std::move(options));
  CHECK(transport->listen("0.0.0.0", 0, [](auto) {}).port != 0);
  CHECK(transport->security_identity() == "DNS:localhost,IP:127.0.0.1");
}

TEST_CASE("a port in use, a wrong secret's length and missing files are configuration errors that say so") {
  const auto first = make_tcp_link(of_mesh("m"));
  const auto where = first->listen("127.0.0.1", 0, [](auto) {});
  const auto second = make_tcp_link(of_mesh("m"));
  CHECK_THROWS_AS(second->listen("127.0.0.1", where.port, [](auto) {}), configuration_error);
  CHECK_NOTHROW(second->listen("127.0.0.1", 0, [](auto) {})); // a listen that failed took nothing
  CHECK_THROWS_AS(make_tcp_link(of_mesh("")), configuration_error);
  auto options = of_mesh("m");
  options.secret = "short";
  CHECK_THROWS_AS(make_tcp_link(options), configuration_error);
  test_authority authority;
  auto files = authority.issue("node");
  for (auto* one : {&files.cert, &files.key, &files.ca}) {
    auto wrong = of_mesh("m");
    const auto kept = std::exchange(*one, authority.file("missing.pem"));
    wrong.tls = files;
    *one = kept;
    try {
      make_tcp_link(std::move(wrong));
      FAIL("made without a file");
    } catch (const configuration_error& what) {
      CHECK(std::string{what.what()}.find("missing.pem") != std::string::npos);
    }
  }
  auto other = of_mesh("m");
  other.tls = authority.issue("node");
  other.tls->key = authority.issue("another").key;
  CHECK_THROWS_AS(make_tcp_link(std::move(other)), configuration_error);
  auto nameless = of_mesh("m");
  nameless.tls = authority.issue("nameless", {.names = ""});
  CHECK_THROWS_AS(make_tcp_link(std::move(nameless)), configuration_error);
}

TEST_CASE("a connection that outlives its transport does nothing any more") {
  auto listening = make_tcp_link(of_mesh("m"));
  auto dialling = make_tcp_link(of_mesh("m"));
  std::atomic<bool> accepted{false};
  std::shared_ptr<link_connection> kept;
  std::atomic<bool> connected{false};
  const auto where = listening->listen("127.0.0.1", 0, [&](auto) { accepted = true; });
  dialling->connect(where, 20'000, [&](auto made) {
    kept = std::move(made.value());
    connected = true;
  });
  REQUIRE(poll_until([&] { return connected && accepted; }));
  dialling.reset();
  kept->write(bytes(10));
  kept->close();
  kept->limit_batches(5);
  CHECK(poll_until([&] { return listening->connections() == 0 || listening->connections() == 1; }));
  listening.reset();
}
