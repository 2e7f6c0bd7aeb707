// The stores decide who owns what: neither caches nor links nor crashes do.
#include "tests/contract/creation/scripted_spots.hpp"
#include "tests/sim/checkers.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/mesh_links.hpp"

#include <map>
#include <random>
#include <set>

namespace stores_test {

using namespace creation_test;

/// Hosts that would begin a turn of the Spot now.
std::size_t admitting(mesh& net, const std::set<std::size_t>& dead, const std::string& id) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < net.size(); ++i) {
    if (dead.contains(i))
      continue;
    auto& host = net.host(i).runtime();
    const auto spot = host.objects.find(id);
    n += spot && spot->open() && !spot->fenced() && host.domain.admits(host.time->now());
  }
  return n;
}

TEST_CASE("S-1 a wrong route in the cache runs nothing at a host that is no owner, and heals") {
  stage on;
  mesh net{3};
  net.start(serve(on));
  const auto first = net.run(rouse(net.host(0), "a", "1"));
  const auto owner = net.owner_of("a");
  const auto caller = (owner + 1) % 3;
  const auto wrong = (owner + 2) % 3;
  auto& routes = net.host(caller).runtime().messages.routes.cache;
  const auto now = net.host(caller).runtime().time->now();
  zlink::detail::object_route lie{"m", net.host(wrong).mesh("m").rid(), {first.generation}, {1}, now + 1h};
  routes.put("a", lie, now);
  CHECK(failure(net, ask(net.host(caller), "a", "2")) == error_kind::unavailable);
  CHECK(on.count("handle") == 1);
  CHECK(on.count("factory") == 1);
  routes.put("nobody", lie, now);
  CHECK(failure(net, ask(net.host(caller), "nobody", "2")).has_value());
  CHECK(failure(net, rouse(net.host(caller), "nobody", "2", 1s)) != error_kind::type_mismatch);
  const auto again = net.run(ask(net.host(caller), "a", "3"));
  CHECK(again.generation == first.generation);
  CHECK(again.rid == first.rid);
}

