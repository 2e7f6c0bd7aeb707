// TLS between a store and its server, with certificates made for the test.
#include "tests/redis/redis_client.hpp"
#include "tests/redis/redis_server.hpp"

#include <cstdlib>
#include <fstream>

using namespace zlink;
using namespace zlink::test;
using namespace std::chrono_literals;

namespace {

/// An authority, a server's certificate for 127.0.0.1, and a client's; another authority besides.
class certificates {
public:
  certificates() {
    authority("ca");
    authority("other");
    signed_by_ca("server", "subjectAltName=IP:127.0.0.1,DNS:redis.test");
    signed_by_ca("client", "extendedKeyUsage=clientAuth");
  }
  std::string file(const std::string& name) const { return (directory_.path() / name).string(); }

private:
  void openssl(const std::string& words) const {
    if (std::system(("openssl " + words + " >/dev/null 2>&1").c_str()) != 0)
      throw std::runtime_error{"openssl failed; install the packages of packages.txt"};
  }
  void authority(const std::string& name) const {
    openssl("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=" + name + " -keyout "
            + file(name + ".key") + " -out " + file(name + ".crt"));
  }
  void signed_by_ca(const std::string& name, const std::string& extension) const {
    std::ofstream{file("extension")} << extension << "\n";
    openssl("req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=" + name + " -keyout "
            + file(name + ".key") + " -out " + file(name + ".csr"));
    openssl("x509 -req -days 2 -in " + file(name + ".csr") + " -CA " + file("ca.crt") + " -CAkey " + file("ca.key")
            + " -CAcreateserial -extfile " + file("extension") + " -out " + file(name + ".crt"));
  }

  temporary_directory directory_;
};

const certificates& made() {
  static const certificates all;
  return all;
}

struct tls_server {
  explicit tls_server(std::vector<std::string> more = {}) {
    std::vector<std::string> settings = {
      "bind 127.0.0.1", "tls-port " + std::to_string(port), "tls-cert-file " + made().file("server.crt"),
      "tls-key-file " + made().file("server.key"), "tls-ca-cert-file " + made().file("ca.crt")};
    settings.insert(settings.end(), more.begin(), more.end());
    server = std::make_unique<redis_server>(settings);
  }
  std::shared_ptr<location_store> store(const std::string& host, const std::string& query) const {
    auto options = server->options("mesh");
    options.url = "rediss://" + host + ":" + std::to_string(port) + query;
    options.operation_timeout = 3s;
    return make_redis_location_store(options);
  }

  const std::uint16_t port = free_port();
  std::unique_ptr<redis_server> server;
};

const auto ca = [] { return "?ca=" + made().file("ca.crt"); };

} // namespace

TEST_CASE("O-152 S-139 TLS: large and small values, many at once, and a connection that is cut") {
  const tls_server tls{{"tls-auth-clients no"}};
  const auto store = tls.store("127.0.0.1", ca());
  const std::string large(1024 * 1024, 'v');
  put_one(*store, "large", large);
  CHECK(read(*store, "large").found->bytes == large);
  write_log log;
  for (int i = 0; i < 3000; ++i)
    log.put_new(*store, "key" + std::to_string(i));
  log.await();
  CHECK(log.count(write_log::end::applied) == 3000);
  tls.server->command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  until("it is connected again", [&] { return static_cast<bool>(try_put(*store, "k", "v")); });
}

TEST_CASE("O-152 a server whose certificate is of another authority or name gets nothing") {
  const tls_server tls{{"tls-auth-clients no"}};
  const auto refused = [&](const std::string& host, const std::string& query) {
    const auto outcome = try_put(*tls.store(host, query), "k", "v");
    REQUIRE(!outcome);
    CHECK(outcome.failure().what == store_failure_class::not_applied);
    CHECK(outcome.failure().misconfigured);
    CHECK_MESSAGE(outcome.failure().text.find("certificate is not accepted") != std::string::npos,
                  outcome.failure().text);
  };
  refused("127.0.0.1", "?ca=" + made().file("other.crt"));
  refused("127.0.0.1", "");
  refused("localhost", ca()); // not the name in the certificate
}

TEST_CASE("O-152 a server that wants a certificate of its clients gets ours") {
  const tls_server tls{{"tls-auth-clients yes"}};
  const auto ours = "&cert=" + made().file("client.crt") + "&key=" + made().file("client.key");
  CHECK(try_put(*tls.store("127.0.0.1", ca() + ours), "k", "v"));
  const auto outcome = try_put(*tls.store("127.0.0.1", ca()), "k", "v");
  REQUIRE(!outcome);
  CHECK(outcome.failure().what == store_failure_class::not_applied);
}

TEST_CASE("S-160 O-152 plain text to a TLS port, and TLS to a plain one, end with a reason") {
  const tls_server tls{{"tls-auth-clients no"}};
  auto options = tls.server->options("mesh");
  options.operation_timeout = 1s;
  options.url = "redis://127.0.0.1:" + std::to_string(tls.port);
  CHECK(!try_put(*make_redis_location_store(options), "k", "v"));
  const auto port = free_port();
  const redis_server plain{{"bind 127.0.0.1", "port " + std::to_string(port)}};
  options.url = "rediss://127.0.0.1:" + std::to_string(port) + ca();
  const auto outcome = try_put(*make_redis_location_store(options), "k", "v");
  REQUIRE(!outcome);
  CHECK_MESSAGE(outcome.failure().text.find("TLS") != std::string::npos, outcome.failure().text);
  options.url = "redis://127.0.0.1:" + std::to_string(port);
  CHECK(try_put(*make_redis_location_store(options), "k", "v"));
}

TEST_CASE("S-160 a certificate without its key, or with another's, is a configuration error") {
  redis_options options;
  options.key_prefix = "mesh";
  options.url = "rediss://h?cert=" + made().file("client.crt") + "&key=" + made().file("server.key");
  CHECK_THROWS(make_redis_location_store(options));
  options.url = "rediss://h?cert=" + made().file("client.crt");
  CHECK_THROWS(make_redis_location_store(options));
}
