// Instance Spots: the first message wakes them, once, and is kept until it was handled.
#include "tests/contract/creation/scripted_spots.hpp"

#include <set>

namespace creation_test {

using trace = std::vector<std::string>;

TEST_CASE("C-81 C-96 an Instance Spot is built in order, and the first message comes before those sent meanwhile") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  barrier open;
  on.hold("initialize", open);
  auto first = rouse(net.host(0), "a", "1");
  net.run_until([&] { return open.waiting() == 1; });
  std::vector<zlink::task<told>> rest;
  for (const char* word : {"2", "3", "4"})
    rest.push_back(rouse(net.host(0), "a", word));
  net.advance(100ms);
  CHECK(on.trace == trace{"factory a", "configure a", "initialize a"});
  CHECK(row_of(net, "a")->state == zlink::placement::allocation_state::reserved);
  REQUIRE(row_of(net, "a")->root);
  open.open();
  net.run(std::move(first));
  for (auto& one : rest)
    net.run(std::move(one));
  CHECK(on.trace == trace{"factory a", "configure a", "initialize a", "handle a 1", "handle a 2", "handle a 3", "handle a 4"});
}

TEST_CASE("C-92 C-94 S-4 S-5 S-126 the target, not the source, stores: envelope, its reading back, then the row") {
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  const auto row = zlink::placement::spot_key("a");
  std::vector<std::string> seen;
  row_spy source;
  source.watch(net, 0, "a");
  net.faults(1).set_rule([&](const store_call& call) {
    if (call.what == store_operation::put || call.what == store_operation::read_blob || call.what == store_operation::erase)
      seen.push_back(call.what == store_operation::put ? "put" : call.what == store_operation::erase ? "erase" : "verify");
    else if (call.what == store_operation::write && call.touches(row))
      seen.push_back(!row_of(net, "a") ? "reserve" : row_of(net, "a")->pending ? "commit" : row_of(net, "a")->root->cursor == 0 ? "record" : "retire");
    return store_fault::none;
  });
  const auto puts = net.faults(0).count(store_operation::put);
  net.run(rouse(net.host(0), "a", "1"));
  net.run_until_idle();
  CHECK(seen == trace{"put", "verify", "reserve", "commit", "record", "retire", "erase"});
  CHECK(source.writes == 0);
  CHECK(net.faults(0).count(store_operation::put) == puts);
  seen.clear();
  net.run(open_room(net.host(0), "u"));
  net.run(ask(net.host(0), "u", "x"));
  CHECK(seen.empty()); // a User Spot without moves needs no payload
}

TEST_CASE("C-97 the row points at the first message until its handler has ended") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  barrier end;
  on.hold("handle", end);
  auto call = rouse(net.host(0), "a", "1");
  net.run_until([&] { return end.waiting() == 1; });
  net.advance(1s);
  CHECK(row_of(net, "a")->state == zlink::placement::allocation_state::active);
  REQUIRE(row_of(net, "a")->root);
  const auto reference = row_of(net, "a")->root->reference;
  const auto present = [&] {
    bool is = false;
    net.store().relocation()->read_blob(reference, [&](auto answer) { is = answer->has_value(); });
    return is;
  };
  CHECK(present());
  end.open();
  net.run(std::move(call));
  net.run_until_idle();
  CHECK_FALSE(row_of(net, "a")->root);
  CHECK_FALSE(present());
}

TEST_CASE("C-90 where the id is decides what happens to a message") {
  stage on;
  mesh net{3};
  net.start(serve(on));
  CHECK(failure(net, ask(net.host(0), "a", "x")) == error_kind::not_found); // missing
  CHECK_FALSE(row_of(net, "a"));
  barrier open;
  on.hold("initialize", open);
  auto first = rouse(net.host(0), "a", "1");
  net.run_until([&] { return open.waiting() == 1; });
  CHECK(failure(net, ask(net.host(1), "a", "x")) == error_kind::not_found); // creating
  auto second = rouse(net.host(1), "a", "2");
  net.advance(100ms);
  open.open();
  net.run(std::move(first));
  CHECK(net.run(std::move(second)).word == "2");
  for (std::size_t host = 0; host < 3; ++host) // ready
    net.run(rouse(net.host(host), "a", "3"));
  net.run(net.host(0).spots().request_to_spot("a", wake{"4"}).instance_spot().submit<told>()); // no type: the stored one
  CHECK(on.count("factory") == 1);
  const auto owner = net.owner_of("a");
  net.kill(owner); // ready, and nobody there
  const auto caller = (owner + 1) % 3;
  CHECK(failure(net, rouse(net.host(caller), "a", "5")) == error_kind::unavailable);
  net.advance(60s);
  CHECK(failure(net, rouse(net.host(caller), "a", "5")) == error_kind::unavailable);
  CHECK(failure(net, ask(net.host(caller), "a", "5")) == error_kind::unavailable);
  CHECK(on.count("factory") == 1);
}

