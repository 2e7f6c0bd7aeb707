// Where new Spots go: identity of nodes, capacity, weight, and the reservation that decides.
#include "tests/contract/creation/scripted_spots.hpp"
#include "zlink/host/node_runtime.hpp"

#include <map>
#include <regex>

namespace creation_test {

using zlink::placement::slot_bucket;

TEST_CASE("C-4 C-5 C-53 C-6 identity of a node: prefix, two uuids of its own, fresh ones in the next life") {
  stage on;
  mesh net{2};
  net.start([&on](zlink::host& host, std::size_t index) {
    auto& node = host.add_mesh("m");
    if (index == 1)
      node.rid_prefix("Edge-1._");
    add_hall(node.object_server(), on);
  });
  const std::string uuid = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";
  const auto matches = [&](std::size_t host, const std::string& prefix) {
    const auto& node = net.host(host).mesh("m");
    CHECK(std::regex_match(node.rid(), std::regex{prefix + '-' + uuid}));
    CHECK(std::regex_match(node.entry_spot_id(), std::regex{prefix + "-entry-" + uuid}));
    CHECK(node.rid().substr(node.rid().size() - 36) != node.entry_spot_id().substr(node.entry_spot_id().size() - 36));
    CHECK(descriptor_of(net, node.rid())->entry_spot_id == node.entry_spot_id());
  };
  matches(0, "node");
  matches(1, "Edge-1\\._");
  const auto rid = net.host(1).mesh("m").rid();
  const auto entry = net.host(1).mesh("m").entry_spot_id();
  const auto lifecycle = descriptor_of(net, rid)->node.lifecycle;
  CHECK(lifecycle);
  net.kill(1);
  net.advance(60s);
  net.restart(1);
  net.run(net.host(0).mesh("m").until_peers_ready(1));
  matches(1, "Edge-1\\._");
  const auto again = net.host(1).mesh("m").rid();
  CHECK(again != rid);
  CHECK(net.host(1).mesh("m").entry_spot_id() != entry);
  CHECK(descriptor_of(net, again)->node.lifecycle != lifecycle);
  const auto known = net.host(0).mesh("m").runtime().peers_known->snapshot();
  CHECK(known->find(again) != nullptr);
  CHECK(known->find(rid) == nullptr);
  for (const auto& bad : {std::string{}, std::string(65, 'x'), std::string{"a b"}, std::string{"\xc3\xa4"}}) {
    mesh other{1};
    CHECK_THROWS_AS(other.start([&](zlink::host& host) { host.add_mesh("m").rid_prefix(bad); }), zlink::configuration_error);
  }
}

/// What a node of this seed will be called.
std::pair<std::string, std::string> names_of_seed(std::uint64_t seed) {
  stage on;
  mesh net{{.hosts = 1, .seed = seed}};
  net.start([&on](zlink::host& host) { add_hall(host.add_mesh("m").object_server(), on); });
  return {net.host(0).mesh("m").rid(), net.host(0).mesh("m").entry_spot_id()};
}

TEST_CASE("C-7 C-54 a held identity ends the start after one claim, and nothing of it is written") {
  const auto names = names_of_seed(5);
  const auto& rid = names.first;
  const auto& entry = names.second;
  for (const bool entry_held : {false, true}) {
    stage on;
    mesh net{{.hosts = 1, .seed = 5}};
    const zlink::placement::owner_token other{{7, 7}, {1'000'000}};
    put(net, zlink::placement::lease_key(other.owner), encode(zlink::placement::lease_record{other}));
    const zlink::placement::node_identity holder{"m", entry_held ? "another node" : rid, {99}};
    std::string key;
    std::string held;
    if (entry_held) {
      key = zlink::placement::spot_key(entry);
      held = encode(zlink::placement::object_record{zlink::placement::entry_claim{holder, other}});
    } else {
      key = zlink::placement::descriptor_key(holder);
      zlink::placement::descriptor_record d;
      d.node = holder;
      d.owner = other;
      d.state = zlink::placement::node_state::serving;
      d.revision = {1};
      held = encode(d);
    }
    put(net, key, held);
    int claims = 0;
    net.faults(0).set_rule([&](const store_call& call) {
      claims += call.what == store_operation::write && call.touches(zlink::placement::descriptor_key("m", rid)) ? 1 : 0;
      return store_fault::none;
    });
    auto kind = error_kind::not_found;
    try {
      net.start([&on](zlink::host& host) { add_hall(host.add_mesh("m").object_server(), on); });
    } catch (const zlink::configuration_error& what) {
      kind = what.kind();
    }
    CHECK(kind == (entry_held ? error_kind::already_exists : error_kind::invalid_configuration));
    CHECK(claims <= 1);
    CHECK(on.trace.empty());
    std::string now;
    net.store().location()->read(key, [&](auto answer) { now = answer->found ? answer->found->bytes : ""; });
    CHECK(now == held);
    if (entry_held)
      CHECK_FALSE(descriptor_of(net, rid));
    else
      CHECK_FALSE(stored<zlink::placement::object_record>(net, zlink::placement::spot_key(entry)).record);
    net.faults(0).set_rule({});
  }
}

TEST_CASE("C-48 C-46 C-47 an Entry Spot is nowhere to be seen before it is initialised, and its failure fails the start") {
  stage on;
  barrier open;
  on.during = [&](const std::string& step, const std::string& id) {
    return step == "initialize" && id.starts_with("node-entry-") ? open.passed() : zlink::task<void>::done();
  };
  mesh net{{.hosts = 2, .patience = 5s}};
  CHECK_THROWS_AS(net.start([&on](zlink::host& host, std::size_t index) {
    auto server = host.add_mesh("m").object_server();
    add_rooms(server, on);
    if (index == 1)
      add_hall(server, on);
  }),
                  zlink::testing::stalled);
  REQUIRE(open.waiting() == 1);
  REQUIRE(on.trace.size() == 3);
  const auto id = on.trace.back().substr(std::string{"initialize "}.size());
  const auto rid = net.host(1).mesh("m").rid();
  CHECK(net.host(0).status().is_ready); // it did not wait for its peer
  CHECK_FALSE(net.host(1).status().is_ready);
  CHECK(net.host(1).mesh("m").entry_spot_id().empty());
  const auto claim = descriptor_of(net, rid);
  CHECK((!claim || claim->state == zlink::placement::node_state::claimed));
  CHECK(net.host(0).mesh("m").runtime().peers_known->snapshot()->find(rid) == nullptr);
  CHECK(failure(net, ask(net.host(0), id, "x")) == error_kind::not_found);
  for (int i = 0; i < 10; ++i) // nobody selects it
    CHECK(net.run(net.host(0).spots().create("room").submit()).spot.node_rid != rid);
  open.open();
  net.run_until([&] { return net.host(1).status().is_ready; });
  net.run(net.host(0).mesh("m").until_peers_ready(1));
  CHECK(net.host(1).mesh("m").entry_spot_id() == id);
  CHECK(net.run(ask(net.host(0), id, "x")).word == "x");

  stage failing;
  failing.at = [](const std::string& step, const std::string&) {
    if (step == "initialize")
      throw std::runtime_error{"not today"};
  };
  mesh other{1};
  CHECK_THROWS_AS(other.start([&](zlink::host& host) { add_hall(host.add_mesh("m").object_server(), failing); }),
                  zlink::configuration_error);
}

TEST_CASE("C-36 C-37 C-40 C-41 C-35 limits hold in the store, under any race, and free places are found") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    stage on;
    mesh net{{.hosts = 3, .seed = seed, .max_link_delay = 5ms, .max_store_delay = 5ms}};
    INFO("seed ", net.seed());
    net.start([&on](zlink::host& host, std::size_t index) {
      if (index == 0) {
        host.add_mesh("m").object_client();
        return;
      }
      auto& node = host.add_mesh("m");
      node.spot_limit(2);
      add_rooms(node.object_server(), on);
      add_hall(node.object_server(), on); // an Entry Spot takes no place
    });
    std::vector<zlink::task<zlink::spot_create_result>> calls;
    for (int i = 0; i < 6; ++i)
      calls.push_back(open_room(net.host(0), "r" + std::to_string(i)));
    std::vector<zlink::spot_ref> made;
    for (auto& call : calls) {
      auto outcome = net.run(zlink::as_result(std::move(call)));
      if (outcome)
        made.push_back(outcome->spot);
      else
        CHECK(outcome.error().kind() == error_kind::unavailable);
    }
    CHECK(made.size() == 4);
    CHECK(on.count("factory r") == 4);
    CHECK(spots_on(net, 1) == slot_bucket{2, 0});
    CHECK(spots_on(net, 2) == slot_bucket{2, 0});
    CHECK(failure(net, open_room(net.host(0), "more")) == error_kind::unavailable);
    CHECK(net.run(net.host(0).spots().close(made.front())));
    CHECK(net.run(open_room(net.host(0), "more")).state == zlink::spot_create_state::created);
    CHECK(failure(net, net.host(0).spots().create("no such type").submit()) == error_kind::not_found);
  }
}

