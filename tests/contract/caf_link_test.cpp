#include "adapters/caf/caf_link.hpp"
#include "tests/contract/link_conformance.hpp"
#include "tests/sim/manual_executor.hpp"
#include "tests/sim/sim_transport.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/io/middleman.hpp>

#include <thread>

using namespace zlink;
using namespace zlink::detail;
using namespace zlink::test;

namespace {

/// Everything on the test's thread.
class sim_transports final : public transports_under_test {
public:
  sim_transports() {
    for (std::size_t i = 0; i < 3; ++i)
      nodes_[i] = net_.make_transport(host(i));
  }
  link_transport& node(std::size_t i) override { return *nodes_[i]; }
  std::string host(std::size_t i) override { return "host" + std::to_string(i); }
  bool until(std::function<bool()> done) override { return executor_.run_until(done, std::chrono::hours{1}); }

private:
  std::shared_ptr<manual_clock> time_ = std::make_shared<manual_clock>();
  manual_executor executor_{time_};
  sim_network net_{{[this](auto job) { executor_.post(std::move(job)); },
                    [this](auto delay, auto job) { executor_.post_after(delay, std::move(job)); },
                    [this] { return executor_.random(); }}};
  std::shared_ptr<link_transport> nodes_[3];
};

struct caf_config : caf::actor_system_config {
  caf_config() {
    load<caf::io::middleman>();
    set("scheduler.max-threads", 1);
    set("middleman.workers", 0);
  }
};

/// Polls, giving other threads their time: nobody tells when something has happened on a thread of CAF.
bool poll_until(const std::function<bool()>& done) {
  system_clock time;
  const auto give_up = time.now() + std::chrono::seconds{60};
  while (!done()) {
    if (time.now() > give_up)
      return false;
    std::this_thread::yield();
  }
  return true;
}

/// Nodes 0 and 1 in systems of their own, node 2 together with node 0.
class caf_transports final : public transports_under_test {
public:
  caf_transports() : nodes_{make_caf_link(first_), make_caf_link(second_), make_caf_link(first_)} {}
  ~caf_transports() override {
    for (auto& node : nodes_)
      node->stop();
  }
  link_transport& node(std::size_t i) override { return *nodes_[i]; }
  std::string host(std::size_t) override { return "127.0.0.1"; }
  bool until(std::function<bool()> done) override { return poll_until(done); }

private:
  caf_config configs_[2];
  caf::actor_system first_{configs_[0]};
  caf::actor_system second_{configs_[1]};
  std::shared_ptr<link_transport> nodes_[3];
};

const transport_registration sim{"sim", [] { return std::make_unique<sim_transports>(); }};
const transport_registration caf_remoting{"caf", [] { return std::make_unique<caf_transports>(); }};

} // namespace

TEST_CASE("links over CAF remoting stay on loopback unless TLS is configured") {
  caf_config config;
  caf::actor_system system{config};
  const auto transport = make_caf_link(system);
  CHECK_THROWS_AS(transport->listen("0.0.0.0", 0, [](auto) {}), configuration_error);
  CHECK_THROWS_AS(transport->listen("::", 0, [](auto) {}), configuration_error);
  std::atomic<int> refused{0};
  transport->connect({"caf", "192.0.2.1", 9}, 1000,
                     [&](auto made) { refused += made.error().kind() == error_kind::not_configured ? 1 : 100; });
  CHECK(poll_until([&] { return refused != 0; }));
  CHECK(refused == 1);
  CHECK(transport->listen("localhost", 0, [](auto) {}).port != 0);
  transport->stop();
}

TEST_CASE("text forms of endpoints") {
  CHECK(to_string(endpoint{"caf", "::1", 80}) == "caf://[::1]:80");
  CHECK(parse_endpoint("tcp://[::1]:80") == endpoint{"tcp", "::1", 80});
  CHECK(parse_endpoint("sim://host-1.example:65535") == endpoint{"sim", "host-1.example", 65535});
  for (const auto* bad : {"", "caf://", "caf://h", "caf://h:", "caf://h:0", "caf://h:65536", "caf://:1", "://h:1",
                          "CAF://h:1", "caf://::1:80", "caf://[h]:1", "caf://h/x:1", "caf://h:1x", "caf:h:1"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_endpoint(bad).has_value());
  }
  for (const auto* near : {"localhost", "127.0.0.1", "127.9.8.7", "::1"})
    CHECK(is_loopback(near));
  for (const auto* far : {"", "0.0.0.0", "::", "127.example.org", "127.0.0", "128.0.0.1", "localhost.example.org"})
    CHECK_FALSE(is_loopback(far));
}