TEST_CASE("C-91 the type is inferred where there is one, whoever offers it") {
  const auto outcome = [](std::vector<std::vector<std::string>> types, std::string named) {
    stage on;
    mesh net{types.size()};
    net.start([&](zlink::host& host, std::size_t index) {
      auto server = host.add_mesh("m").object_server();
      for (const auto& type : types[index])
        add_cells(server, on, type, type == "full" ? 1 : 0);
    });
    if (named == "full")
      net.run(net.host(0).spots().request_to_spot("first", wake{"x"}).instance_spot("full").submit<told>());
    auto call = net.host(0).spots().request_to_spot("a", wake{"x"});
    if (named.empty())
      call.instance_spot();
    else
      call.instance_spot(named);
    return failure(net, call.timeout(5s).submit<told>());
  };
  CHECK(outcome({{}, {"one"}}, "") == std::nullopt);
  CHECK(outcome({{"one"}, {"one"}}, "") == std::nullopt);
  CHECK(outcome({{}, {}}, "") == error_kind::not_found);
  CHECK(outcome({{"one"}, {"two"}}, "") == error_kind::invalid_operation);
  CHECK(outcome({{"one"}}, "other") == error_kind::not_found);
  CHECK(outcome({{"full"}}, "full") == error_kind::unavailable);
}

TEST_CASE("C-99 a hundred first messages at one node make one Spot, and each is handled once") {
  stage on;
  mesh net{{.hosts = 2, .seed = 3, .max_link_delay = 5ms, .max_store_delay = 3ms}};
  net.start(serve_beside_client(on));
  std::vector<zlink::task<told>> calls;
  for (int i = 0; i < 100; ++i)
    calls.push_back(rouse(net.host(static_cast<std::size_t>(i) % 2), "a", "word " + std::to_string(i) + '.'));
  for (auto& call : calls)
    net.run(std::move(call));
  CHECK(on.count("factory") == 1);
  CHECK(on.count("handle") == 100);
  CHECK(std::set<std::string>(on.trace.begin(), on.trace.end()).size() == on.trace.size());
}

TEST_CASE("C-100 C-71 of targets that race for an id one wins, and the losers' callers hear unavailable") {
  int losers = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    stage on;
    mesh net{{.hosts = 3, .seed = seed, .max_link_delay = 10ms, .max_store_delay = 10ms}};
    INFO("seed ", net.seed());
    net.start(serve(on));
    std::vector<zlink::task<told>> calls;
    for (std::size_t host = 0; host < 3; ++host)
      calls.push_back(rouse(net.host(host), "a", "from " + std::to_string(host)));
    int answered = 0;
    for (auto& call : calls) {
      const auto outcome = net.run(zlink::as_result(std::move(call)));
      if (outcome)
        ++answered;
      else
        CHECK(outcome.error().kind() == error_kind::unavailable);
    }
    CHECK(answered >= 1);
    CHECK(on.count("factory") == 1);
    CHECK(on.count("handle") == answered);
    losers += 3 - answered;
  }
  CHECK(losers > 0);
}

TEST_CASE("C-101 a send ends when it is on its way, a request when it is answered") {
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  barrier open;
  on.hold("initialize", open);
  auto send = net.host(0).spots().send_to_spot("a", hint{"1"}).instance_spot("cell");
  net.run(send.submit());
  auto request = rouse(net.host(0), "a", "2");
  net.advance(1s);
  CHECK_FALSE(request.ready());
  open.open();
  CHECK(net.run(std::move(request)).word == "2");
  CHECK(on.trace == trace{"factory a", "configure a", "initialize a", "handle a 1", "handle a 2"});
}

TEST_CASE("C-102 callers of one activation time out one by one, and it goes on for the rest") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  barrier open;
  on.hold("initialize", open);
  auto hasty = rouse(net.host(0), "a", "hasty", 1s);
  net.advance(1ms);
  auto patient = rouse(net.host(0), "a", "patient", 10s);
  net.host(0).spots().send_to_spot("a", hint{"send"}).instance_spot("cell").submit();
  CHECK(failure(net, std::move(hasty)) == error_kind::deadline_exceeded);
  open.open();
  CHECK(net.run(std::move(patient)).word == "patient");
  net.run_until_idle();
  CHECK(on.count("handle a patient") == 1);
  CHECK(on.count("handle a send") == 1);
  CHECK(on.count("factory") == 1);
}