TEST_CASE("C-36 a limit of one type leaves room for others") {
  stage on;
  mesh net{1};
  net.start([&on](zlink::host& host) {
    auto server = host.add_mesh("m").object_server();
    add_rooms(server, on, "room", 1);
    add_rooms(server, on, "hut");
  });
  auto spots = net.host(0).spots();
  net.run(spots.create("room").submit());
  CHECK(failure(net, spots.create("room").submit()) == error_kind::unavailable);
  net.run(spots.create("hut").submit());
}

TEST_CASE("C-38 C-39 weights decide about new Spots only") {
  stage on;
  mesh net{4};
  net.start([&on](zlink::host& host, std::size_t index) {
    serve_beside_client(on)(host, index);
    if (index > 0)
      host.mesh("m").placement_weight(index == 1 ? 300 : index == 2 ? 100 : 0);
  });
  std::map<std::string, int> placed;
  for (int i = 0; i < 800; ++i)
    ++placed[net.run(net.host(0).spots().create("room").submit()).spot.node_rid];
  CHECK(placed[net.host(1).mesh("m").rid()] > 540);
  CHECK(placed[net.host(1).mesh("m").rid()] < 660);
  CHECK(placed[net.host(3).mesh("m").rid()] == 0);

  barrier open;
  on.hold("initialize", open);
  auto call = open_room(net.host(0), "a", {}, 60s);
  net.run_until([&] { return open.waiting() == 1; });
  for (std::size_t host = 1; host < 4; ++host)
    net.host(host).mesh("m").placement_weight(0);
  net.advance(5s);
  open.open();
  CHECK(net.run(std::move(call)).state == zlink::spot_create_state::created);
  CHECK(row_of(net, "a")->state == zlink::placement::allocation_state::active);
  CHECK(net.run(ask(net.host(0), "a", "served")).word == "served");
  CHECK(failure(net, open_room(net.host(0), "b")) == error_kind::unavailable);
  CHECK(failure(net, rouse(net.host(0), "c", "x")) == error_kind::unavailable);
}

