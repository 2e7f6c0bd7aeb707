// The end of a host.
#include "tests/contract/creation/scripted_spots.hpp"
#include "zlink/host/node_runtime.hpp"

namespace shutdown_test {

using namespace creation_test;
using zlink::shutdown_outcome;
using zlink::shutdown_reason;

auto serve_with_hall(stage& on) {
  return [&on](zlink::host& host) {
    serve(on)(host);
    add_hall(host.mesh("m").object_server(), on);
  };
}

TEST_CASE("L-240 L-243 C-119 S-117 alone, a host ends every Spot with host_shutdown and leaves no record") {
  stage on;
  mesh net{1};
  net.start(serve_with_hall(on));
  net.run(open_room(net.host(0), "u"));
  net.run(rouse(net.host(0), "i", "1"));
  const auto rid = net.host(0).mesh("m").rid();
  const auto entry = net.host(0).mesh("m").entry_spot_id();
  const auto owner = row_of(net, "u")->owner.owner;
  int rows_seen = 0;
  on.closing = [&](const zlink::spot_closing_context& why, std::stop_token cleanup) {
    rows_seen += row_of(net, "u") && row_of(net, "i") ? 1 : 0;
    CHECK(why.reason == zlink::spot_close_reason::host_shutdown);
    CHECK_FALSE(cleanup.stop_requested());
  };
  const auto ended = net.run(net.host(0).shutdown());
  CHECK(ended.outcome == shutdown_outcome::stopped);
  CHECK(ended.reason == shutdown_reason::none);
  CHECK(net.host(0).status().state == zlink::host_state::stopped);
  CHECK(on.count("closing") == 3);
  CHECK(on.count("closing " + entry + " host_shutdown") == 1);
  CHECK(rows_seen >= 1);
  CHECK(on.alive == 0);
  CHECK_FALSE(row_of(net, "u"));
  CHECK_FALSE(row_of(net, "i"));
  CHECK_FALSE(stored<zlink::placement::object_record>(net, zlink::placement::spot_key(entry)).record);
  CHECK_FALSE(descriptor_of(net, rid));
  CHECK_FALSE(stored<zlink::placement::lease_record>(net, zlink::placement::lease_key(owner)).record);
}

TEST_CASE("L-241 L-244 L-245 accepted work ends first, longer than a lease, while new calls are refused") {
  stage on;
  mesh net{2};
  net.start([&on](zlink::host& host, std::size_t index) {
    if (index == 1)
      host.add_mesh("m").object_client().request_timeout(2min);
    else
      serve(on)(host);
  });
  net.run(open_room(net.host(1), "a"));
  barrier end;
  on.hold("handle", end);
  auto running = ask(net.host(1), "a", "1", 2min);
  auto queued = ask(net.host(1), "a", "2", 2min);
  net.run_until([&] { return end.waiting() == 1; });
  net.run_until_idle(); // the second one has arrived too
  const auto rid = net.host(0).mesh("m").rid();
  auto ending = net.host(0).shutdown();
  net.advance(25s); // the lease is 15 s
  CHECK(net.host(0).status().state == zlink::host_state::draining);
  REQUIRE(descriptor_of(net, rid));
  CHECK(descriptor_of(net, rid)->state == zlink::placement::node_state::draining);
  CHECK(row_of(net, "a"));
  CHECK(on.count("closing") == 0);
  CHECK(failure(net, ask(net.host(0), "a", "x")) == error_kind::shutting_down);
  CHECK(failure(net, open_room(net.host(0), "b")) == error_kind::shutting_down);
  CHECK(failure(net, net.host(0).spots().find("a")) == error_kind::shutting_down);
  CHECK(failure(net, ask(net.host(1), "a", "x")) == error_kind::shutting_down);
  CHECK(failure(net, rouse(net.host(1), "c", "x")) == error_kind::unavailable); // the only candidate drains
  end.open();
  CHECK(net.run(std::move(ending)).outcome == shutdown_outcome::stopped);
  CHECK(net.run(std::move(running)).word == "1");
  CHECK(net.run(std::move(queued)).word == "2");
  CHECK(on.trace.back() == "closing a host_shutdown");
}

TEST_CASE("O-127 L-241 the order of an end: refuse, publish, accepted work, callbacks, rows, descriptor, lease") {
  stage on;
  barrier end;
  mesh net{2};
  net.start([&on](zlink::host& host, std::size_t index) {
    if (index == 0)
      serve_with_hall(on)(host);
    else
      host.add_mesh("m").object_client();
  });
  net.run(open_room(net.host(1), "u"));
  net.run(rouse(net.host(1), "i", "1"));
  net.run_until_idle();
  const auto rid = net.host(0).mesh("m").rid();
  const auto entry = net.host(0).mesh("m").entry_spot_id();
  const auto owner = row_of(net, "u")->owner.owner;
  on.trace.clear();
  std::vector<std::string> steps;
  on.at = [&](const std::string& step, const std::string&) {
    if (step == "handle" || step == "closing")
      steps.push_back(step);
  };
  net.faults(0).set_rule([&](const store_call& call) {
    if (call.what != store_operation::write)
      return store_fault::none;
    const auto names = [&](const std::string& key) { return call.touches(key); };
    const auto* first = call.batch->mutations.empty() ? nullptr : &call.batch->mutations.front();
    if (first == nullptr)
      return store_fault::none;
    if (names(zlink::placement::spot_key("u")) || names(zlink::placement::spot_key("i")))
      steps.push_back("row");
    else if (first->key == zlink::placement::lease_key(owner) && !first->put)
      steps.push_back("lease");
    else if (names(zlink::placement::descriptor_key("m", rid)) && !names(zlink::placement::spot_key(entry)))
      steps.push_back("publish");
    else if (names(zlink::placement::spot_key(entry)))
      steps.push_back("descriptor");
    return store_fault::none;
  });
  on.hold("handle", end);
  auto running = ask(net.host(1), "u", "1", 60s);
  auto queued = ask(net.host(1), "u", "2", 60s);
  net.run_until([&] { return end.waiting() == 1; });
  net.run_until_idle();
  auto ending = net.host(0).shutdown();
  net.advance(5s);
  CHECK(steps == std::vector<std::string>{"handle", "publish", "closing", "closing", "row"}); // hall and i had nothing to do
  CHECK(failure(net, ask(net.host(1), "u", "x")) == error_kind::shutting_down);
  end.open();
  net.run(std::move(ending));
  CHECK(net.run(std::move(running)).word == "1");
  CHECK(net.run(std::move(queued)).word == "2");
  CHECK(steps
        == std::vector<std::string>{"handle", "publish", "closing", "closing", "row", "handle", "closing", "row", "descriptor", "lease"});
  CHECK(on.alive == 0);
}

TEST_CASE("L-243 a callback that throws and a deadline that passes each have their result") {
  {
    stage on;
    mesh net{1};
    net.start(serve(on));
    net.run(open_room(net.host(0), "a"));
    on.at = [](const std::string& step, const std::string&) {
      if (step == "closing")
        throw std::runtime_error{"not today"};
    };
    const auto ended = net.run(net.host(0).shutdown());
    CHECK(ended.outcome == shutdown_outcome::force_stopped);
    CHECK(ended.reason == shutdown_reason::teardown_failed);
    CHECK(net.host(0).status().state == zlink::host_state::stopped);
    CHECK_FALSE(row_of(net, "a"));
  }
  stage on;
  barrier end;
  mesh net{1};
  net.start(serve(on));
  net.run(open_room(net.host(0), "a"));
  on.hold("handle", end);
  auto running = ask(net.host(0), "a", "1", 5min);
  auto queued = ask(net.host(0), "a", "2", 5min);
  net.run_until([&] { return end.waiting() == 1; });
  auto ending = net.host(0).shutdown();
  net.advance(31s);
  CHECK(failure(net, std::move(queued)) == error_kind::shutting_down);
  CHECK(on.count("closing") == 0); // a handler that holds the gate is waited for
  end.open();
  const auto ended = net.run(std::move(ending));
  CHECK(ended.outcome == shutdown_outcome::force_stopped);
  CHECK(ended.reason == shutdown_reason::deadline_exceeded);
  CHECK(net.host(0).status().state == zlink::host_state::stopped);
  failure(net, std::move(running)); // its caller was on the host that ended
  CHECK(on.count("handle") == 1);
}

TEST_CASE("X-168 L-241 requests that a host has started go on to the drain deadline, then they end in shutting_down") {
  for (const bool in_time : {true, false}) {
    CAPTURE(in_time);
    stage on;
    barrier open;
    mesh net{2};
    net.start(serve_beside_client(on));
    on.hold("handle", open);
    auto asked = rouse(net.host(0), "a", "1", 5min); // host 1 handles it
    net.run_until([&] { return open.waiting() == 1; });
    const auto began = net.elapsed();
    auto ending = net.host(0).shutdown();
    net.advance(2s);
    if (in_time) {
      open.open();
      CHECK(net.run(std::move(asked)).word == "1");
      CHECK(net.run(std::move(ending)).outcome == shutdown_outcome::stopped);
    } else {
      CHECK(failure(net, std::move(asked)) == error_kind::shutting_down);
      CHECK(net.elapsed() - began >= 30s);
      CHECK(net.run(std::move(ending)).reason == shutdown_reason::deadline_exceeded);
      open.open();
    }
  }
}

TEST_CASE("L-247 concurrent shutdowns share one operation, and later ones its result") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  net.run(open_room(net.host(0), "a"));
  on.at = [](const std::string& step, const std::string&) {
    if (step == "closing")
      throw std::runtime_error{"not today"};
  };
  auto first = net.host(0).shutdown();
  auto second = net.host(0).shutdown();
  CHECK(net.run(std::move(first)).reason == shutdown_reason::teardown_failed);
  CHECK(net.run(std::move(second)).reason == shutdown_reason::teardown_failed);
  CHECK(net.run(net.host(0).shutdown()).reason == shutdown_reason::teardown_failed);
  CHECK(on.count("closing") == 1);
}

