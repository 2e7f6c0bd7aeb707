// Where nodes listen, what they tell peers about it, and who may choose his own name.
#include "tests/contract/creation/refused_hosts.hpp"
#include "tests/contract/creation/scripted_spots.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

namespace creation_test {
namespace {

TEST_CASE("C-12 C-13 C-14 addresses: what is bound, what is told, and no wildcard on its way") {
  for (const char* wildcard : {"0.0.0.0", "::"}) {
    CHECK(
      names(refused([&](zlink::host& host) { host.add_mesh("m").bind_host(wildcard); }), "needs an advertise_host"));
    CHECK(names(refused([&](zlink::host& host) { host.add_mesh("m").bind_host(wildcard).advertise_host(wildcard); }),
                "is no address that peers can reach"));
    CHECK(names(refused([](zlink::host& host) { host.add_mesh("m"); },
                        [&](zlink::host_options& options) { options.bind_host = wildcard; }),
                "needs an advertise_host"));
  }
  mesh net{
    {.hosts = 1, .adjust = [](std::size_t, zlink::host_options& options) { options.advertise_host = "outside"; }}};
  net.start([](zlink::host& host) {
    host.add_mesh("m");
    host.add_mesh("n").advertise_host("elsewhere");
  });
  const auto told_by = [&](const char* name) {
    return stored<zlink::placement::descriptor_record>(
             net, zlink::placement::descriptor_key(name, net.host(0).mesh(name).rid()))
      .record->endpoint;
  };
  CHECK(told_by("m").find("//outside:") != std::string::npos);
  CHECK(told_by("n").find("//elsewhere:") != std::string::npos);
  for (const char* name : {"m", "n"}) {
    const auto listening = net.host(0).listener(zlink::listener_kind::mesh, name);
    CHECK(listening.endpoint == told_by(name));
    CHECK_FALSE(listening.endpoint.ends_with(":0"));
  }
}

TEST_CASE("C-17 what listens can be asked, by kind and name, once it is bound") {
  mesh net{1};
  auto& host = net.host(0);
  const auto why_not = [&](zlink::listener_kind kind, const char* name) {
    try {
      host.listener(kind, name);
    } catch (const zlink::operation_failed& failed) {
      return std::optional{failed.kind()};
    }
    return std::optional<error_kind>{};
  };
  CHECK(why_not(zlink::listener_kind::mesh, "m") == error_kind::not_configured);
  host.add_mesh("m");
  CHECK(why_not(zlink::listener_kind::mesh, "m") == error_kind::not_configured);
  net.start([](zlink::host&) {});
  const auto found = host.listener(zlink::listener_kind::mesh, "m");
  CHECK(found.kind == zlink::listener_kind::mesh);
  CHECK(found.name == "m");
  CHECK(found.endpoint == host.mesh("m").endpoint());
  CHECK(found.endpoint == descriptor_of(net, host.mesh("m").rid())->endpoint);
  net.advance(5s);
  CHECK(host.listener(zlink::listener_kind::mesh, "m").observed - found.observed == 5s);
  CHECK(why_not(zlink::listener_kind::mesh, "n") == error_kind::not_configured);
  CHECK(why_not(zlink::listener_kind::stream, "m") == error_kind::not_configured);
  CHECK(std::string{to_string(zlink::listener_kind::mesh)} == "mesh");
  CHECK(std::string{to_string(zlink::listener_kind::stream)} == "stream");
}

TEST_CASE("C-9 a routing id of one's own is for nodes without objects whose peers are named by hand") {
  for (const bool client : {false, true})
    CHECK(names(refused([&](zlink::host& host) {
                  auto& node = host.add_mesh("m").fixed_rid("mine");
                  if (client)
                    node.object_client();
                  else
                    node.object_server();
                }),
                "fixed_rid needs a node without object role"));
  CHECK(names(refused([](zlink::host& host) { host.add_mesh("m").fixed_rid("mine"); }), "without_stores()"));
  CHECK(names(refused([](zlink::host& host) { host.add_mesh("m").fixed_rid("mine").rid_prefix("p"); }),
              "exclude each other"));
  CHECK(
    names(refused([](zlink::host& host) { host.add_mesh("m").fixed_rid(std::string(256, 'x')); }), "1 to 255 bytes"));
  caf::actor_system_config config;
  zlink::configure(config);
  caf::actor_system system{config};
  zlink::host_options options;
  zlink::host host{system, std::move(options)};
  host.without_stores();
  CHECK_THROWS_AS(host.add_mesh("m").peer("nonsense"), configuration_error);
  CHECK_THROWS_AS(host.mesh("m").peer("caf://127.0.0.1:0"), configuration_error);
}

} // namespace
} // namespace creation_test