TEST_CASE("C-38 a node that cannot be reached is not chosen while another can be") {
  stage on;
  mesh net{3};
  net.start(serve_beside_client(on));
  net.partition({0}, {1});
  net.run_until_idle();
  for (int i = 0; i < 16; ++i)
    CHECK(net.run(rouse(net.host(0), "a" + std::to_string(i), "x")).rid == net.host(2).mesh("m").rid());
  net.partition({0}, {2});
  net.run_until_idle();
  CHECK(failure(net, rouse(net.host(0), "b", "x")) == error_kind::unavailable);
}

TEST_CASE("C-42 at most so many are built at once, and the others wait") {
  stage on;
  mesh net{1};
  net.start([&on](zlink::host& host) {
    serve(on)(host);
    host.mesh("m").activation_concurrency(1);
  });
  std::vector<std::unique_ptr<barrier>> gates;
  on.during = [&](const std::string& step, const std::string&) {
    if (step != "initialize")
      return zlink::task<void>::done();
    gates.push_back(std::make_unique<barrier>());
    return gates.back()->passed();
  };
  std::vector<zlink::task<zlink::spot_create_result>> calls;
  for (int i = 0; i < 10; ++i)
    calls.push_back(open_room(net.host(0), "r" + std::to_string(i), {}, 60s));
  for (std::size_t i = 0; i < 10; ++i) {
    net.run_until([&] { return gates.size() == i + 1; });
    net.advance(1s);
    CHECK(on.count("factory") == static_cast<int>(i) + 1);
    gates[i]->open();
  }
  for (auto& call : calls)
    CHECK(net.run(std::move(call)).state == zlink::spot_create_state::created);
}