TEST_CASE("L-251 a pending activation ends once, at the end of the drain") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  barrier never;
  on.hold("initialize", never);
  auto request = rouse(net.host(0), "a", "1", 5min);
  net.host(0).spots().send_to_spot("a", hint{"2"}).instance_spot("cell").submit();
  net.run_until([&] { return never.waiting() == 1; });
  const auto began = net.elapsed();
  auto ending = net.host(0).shutdown();
  const auto outcome = failure(net, std::move(request));
  CHECK(net.elapsed() - began >= 30s); // the drain's deadline
  CHECK(net.elapsed() - began < 31s);
  never.open();
  net.run(std::move(ending));
  net.run_until_idle();
  CHECK((outcome == error_kind::shutting_down || outcome == error_kind::unavailable));
  CHECK(on.count("handle") == 0);
  CHECK(on.alive == 0);
  CHECK_FALSE(row_of(net, "a"));
}

TEST_CASE("L-252 a crash runs no callback") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  net.run(open_room(net.host(0), "a"));
  net.run_until_idle();
  net.kill(net.owner_of("a"));
  net.advance(60s);
  CHECK(on.count("closing") == 0);
}

TEST_CASE("S-118 after an orderly end peers know at once") {
  stage on;
  mesh net{3};
  net.start(serve(on));
  net.run(net.host(2).shutdown());
  net.advance(3s);
  for (std::size_t host = 0; host < 2; ++host)
    CHECK(net.host(host).mesh("m").runtime().peers_known->snapshot()->find(net.host(2).mesh("m").rid()) == nullptr);
  for (int i = 0; i < 10; ++i)
    net.run(open_room(net.host(0), "r" + std::to_string(i)));
}

TEST_CASE("S-117 an old run that comes back and ends cannot touch its replacement") {
  stage on;
  mesh net{2};
  net.start(serve_with_hall(on));
  net.run(open_room(net.host(0), "a"));
  net.run_until_idle();
  const auto owner = net.owner_of("a");
  const auto other = 1 - owner;
  const auto ref = *net.run(net.host(other).spots().find("a"));
  net.freeze(owner);
  net.advance(60s);
  CHECK(net.run(net.host(other).spots().close(ref))); // the operator's release
  const auto fresh = net.run(open_room(net.host(other), "a")).spot;
  CHECK(fresh.object_generation > ref.object_generation);
  net.thaw(owner);
  net.run(net.host(owner).shutdown());
  REQUIRE(row_of(net, "a"));
  CHECK(row_of(net, "a")->generation.value == fresh.object_generation);
  CHECK(net.run(ask(net.host(other), "a", "alive")).generation == fresh.object_generation);
  CHECK(descriptor_of(net, net.host(other).mesh("m").rid()));
}

} // namespace shutdown_test
