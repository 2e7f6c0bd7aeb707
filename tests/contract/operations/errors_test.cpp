// Host states, readiness, start and faults of peers, and refusals as values (09 sections 1 and 2).
#include "tests/contract/messaging/probe_spots.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/placement/record_keys.hpp"

#include <stdexcept>
#include <type_traits>

namespace zlink::test::messaging {
namespace {

using namespace std::chrono_literals;
using testing::mesh;

class choosy final : public spot<> {
public:
  using spot::spot;
  task<spot_create_response> on_create(const message& request) override {
    if (request.as<ask>().text == "no")
      co_return reject(answer{"not today"});
    co_return accept();
  }
};

class broken_entry final : public entry_spot<> {
public:
  using entry_spot::entry_spot;
  task<void> on_initialize() override {
    throw std::runtime_error{"cannot begin"};
    co_return;
  }
};

TEST_CASE("an application's refusal is a result, not an error") {
  mesh net{2};
  net.start([](host& started, std::size_t index) {
    auto& node = started.add_mesh("m");
    node.object_server().add_spot_factory<choosy>("choosy", [](auto& factory) { factory.disable_relocation(); });
    if (index != 0)
      node.placement_weight(0);
  });
  for (std::size_t from : {0, 1}) {
    auto refused = net.run(net.host(from).spots().create("choosy").request(ask{"no"}).submit());
    CHECK(refused.state == spot_create_state::rejected);
    REQUIRE(refused.reply.has_value());
    CHECK(refused.reply->as<answer>().text == "not today");
    CHECK(net.run(net.host(from).spots().create("choosy").request(ask{"yes"}).submit()).state
          == spot_create_state::created);
  }
}

TEST_CASE("O-15 a host has seven states") {
  static_assert(std::is_same_v<std::underlying_type_t<host_state>, std::uint8_t>);
  const char* const names[] = {"preparing", "serving", "relocating", "relocated", "draining", "stopped", "error"};
  for (std::uint8_t value = 0; value < 7; ++value)
    CHECK(std::string{to_string(static_cast<host_state>(value))} == names[value]);
  CHECK(std::string{to_string(static_cast<host_state>(7))} == "unknown");
  CHECK(host_state::preparing == host_state{0});
  CHECK(host_state::error == host_state{6});
}

TEST_CASE("readiness is true while a host serves, and accepting work is another value") {
  evidence log;
  mesh net{1};
  CHECK(net.host(0).status().state == host_state::preparing);
  CHECK_FALSE(net.host(0).status().is_ready);
  start_probes(net, log);
  CHECK(net.host(0).status().state == host_state::serving);
  CHECK(net.host(0).status().is_ready);
  CHECK(net.host(0).status().accepting_work);
  net.cut_store(0);
  net.advance(20s); // the lease is over: the host serves, its objects admit nothing
  CHECK(net.host(0).status().is_ready);
  CHECK_FALSE(net.host(0).status().accepting_work);
  net.heal();
  net.advance(20s);
  CHECK(net.host(0).status().accepting_work);
  net.run(net.host(0).spots().send_to_spot("c", held_note{"holds"}).instance_spot("probe").submit());
  net.run_until([&] { return log.gate.waiting() == 1; });
  auto ending = net.host(0).shutdown();
  net.run_until([&] { return net.host(0).status().state == host_state::draining; });
  CHECK_FALSE(net.host(0).status().is_ready);
  CHECK_FALSE(net.host(0).status().accepting_work);
  CHECK(failure(net, net.host(0).spots().send_to_spot("c", note{"x"}).submit()) == error_kind::shutting_down);
  log.gate.open();
  CHECK(net.run(std::move(ending)).outcome == shutdown_outcome::stopped);
  CHECK(net.host(0).status().state == host_state::stopped);
  CHECK_FALSE(net.host(0).status().is_ready);
}

TEST_CASE("O-17 O-20 an Entry Spot that fails to begin leaves nothing to be found, and the host in Error") {
  const auto watch = [](mesh& net, int& written) { // the descriptor's key: the claim, then publications
    net.faults(0).set_rule([&written](const testing::store_call& call) {
      written += call.what == testing::store_operation::write && call.touches(placement::descriptor_key("m", ""));
      return testing::store_fault::none;
    });
  };
  evidence log;
  int healthy_writes = 0;
  mesh healthy{1};
  watch(healthy, healthy_writes);
  start_probes(healthy, log);
  CHECK(healthy_writes >= 2);
  int writes = 0;
  mesh net{1};
  watch(net, writes);
  CHECK_THROWS_AS(
    net.start([](host& started) { started.add_mesh("m").object_server().add_entry_spot<broken_entry>(); }),
    configuration_error);
  CHECK(writes == 1); // the claim, which is no descriptor to anybody (S-47)
  CHECK(net.host(0).status().state == host_state::error);
  CHECK_FALSE(net.host(0).status().is_ready);
  CHECK(net.host(0).mesh("m").entry_spot_id().empty());
  CHECK(net.host(0).status().spots == 0);
}

TEST_CASE("O-20 a peer that dies and a store that is away leave a host serving") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.kill(0);
  net.advance(1min);
  CHECK(net.host(1).status().state == host_state::serving);
  net.cut_store(1);
  net.advance(1min);
  CHECK(net.host(1).status().state == host_state::serving);
}

TEST_CASE("O-4 a mistake of registration comes out of start before anything is published") {
  mesh net{2};
  CHECK_THROWS_AS(net.start([](host& started, std::size_t index) {
    auto& node = started.add_mesh("m");
    if (index == 1)
      node.object_server().add_instance_spot_factory<instance_probe>("probe", [](auto&) {});
  }),
                  configuration_error);
  for (const auto& call : net.faults(1).log())
    CHECK(call.what != testing::store_operation::write);
}

} // namespace
} // namespace zlink::test::messaging