TEST_CASE("C-67 the caller reserves before anything is built") {
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  net.faults(0).once(store_operation::write, zlink::placement::spot_key("a"), store_fault::hold_call);
  auto call = open_room(net.host(0), "a", "x");
  net.advance(1s);
  CHECK(net.faults(0).script_done());
  CHECK(net.faults(0).held() == 1);
  CHECK(on.trace.empty());
  net.faults(0).release_all();
  CHECK(net.run(std::move(call)).state == zlink::spot_create_state::created);
}

TEST_CASE("C-68 a creation request of one MiB is stored, one byte more is refused before anything is reserved") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  barrier open;
  on.hold("create", open);
  auto small = open_room(net.host(0), "small", std::string(20'000, 'x'));
  net.run_until([&] { return open.waiting() == 1; });
  const auto overhead = row_of(net, "small")->pending->request->size - 20'000;
  const std::size_t most = 1024 * 1024 - overhead;
  auto large = open_room(net.host(0), "large", std::string(most, 'x'));
  net.run_until([&] { return open.waiting() == 2; });
  CHECK(row_of(net, "large")->pending->request->size == 1024 * 1024);
  CHECK_THROWS_AS(open_room(net.host(0), "beyond", std::string(most + 1, 'x')), std::invalid_argument);
  net.run_until_idle();
  CHECK_FALSE(row_of(net, "beyond"));
  open.open();
  net.run(std::move(small));
  net.run(std::move(large));
}

TEST_CASE("C-75 C-74 C-77 a lost answer is asked for again, the row is no answer, and everything ran once") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    for (const bool reject : {false, true}) {
      stage on;
      mesh net{{.hosts = 2, .seed = seed, .max_link_delay = 5ms}};
      INFO("seed ", net.seed());
      net.start(serve_beside_client(on));
      on.answer = [&](const std::string&) {
        const told reply{"the answer", 1, {}};
        return reject ? zlink::reject(reply) : zlink::accept(reply);
      };
      net.mute(1, 0); // questions arrive, answers do not
      auto call = open_room(net.host(0), "a", "x", 60s);
      net.advance(2s);
      CHECK(on.count("create") == 1);
      CHECK(row_of(net, "a").has_value() == !reject);
      CHECK_FALSE(call.ready());
      net.lose_links(0, 1);
      net.heal();
      const auto made = net.run(std::move(call));
      CHECK(made.state == (reject ? zlink::spot_create_state::rejected : zlink::spot_create_state::created));
      REQUIRE(made.reply);
      CHECK(made.reply->as<told>().word == "the answer");
      CHECK(on.count("create") == 1);
      CHECK(on.count("factory") == 1);
    }
}

TEST_CASE("C-3 C-71 C-64 of many who create an id at the same time, in two meshes, one does") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    stage on;
    mesh net{{.hosts = 3, .seed = seed, .max_link_delay = 10ms, .max_store_delay = 10ms}};
    INFO("seed ", net.seed());
    net.start([&on](zlink::host& host) {
      for (const char* name : {"x", "y"})
        add_rooms(host.add_mesh(name).object_server(), on);
    });
    std::vector<zlink::task<zlink::spot_create_result>> calls;
    for (std::size_t host = 0; host < 3; ++host)
      for (const char* name : {"x", "y"})
        calls.push_back(net.host(host).spots().get_or_create("a", "room").in_mesh(name).submit());
    int created = 0;
    std::vector<zlink::spot_ref> refs;
    for (auto& call : calls) {
      const auto made = net.run(std::move(call));
      created += made.state == zlink::spot_create_state::created ? 1 : 0;
      refs.push_back(made.spot);
    }
    CHECK(created == 1);
    CHECK(on.count("factory") == 1);
    for (const auto& ref : refs)
      CHECK(ref == refs.front());
  }
}

} // namespace creation_test
