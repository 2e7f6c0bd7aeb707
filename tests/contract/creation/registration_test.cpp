// What a host is told before it starts: every mistake is named at registration or by start, before anything listens or is
// written.
#include "tests/contract/creation/refused_hosts.hpp"
#include "tests/contract/creation/scripted_spots.hpp"
#include "zlink/host/host_runtime.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <algorithm>
#include <concepts>
#include <type_traits>

namespace creation_test {
namespace {

struct plain final : zlink::instance_spot {
  using instance_spot::instance_spot;
};
struct other_plain final : zlink::instance_spot {
  using instance_spot::instance_spot;
};
struct lounge final : zlink::spot<> {
  using spot::spot;
};
struct door final : zlink::entry_spot<> {
  using entry_spot::entry_spot;
};
template <class TSpot>
struct keeps final : zlink::spot_adapter<TSpot> {
  zlink::task<zlink::bytes> capture(TSpot&, std::stop_token) const override { co_return zlink::bytes{}; }
  zlink::task<void> restore(TSpot&, zlink::byte_view, std::stop_token) const override { co_return; }
};

const auto stay = [](auto& factory) { factory.disable_relocation(); };

// What must not compile is asked in templates, where it is an answer and no error.
template <class T>
concept registers_entry = requires(T& where) {
  where.template add_entry_spot<door>();
};
template <class T>
concept registers_users = requires(T& where) {
  where.template add_spot_factory<lounge>("l", stay);
};
template <class T>
concept registers_without_a_say = requires(T& where) {
  where.template add_spot_factory<lounge>("l");
}
|| requires(T& where) { where.template add_instance_spot_factory<plain>("p"); };
template <class T>
concept names_entry_spots = requires(T& where) {
  where.template add_entry_spot<door>("type");
}
|| requires(T& where) { where.template add_entry_spot<door>("type", stay); }
|| requires(T& where) { where.template add_entry_spot<door>(stay); };
template <class T>
concept has_modes = requires(T& factory) {
  factory.per_actor();
}
|| requires(T& factory) { factory.application_signaled(); };
template <class TSpot, class TContext, class TAdapter>
concept takes_adapter = requires(zlink::spot_factory_builder<TSpot, TContext>& factory, TAdapter adapter) {
  factory.preserve_state_with(adapter);
};

TEST_CASE("C-1 a host has one node in each mesh, and two meshes know nothing of each other") {
  CHECK(names(refused([](zlink::host& host) {
                host.add_mesh("m");
                host.add_mesh("m");
              }),
              "\"m\" is declared already"));
  stage on;
  mesh net{1};
  net.start([&on](zlink::host& host) {
    for (const char* name : {"x", "y"}) {
      auto& node = host.add_mesh(name);
      node.add_node_handler([name](const wake& m, const zlink::message_context&) {
        return told{m.word + " in " + name, 0, {}};
      });
    }
    add_cells(host.mesh("x").object_server(), on);
  });
  auto& host = net.host(0);
  const auto ask_node = [&](const char* mesh_name, const std::string& rid) {
    return host.nodes().request_to_node(mesh_name, rid, wake{"asked"}).timeout(2s).submit<told>();
  };
  CHECK(net.run(ask_node("x", host.mesh("x").rid())).word == "asked in x");
  CHECK(net.run(ask_node("y", host.mesh("y").rid())).word == "asked in y");
  CHECK(failure(net, ask_node("y", host.mesh("x").rid())) == error_kind::not_found); // nothing relays
  CHECK(host.mesh("x").rid() != host.mesh("y").rid());
  CHECK(net.run(rouse(host, "a", "1")).rid == host.mesh("x").rid());
}

TEST_CASE("C-2 C-34 once a host has started nothing can be declared") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  auto& host = net.host(0);
  auto& node = host.mesh("m");
  const auto before = *descriptor_of(net, node.rid());
  CHECK_THROWS_AS(host.add_mesh("n"), configuration_error);
  CHECK_THROWS_AS(node.object_server(), configuration_error);
  CHECK_THROWS_AS(node.object_client(), configuration_error);
  CHECK_THROWS_AS(node.rid_prefix("p"), configuration_error);
  CHECK_THROWS_AS(node.fixed_rid("r"), configuration_error);
  CHECK_THROWS_AS(node.bind_host("127.0.0.1"), configuration_error);
  CHECK_THROWS_AS(node.advertise_host("h"), configuration_error);
  CHECK_THROWS_AS(node.listen_port(1), configuration_error);
  CHECK_THROWS_AS(node.spot_limit(1), configuration_error);
  CHECK_THROWS_AS(node.activation_concurrency(1), configuration_error);
  CHECK_THROWS_AS(node.instance_spot_idle_timeout(1s), configuration_error);
  CHECK_THROWS_AS(node.request_timeout(1s), configuration_error);
  CHECK_THROWS_AS(node.send_timeout(1s), configuration_error);
  CHECK_THROWS_AS(node.add_node_handler([](const hint&, const zlink::message_context&) {}), configuration_error);
  CHECK_THROWS_AS(host.use_store(net.store()), configuration_error);
  CHECK_THROWS_AS(host.without_stores(), configuration_error);
  node.placement_weight(7);
  net.run_until_idle();
  auto after = *descriptor_of(net, node.rid());
  CHECK(after.placement_weight == 7);
  CHECK(after.revision > before.revision);
  after.placement_weight = before.placement_weight;
  after.revision = before.revision;
  after.updated_unix_ms = before.updated_unix_ms;
  CHECK(after == before);
}

TEST_CASE("C-19 a node without object role has no objects, no managers and nothing that is placed") {
  stage on;
  mesh net{2};
  net.start([&on](zlink::host& host, std::size_t index) {
    if (index == 0)
      host.add_mesh("m");
    else
      serve(on)(host);
  });
  auto spots = net.host(0).spots();
  CHECK(failure(net, spots.create("room").submit()) == error_kind::not_configured);
  CHECK(failure(net, spots.get_or_create("a", "room").submit()) == error_kind::not_configured);
  CHECK(failure(net, spots.find("a")) == error_kind::not_configured);
  CHECK(failure(net, spots.close({"a", 1, "m", "r"})) == error_kind::not_configured);
  CHECK(failure(net, ask(net.host(0), "a", "x")) == error_kind::not_configured);
  CHECK(failure(net, spots.send_to_spot("a", hint{"x"}).submit()) == error_kind::not_configured);
  CHECK(on.trace.empty());
  const auto rid = net.host(0).mesh("m").rid();
  CHECK(descriptor_of(net, rid)->role == zlink::placement::object_role::none);
  CHECK(descriptor_of(net, rid)->entry_spot_id.empty());
  CHECK(net.host(0).status().spots == 0);
  for (int i = 0; i < 20; ++i)
    CHECK(net.run(net.host(1).spots().create("room").submit()).spot.node_rid != rid);
}

TEST_CASE("C-20 C-32 stores that are needed and switched off") {
  for (const bool server : {false, true}) {
    caf::actor_system_config config;
    zlink::configure(config);
    caf::actor_system system{config};
    zlink::host host{system};
    host.without_stores();
    auto& node = host.add_mesh("m");
    if (server)
      node.object_server();
    else
      node.object_client();
    CHECK_THROWS_WITH_AS(host.start(), doctest::Contains("Location Store"), configuration_error);
    CHECK(node.endpoint().empty());
    CHECK_THROWS_AS(host.listener(zlink::listener_kind::mesh, "m"), zlink::operation_failed);
  }
  const auto starts = [](const std::function<void(zlink::object_server_builder)>& registered) {
    caf::actor_system_config config;
    zlink::configure(config);
    caf::actor_system system{config};
    zlink::host host{system};
    host.without_relocation_store();
    CHECK_THROWS_AS(host.use_relocation_store(zlink::embedded_store{}.relocation()), configuration_error);
    host.use_location_store(zlink::embedded_store{}.location());
    registered(host.add_mesh("m").object_server());
    try {
      host.start();
    } catch (const configuration_error& what) {
      CHECK(std::string{what.what()}.find("needs a Relocation Store") != std::string::npos);
      CHECK(host.mesh("m").endpoint().empty());
      return false;
    }
    return true;
  };
  CHECK_FALSE(starts([](auto server) { server.template add_instance_spot_factory<plain>("p", stay); }));
  CHECK_FALSE(starts([](auto server) {
    server.template add_spot_factory<lounge>("l", [](auto& factory) { factory.recreate_on_relocation(); });
  }));
  CHECK_FALSE(starts([](auto server) {
    server.template add_spot_factory<lounge>("l", [](auto& factory) { factory.preserve_state_with(keeps<lounge>{}); });
  }));
  CHECK(
    starts([](auto server) { server.template add_spot_factory<lounge>("l", stay).template add_entry_spot<door>(); }));

  zlink::embedded_store first;
  zlink::embedded_store second;
  mesh net{1}; // brings its own stores
  CHECK_THROWS_AS(net.host(0).use_store(first), configuration_error);
  CHECK_THROWS_AS(net.host(0).use_location_store(second.location()), configuration_error);
  CHECK_THROWS_AS(net.host(0).use_relocation_store(second.relocation()), configuration_error);
  CHECK_THROWS_AS(net.host(0).without_stores(), configuration_error);
  CHECK_THROWS_AS(net.host(0).without_relocation_store(), configuration_error);
}

TEST_CASE("C-20 without a word about stores there is an embedded one") {
  caf::actor_system_config config;
  zlink::configure(config);
  caf::actor_system system{config};
  zlink::host host{system};
  host.add_mesh("m").object_server().add_instance_spot_factory<plain>("p", stay);
  host.start();
  CHECK(host.status().is_ready);
}

TEST_CASE("C-21 factories and Entry Spots belong to object servers") {
  CHECK(names(refused([](zlink::host& host) {
                host.add_mesh("m").object_client();
                host.mesh("m").object_server().add_entry_spot<door>();
              }),
              "object_client() was chosen before"));
  CHECK(names(refused([](zlink::host& host) {
                host.add_mesh("m").object_client();
                host.mesh("m").object_server().add_spot_factory<lounge>("l", stay);
              }),
              "object_client() was chosen before"));
  CHECK(names(refused([](zlink::host& host) {
                host.add_mesh("m").object_server().add_instance_spot_factory<plain>("p", stay);
                host.mesh("m").object_client();
              }),
              "object_server() was chosen before"));
  // A node without role has no builder to register with.
  static_assert(!registers_entry<zlink::mesh_node> && registers_entry<zlink::object_server_builder>);
  static_assert(!registers_users<zlink::mesh_node> && registers_users<zlink::object_server_builder>);
}

TEST_CASE("C-22 an object client takes no node-direct messages") {
  CHECK(names(refused([](zlink::host& host) {
                host.add_mesh("m").object_client().add_node_handler([](const hint&, const zlink::message_context&) {});
              }),
              "takes no node-direct handler"));
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  const auto client = net.host(0).mesh("m").rid();
  for (std::size_t host = 0; host < 2; ++host)
    CHECK(failure(net, net.host(host).nodes().request_to_node("m", client, wake{"x"}).timeout(2s).submit<told>())
          == error_kind::not_found);
}

TEST_CASE("C-24 L-20 exactly one relocation policy, always said") {
  const auto with = [](auto configure) {
    return refused([configure](zlink::host& host) {
      host.add_mesh("m").object_server().add_instance_spot_factory<plain>("cart", configure);
    });
  };
  const auto none = with([](auto&) {});
  CHECK(names(none, "spot type \"cart\": exactly one relocation policy is required, got none"));
  CHECK(names(none, "disable_relocation()"));
  CHECK(names(with([](auto& factory) { factory.disable_relocation().recreate_on_relocation(); }), "got more than one"));
  CHECK(names(with([](auto& factory) { factory.disable_relocation().disable_relocation(); }), "got more than one"));
  CHECK(names(with([](auto& factory) { factory.recreate_on_relocation().preserve_state_with(keeps<plain>{}); }),
              "got more than one"));
  CHECK(with(stay).empty());
  CHECK(with([](auto& factory) { factory.recreate_on_relocation(); }).empty());
  CHECK(with([](auto& factory) { factory.preserve_state_with(keeps<plain>{}); }).empty());
  CHECK(names(refused([](zlink::host& host) {
                host.add_mesh("m").object_server().add_spot_factory<lounge>("hall", [](auto&) {});
              }),
              "spot type \"hall\": exactly one relocation policy"));
  // There is no registration without a say.
  static_assert(!registers_without_a_say<zlink::object_server_builder>);
}

TEST_CASE("C-25 C-51 stable types and ids are 1 to 255 bytes of UTF-8, compared byte by byte") {
  const std::string longest(255, 'x');
  const std::string with_zero{"a\0b", 3};
  for (const auto& bad : {std::string{}, std::string(256, 'x'), std::string{"\xff"}, std::string{"\xc0\xaf"},
                          std::string{"\xed\xa0\x80"}}) {
    CAPTURE(bad.size());
    CHECK(names(refused([&](zlink::host& host) {
                  host.add_mesh("m").object_server().add_instance_spot_factory<plain>(bad, stay);
                }),
                "1 to 255 bytes of UTF-8"));
    CHECK(
      names(refused([&](zlink::host& host) { host.add_mesh("m").object_server().add_spot_factory<lounge>(bad, stay); }),
            "1 to 255 bytes of UTF-8"));
  }
  stage on;
  mesh net{1};
  net.start([&](zlink::host& host) {
    auto server = host.add_mesh("m").object_server();
    for (const auto& type : {std::string{"Room"}, std::string{"room"}, std::string{" room"}, std::string{"\xc3\xa9"},
                             std::string{"e\xcc\x81"}, longest})
      add_rooms(server, on, type);
    add_cells(server, on);
  });
  auto spots = net.host(0).spots();
  net.run(spots.get_or_create("a", "Room").submit());
  CHECK(failure(net, spots.get_or_create("a", "room").submit()) == error_kind::type_mismatch);
  CHECK(failure(net, spots.create("ROOM").submit()) == error_kind::not_found);
  CHECK(failure(net, spots.create("room ").submit()) == error_kind::not_found);
  net.run(spots.get_or_create("b", "\xc3\xa9").submit());
  CHECK(failure(net, spots.get_or_create("b", "e\xcc\x81").submit()) == error_kind::type_mismatch); // no normalisation
  net.run(spots.create(longest).submit());

  for (const auto& id : {std::string{"A"}, std::string{" a"}, longest, with_zero, std::string{"\0", 1},
                         std::string{"\xf0\x9f\x9b\x92"}}) {
    net.run(spots.get_or_create(id, "room").submit());
    CHECK(net.run(ask(net.host(0), id, "x")).word == "x");
    CHECK(net.run(spots.find(id))->spot_id == id);
    CHECK(failure(net, rouse(net.host(0), id, "x")) == error_kind::type_mismatch); // all kinds share one space of ids
  }
  CHECK_FALSE(net.run(spots.find(std::string{"a\0c", 3})));
  const auto calls = net.faults(0).log().size();
  for (const auto& bad : {std::string{}, std::string(256, 'x'), std::string{"\xff"}}) {
    CHECK_THROWS_AS(spots.get_or_create(bad, "room"), std::invalid_argument);
    CHECK_THROWS_AS(spots.create(bad), std::invalid_argument);
    CHECK_THROWS_AS(spots.find(bad), std::invalid_argument);
    CHECK_THROWS_AS(spots.close({bad, 1, "m", "r"}), std::invalid_argument);
    CHECK_THROWS_AS(spots.send_to_spot(bad, hint{"x"}), std::invalid_argument);
    CHECK_THROWS_AS(spots.request_to_spot(bad, wake{"x"}), std::invalid_argument);
    CHECK_THROWS_AS(spots.send_to_spot("a", hint{"x"}).instance_spot(bad), std::invalid_argument);
  }
  CHECK(net.faults(0).log().size() == calls);
}

TEST_CASE("C-26 the configure callback runs once, at once, and its builder is dead afterwards") {
  using builder = zlink::spot_factory_builder<plain, zlink::instance_spot_context>;
  static_assert(!std::is_copy_constructible_v<builder>);
  int runs = 0;
  CHECK(refused([&](zlink::host& host) {
          auto server = host.add_mesh("m").object_server();
          builder* kept = nullptr;
          server.add_instance_spot_factory<plain>("p", [&](builder& factory) {
            ++runs;
            factory.disable_relocation();
            kept = &factory;
          });
          CHECK(runs == 1);
          CHECK_THROWS_AS(kept->limit(3), configuration_error);
          CHECK_THROWS_AS(kept->recreate_on_relocation(), configuration_error);
          CHECK_THROWS_AS(server.add_instance_spot_factory<other_plain>(
                            "q", [](auto&) { throw std::runtime_error{"of the application"}; }),
                          std::runtime_error);
          server.add_instance_spot_factory<other_plain>("q", stay); // so the first one was not registered
        }).empty());
  CHECK(runs == 1);
}

TEST_CASE("C-27 one type or class stands for one thing on a node") {
  CHECK(names(refused([](zlink::host& host) {
                host.add_mesh("m")
                  .object_server()
                  .add_instance_spot_factory<plain>("p", stay)
                  .add_instance_spot_factory<other_plain>("p", stay);
              }),
              "\"p\" is registered already"));
  CHECK(names(refused([](zlink::host& host) {
                host.add_mesh("m").object_server().add_spot_factory<lounge>("p", stay).add_spot_factory<lounge>("p",
                                                                                                                stay);
              }),
              "\"p\" is registered already"));
  CHECK(names(refused([](zlink::host& host) {
                host.add_mesh("m").object_server().add_spot_factory<lounge>("p", stay).add_instance_spot_factory<plain>(
                  "p", stay);
              }),
              "cannot be User and Instance Spot"));
  CHECK(refused([](zlink::host& host) { // the same on another node is another matter
          for (const char* name : {"m", "n"})
            host.add_mesh(name).object_server().add_instance_spot_factory<plain>("p", stay);
        })
          .empty());
}

TEST_CASE("C-28 L-24 an adapter is one of this very class") {
  static_assert(takes_adapter<plain, zlink::instance_spot_context, keeps<plain>>);
  static_assert(takes_adapter<lounge, zlink::spot_context, keeps<lounge>>);
  static_assert(!takes_adapter<plain, zlink::instance_spot_context, keeps<other_plain>>);
  static_assert(!takes_adapter<plain, zlink::instance_spot_context, keeps<lounge>>);
  static_assert(!takes_adapter<lounge, zlink::spot_context, keeps<plain>>);
  static_assert(!takes_adapter<lounge, zlink::spot_context, int>);
  stage on;
  mesh net{1};
  net.start([](zlink::host& host) {
    host.add_mesh("m").object_server().add_instance_spot_factory<plain>(
      "p", [](auto& factory) { factory.preserve_state_with(keeps<plain>{}); });
  });
  const auto published = descriptor_of(net, net.host(0).mesh("m").rid())->capabilities;
  REQUIRE(published.size() == 1);
  CHECK(published.front().policy == zlink::placement::relocation_policy::preserve_state);
  CHECK(published.front().has_adapter);
}

TEST_CASE("C-29 L-25 execution mode and readiness go together as they may") {
  enum policy { stays, recreated, preserved };
  for (const auto chosen : {stays, recreated, preserved})
    for (const bool per_actor : {false, true})
      for (const bool signaled : {false, true}) {
        CAPTURE(chosen);
        CAPTURE(per_actor);
        CAPTURE(signaled);
        const auto mistakes = refused([&](zlink::host& host) {
          host.add_mesh("m").object_server().add_spot_factory<lounge>("l", [&](auto& factory) {
            if (chosen == stays)
              factory.disable_relocation();
            else if (chosen == recreated)
              factory.recreate_on_relocation();
            else
              factory.preserve_state_with(keeps<lounge>{});
            if (per_actor)
              factory.per_actor();
            if (signaled)
              factory.application_signaled();
          });
        });
        CHECK(names(mistakes, "per_actor() goes with recreate_on_relocation() only")
              == (per_actor && chosen != recreated));
        CHECK(names(mistakes, "application_signaled() needs a SpotWide spot") == (per_actor && signaled));
        CHECK(mistakes.empty() == (!per_actor || (chosen == recreated && !signaled)));
      }
  using instance_builder = zlink::spot_factory_builder<plain, zlink::instance_spot_context>;
  static_assert(!has_modes<instance_builder>);
  static_assert(has_modes<zlink::spot_factory_builder<lounge, zlink::spot_context>>);
}

TEST_CASE("C-30 an Entry Spot is registered by its class, once") {
  CHECK(names(refused([](zlink::host& host) {
                host.add_mesh("m").object_server().add_entry_spot<door>().add_entry_spot<door>();
              }),
              "there is an Entry Spot already"));
  static_assert(!names_entry_spots<zlink::object_server_builder>);
  mesh net{1};
  int made = 0;
  net.start([&](zlink::host& host) {
    host.add_mesh("m").object_server().add_entry_spot<door>([&made](zlink::entry_spot_context context) {
      ++made;
      return std::make_unique<door>(std::move(context));
    });
  });
  CHECK(made == 1);
}

TEST_CASE("C-34 O-29 O-23 all mistakes are told together, each with its place, and nothing has begun") {
  const auto mistakes = refused(
    [](zlink::host& host) {
      auto& m = host.add_mesh("m");
      m.rid_prefix("no spaces").activation_concurrency(0).instance_spot_idle_timeout(-1ms);
      m.spot_limit(0x8000'0000U);
      m.object_server()
        .add_instance_spot_factory<plain>("p", [](auto&) {})
        .add_spot_factory<lounge>("l",
                                  [](auto& factory) { factory.disable_relocation().per_actor().limit(0xffff'ffffU); });
    },
    [](zlink::host_options& options) {
      options.shutdown_deadline = 0ms;
      options.discovery_polling_interval = 0ms;
      options.owner_time_slice = 0ms;
      options.max_operations = 0;
      options.max_jobs = 0x8000'0000U;
      options.lease_renew_interval = 7s;
      options.store_failure_grace = -1ms;
      options.route_cache_max_age = 26s;
    });
  for (const char* said :
       {"rid_prefix \"no spaces\"", "activation_concurrency must be at least 1", "instance_spot_idle_timeout",
        "spot_limit 2147483648", "spot type \"p\"", "per_actor() goes", "limit(4294967295)",
        "shutdown_deadline must be positive", "discovery_polling_interval", "owner_time_slice", "max_operations",
        "max_jobs", "owner lease: ", "store_failure_grace", "route_cache_max_age"}) {
    CAPTURE(said);
    CHECK(names(mistakes, said));
  }
  CHECK(mistakes.size() == 15);
  for (const auto& bad : {std::string{}, std::string(256, 'x'), std::string{"\xff"}})
    CHECK(names(refused([&](zlink::host& host) { host.add_mesh(bad); }), "mesh name"));
  CHECK(
    names(refused([](zlink::host& host) { host.mesh("unknown"); }), "no mesh \"unknown\" is declared; there is none"));
  CHECK(names(refused([](zlink::host& host) { host.add_mesh("m").placement_weight(10'001); }), "is not in 0..10000"));
}

TEST_CASE("C-34 a host that was refused can be put right and started") {
  mesh net{1};
  auto& host = net.host(0);
  host.add_mesh("m").object_server();
  auto server = host.mesh("m").object_server();
  CHECK_THROWS_AS(server.add_instance_spot_factory<plain>("", stay), configuration_error);
  host.mesh("m").activation_concurrency(0);
  CHECK_THROWS_AS(net.start([](zlink::host&) {}), configuration_error);
  CHECK(host.status().state == zlink::host_state::preparing);
  host.mesh("m").activation_concurrency(1);
  net.run(host.runtime().start());
  CHECK(host.status().is_ready);
  net.run(host.shutdown());
}

} // namespace
} // namespace creation_test