TEST_CASE("S-159 a late answer of the store starts no factory for a call that has ended") {
  stage on;
  bool armed = false;
  mesh net{1};
  net.start(serve(on));
  for (const auto what : {store_operation::put, store_operation::read_blob, store_operation::write}) {
    armed = true;
    net.faults(0).set_rule([&armed, what](const store_call& call) {
      const bool hold = armed && call.what == what && (!call.batch || call.touches(zlink::placement::spot_key("a")));
      return hold ? store_fault::hold_reply : store_fault::none;
    });
    CHECK(failure(net, rouse(net.host(0), "a", "x", 1s)) == error_kind::deadline_exceeded);
    armed = false;
    net.faults(0).release_all();
    net.run_until_idle();
    net.advance(1s);
    CHECK(on.count("factory") == 0);
    CHECK_FALSE(row_of(net, "a"));
  }
  CHECK(net.run(rouse(net.host(0), "a", "y")).word == "y");
}

TEST_CASE("C-104 a failed activation answers everybody once, leaves the id free, and the next call begins anew") {
  for (const std::string step : {"factory", "configure", "initialize"}) {
    CAPTURE(step);
    stage on;
    mesh net{1};
    net.start(serve(on));
    on.at = [&](const std::string& now, const std::string&) {
      if (now == step)
        throw std::runtime_error{"not today"};
    };
    auto first = rouse(net.host(0), "a", "1");
    auto second = rouse(net.host(0), "a", "2");
    net.host(0).spots().send_to_spot("a", hint{"3"}).instance_spot("cell").submit();
    CHECK(failure(net, std::move(first)) == error_kind::internal_failure);
    CHECK(failure(net, std::move(second)) == error_kind::internal_failure);
    net.run_until_idle();
    CHECK(on.count("handle") == 0);
    CHECK_FALSE(row_of(net, "a"));
    CHECK(spots_on(net, 0) == zlink::placement::slot_bucket{});
    CHECK(on.alive == 0);
    on.at = nullptr;
    on.trace.clear();
    CHECK(net.run(rouse(net.host(0), "a", "4")).word == "4");
    CHECK(on.count("factory") == 1);
    CHECK(on.count("handle") == 1);
  }
}

TEST_CASE("S-130 without the Relocation Store nothing is activated, and what runs goes on") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a", "1"));
  net.run_until_idle();
  net.faults(0).set_rule([](const store_call& call) {
    return call.what >= store_operation::put ? store_fault::refuse : store_fault::none;
  });
  CHECK(failure(net, rouse(net.host(0), "b", "1")) == error_kind::internal_failure);
  CHECK(on.count("factory b") == 0);
  CHECK_FALSE(row_of(net, "b"));
  CHECK(net.run(rouse(net.host(0), "a", "2")).word == "2");
  net.faults(0).set_rule({});
  CHECK(net.run(rouse(net.host(0), "b", "1")).word == "1");
}

TEST_CASE("C-44 C-45 C-105 C-146 C-3 a mesh says where something new is placed, and nothing about what exists") {
  stage on;
  mesh net{2};
  net.start([&on](zlink::host& host) {
    for (const char* name : {"x", "y"}) {
      auto server = host.add_mesh(name).object_server();
      add_cells(server, on);
      add_rooms(server, on);
    }
    host.add_mesh("none");
  });
  auto spots = net.host(0).spots();
  const auto at = [&](std::size_t host, const char* id, const char* mesh_name) {
    return net.host(host).spots().request_to_spot(id, wake{"w"}).instance_spot("cell").in_mesh(mesh_name).timeout(5s).submit<told>();
  };
  CHECK(failure(net, spots.get_or_create("r", "room").submit()) == error_kind::invalid_operation);
  CHECK(failure(net, rouse(net.host(0), "a", "x")) == error_kind::invalid_operation);
  for (const char* unknown : {"z", "none"}) {
    CHECK(failure(net, spots.get_or_create("r", "room").in_mesh(unknown).submit()) == error_kind::not_found);
    CHECK(failure(net, at(0, "a", unknown)) == error_kind::not_found);
  }
  CHECK(on.trace.empty());
  const auto made = net.run(spots.get_or_create("r", "room").in_mesh("y").submit());
  CHECK(made.spot.mesh_name == "y");
  for (std::size_t host = 0; host < 2; ++host)
    CHECK(net.run(net.host(host).spots().get_or_create("r", "room").in_mesh("x").submit()).spot == made.spot);
  const auto first = net.run(at(0, "a", "x"));
  CHECK(row_of(net, "a")->node.mesh_name == "x");
  CHECK(net.run(at(1, "a", "x")).generation == first.generation);
  CHECK(net.run(at(1, "a", "y")).rid == first.rid);
  CHECK(on.count("factory a") == 1);
  CHECK(on.count("factory r") == 1);
}

TEST_CASE("C-44 a host without an object role has no mesh to place anything in") {
  mesh net{1};
  net.start([](zlink::host& host) { host.add_mesh("none"); });
  CHECK(failure(net, net.host(0).spots().get_or_create("r", "room").submit()) == error_kind::not_configured);
  CHECK(failure(net, rouse(net.host(0), "a", "x")) == error_kind::not_configured);
}

} // namespace creation_test