TEST_CASE("S-2 S-6 whatever crashes, freezes or is cut off, one host at most admits work for an id, and none takes over") {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    CAPTURE(seed);
    stage on;
    zlink::test::single_owner owners;
    mesh net{{.hosts = 4, .seed = seed}};
    net.start(serve(on));
    on.handler = [&](const zlink::common_spot_context& context, const std::string&) {
      const auto incarnation = std::to_string(context.object_generation());
      owners.ran(context.spot_id(), incarnation + '@' + std::string{context.node_rid()});
      return zlink::task<void>::done();
    };
    std::mt19937_64 random{seed};
    const auto below = [&](std::uint64_t n) { return random() % n; };
    std::set<std::size_t> dead;
    std::set<std::size_t> frozen;
    std::vector<zlink::task<told>> calls; // those of dead hosts never end
    std::map<std::string, std::uint64_t> newest;
    const std::vector<std::string> ids{"a", "b", "c"};
    for (int step = 0; step < 60; ++step) {
      const auto host = below(4);
      switch (below(9)) {
        case 0:
          if (dead.size() < 2 && !dead.contains(host) && !frozen.contains(host)) {
            net.kill(host);
            dead.insert(host);
          }
          break;
        case 1:
          if (!dead.contains(host) && frozen.insert(host).second)
            net.freeze(host);
          break;
        case 2:
          if (frozen.erase(host) != 0)
            net.thaw(host);
          break;
        case 3:
          if (!dead.contains(host))
            net.cut_store(host);
          break;
        case 4: net.heal(); break;
        default:
          if (!dead.contains(host) && !frozen.contains(host))
            calls.push_back(rouse(net.host(host), ids[below(3)], "x", 3s));
          break;
      }
      for (int part = 0; part < 4; ++part) {
        net.advance(std::chrono::milliseconds{below(3'000)});
        for (const auto& id : ids) {
          CHECK(admitting(net, dead, id) <= 1);
          // One row at most; whoever it named stays its owner while it stands.
          if (const auto row = row_of(net, id)) {
            CHECK(row->generation.value >= newest[id]);
            newest[id] = row->generation.value;
          }
        }
      }
    }
    net.heal();
    for (const auto host : frozen)
      net.thaw(host);
    net.advance(60s);
    CHECK(owners.broken().empty());
    for (const auto& id : ids)
      CHECK(admitting(net, dead, id) <= 1);
    CHECK(owners.fed() > 0);
  }
}

TEST_CASE("S-6 a Spot whose owner dies is built, queued or run by nobody else, at whatever stage it was") {
  for (const std::string stage_of_death : {"factory", "initialize", "handle", "queued"}) {
    CAPTURE(stage_of_death);
    stage on;
    mesh net{3};
    net.start(serve_beside_client(on));
    barrier end;
    std::size_t owner = 0;
    if (stage_of_death != "factory")
      on.hold(stage_of_death == "queued" ? "handle" : stage_of_death, end);
    auto first = rouse(net.host(0), "a", "1", 30s);
    net.run_until([&] { return on.count(stage_of_death == "queued" ? "handle" : stage_of_death) == 1; });
    auto second = rouse(net.host(0), "a", "2", 30s);
    if (stage_of_death == "queued")
      net.run_until_idle();
    REQUIRE(row_of(net, "a"));
    owner = net.host(1).mesh("m").rid() == row_of(net, "a")->node.node_rid ? 1 : 2;
    const auto first_handled = on.count("handle a 1");
    const auto generation = row_of(net, "a")->generation;
    net.kill(owner);
    net.advance(2min); // far beyond lease and background passes
    CHECK(on.count("handle a 1") == first_handled); // what the dead node had accepted is nobody else's
    const bool was_ready = stage_of_death == "handle" || stage_of_death == "queued";
    if (was_ready) {
      CHECK(on.count("factory") == 1);
      REQUIRE(row_of(net, "a"));
      CHECK(row_of(net, "a")->generation == generation);
      CHECK(row_of(net, "a")->node.node_rid == net.host(owner).mesh("m").rid());
    } else if (const auto row = row_of(net, "a")) { // a dead reservation is released; a later message begins anew (C-79)
      CHECK(row->generation > generation);
    }
    end.open();
    net.run_until_idle();
    CHECK(on.count("handle a 1") == first_handled);
    CHECK(on.count("handle a 2") <= 1);
  }
}

TEST_CASE("S-3 the Relocation Store sees the first message of an Instance Spot and nothing else") {
  stage on;
  mesh net{2};
  net.start([&on](zlink::host& host) {
    auto server = host.add_mesh("m").object_server();
    add_cells(server, on);
    add_rooms(server, on);
    add_hall(server, on);
  });
  const auto blobs = [&](store_operation what) { return net.faults(0).count(what) + net.faults(1).count(what); };
  const auto made = net.run(open_room(net.host(0), "r", "hello"));
  net.run(ask(net.host(1), "r", "1"));
  net.run(net.host(0).spots().find("r"));
  net.run(net.host(1).spots().close(made.spot));
  CHECK(blobs(store_operation::put) == 0);
  CHECK(blobs(store_operation::read_blob) == 0);
  net.run(rouse(net.host(0), "a", "1"));
  net.run(rouse(net.host(1), "a", "2"));
  net.run(ask(net.host(0), "a", "3"));
  net.run_until_idle();
  CHECK(blobs(store_operation::put) == 1);
  CHECK(blobs(store_operation::erase) == 1); // once its handler had ended
}

TEST_CASE("S-66 losing links changes no row, no lease and no owner; a healthy link renews nothing") {
  stage on;
  mesh net{3};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a", "1"));
  net.run_until_idle();
  const auto owner = net.owner_of("a");
  const auto stranger = (owner + 1) % 3;
  const auto row = row_of(net, "a");
  net.partition({owner}, {stranger, (owner + 2) % 3});
  net.advance(2min);
  CHECK(row_of(net, "a") == row);
  CHECK(failure(net, ask(net.host(stranger), "a", "2")) == error_kind::unavailable);
  CHECK(failure(net, rouse(net.host(stranger), "a", "2")) == error_kind::unavailable);
  CHECK(on.count("factory") == 1);
  CHECK(net.run(ask(net.host(owner), "a", "3")).generation == row->generation.value);
  net.heal();
  net.advance(30s);
  CHECK(net.run(ask(net.host(stranger), "a", "4")).generation == row->generation.value);
  // The other way round: its links are fine, its lease ends.
  net.cut_store(owner);
  const auto rid = net.host(owner).mesh("m").rid();
  net.run_until([&] { return !net.host(owner).status().accepting_work; });
  CHECK(net.host(stranger).runtime().find_node("m")->links->ready_link(rid) != nullptr);
  CHECK(failure(net, ask(net.host(stranger), "a", "5")) == error_kind::unavailable);
  net.advance(1min);
  CHECK(failure(net, ask(net.host(stranger), "a", "5")) == error_kind::unavailable);
  CHECK(row_of(net, "a") == row);
}

TEST_CASE("S-54 S-36 a target that dies between its selection and Reserve is refused by Reserve") {
  stage on;
  mesh net{3};
  net.start(serve_beside_client(on));
  const auto key = zlink::placement::spot_key("r");
  std::vector<std::string> chosen;
  net.faults(0).set_rule([&](const store_call& call) {
    if (call.what != store_operation::write || !call.touches(key) || !chosen.empty())
      return store_fault::none;
    for (const auto& mutation : call.batch->mutations)
      if (mutation.key == key && mutation.put)
        chosen.push_back(std::get<zlink::placement::row_record>(
                           zlink::placement::decode<zlink::placement::row_record>(*mutation.put)).node.node_rid);
    return store_fault::hold_call;
  });
  auto call = open_room(net.host(0), "r", {}, 1min);
  net.run_until([&] { return net.faults(0).held() == 1; });
  REQUIRE(chosen.size() == 1);
  const std::size_t target = net.host(1).mesh("m").rid() == chosen.front() ? 1 : 2;
  net.kill(target);
  net.advance(25s); // its lease is over
  net.faults(0).set_rule({});
  net.faults(0).release_all();
  const auto made = net.run(std::move(call)); // the other one
  CHECK(made.spot.node_rid == net.host(3 - target).mesh("m").rid());
  CHECK(on.count("factory") == 1);
}

} // namespace stores_test
