// Closes of one Spot that meet each other: one on_closing, and everybody is answered.
#include "tests/contract/creation/scripted_spots.hpp"

namespace creation_test {
namespace {

using trace = std::vector<std::string>;

zlink::task<void> close_own(const zlink::common_spot_context& context, stage& on, bool is_room) {
  auto closing = is_room ? static_cast<const zlink::spot_context&>(context).close()
                         : static_cast<const zlink::instance_spot_context&>(context).close();
  const bool closed = co_await std::move(closing);
  on.happened(closed ? "closed" : "not closed", context.spot_id());
}
/// The handler of "close" closes its Spot when the barrier opens.
void close_when(stage& on, barrier& open, bool is_room) {
  on.hold("handle", open);
  on.handler = [&on, is_room](const zlink::common_spot_context& context, const std::string& word) {
    return word == "close" ? close_own(context, on, is_room) : zlink::task<void>::done();
  };
}

TEST_CASE("C-115 a handler that awaits the close of its Spot ends, though another close waits for that handler") {
  stage on;
  barrier open;
  mesh net{2};
  net.start(serve_beside_client(on));
  close_when(on, open, true);
  const auto ref = net.run(open_room(net.host(0), "a")).spot;
  std::size_t from = 0;
  SUBCASE("asked by another node") {}
  SUBCASE("asked by a caller outside of Spots on its own node") { from = 1; }
  auto handled = ask(net.host(0), "a", "close");
  net.run_until([&] { return open.waiting() == 1; });
  auto other = net.host(from).spots().close(ref);
  net.advance(100ms); // it waits for the gate that the handler holds
  open.open();
  CHECK(net.run(std::move(handled)).word == "close");
  CHECK(net.run(std::move(other)));
  CHECK(on.count("closed a") == 1);
  CHECK(on.count("closing a explicit_close") == 1);
  CHECK_FALSE(row_of(net, "a"));
}

TEST_CASE("C-115 C-119 a handler that awaits the close of its Spot ends, though the host's shutdown waits for it") {
  stage on;
  barrier open;
  mesh net{1};
  net.start(serve(on));
  close_when(on, open, true);
  net.run(open_room(net.host(0), "a"));
  auto handled = ask(net.host(0), "a", "close");
  net.run_until([&] { return open.waiting() == 1; });
  auto ending = net.host(0).shutdown();
  net.advance(100ms);
  open.open();
  CHECK(net.run(std::move(ending)).outcome == zlink::shutdown_outcome::stopped);
  CHECK(net.run(std::move(handled)).word == "close");
  CHECK(on.count("closed a") == 1);
  CHECK(on.count("closing a") == 1);
}

TEST_CASE("C-109 C-115 an eviction that found the Spot at work does not decide for those who joined it") {
  stage on;
  barrier open;
  mesh net{1};
  net.start([&on](zlink::host& host) {
    serve(on)(host);
    host.mesh("m").instance_spot_idle_timeout(5s);
  });
  close_when(on, open, false);
  auto handled = rouse(net.host(0), "a", "close", 60s);
  net.run_until([&] { return open.waiting() == 1; });
  net.advance(10s); // longer than the timeout: the eviction waits for the gate
  open.open();
  net.run(std::move(handled));
  net.run_until_idle();
  CHECK(on.count("closed a") == 1);
  CHECK(on.count("closing a explicit_close") == 1); // C-107: it was not idle
  CHECK_FALSE(row_of(net, "a"));
}

TEST_CASE("C-109 C-119 a host that shuts down while an eviction waits for a handler tells the Spot of the shutdown") {
  stage on;
  barrier open;
  mesh net{1};
  net.start([&on](zlink::host& host) {
    serve(on)(host);
    host.mesh("m").instance_spot_idle_timeout(5s);
  });
  on.hold("handle", open);
  auto handled = rouse(net.host(0), "a", "1", 60s);
  net.run_until([&] { return open.waiting() == 1; });
  net.advance(10s);
  auto ending = net.host(0).shutdown();
  net.advance(1s);
  open.open();
  net.run(std::move(ending));
  net.run(std::move(handled));
  CHECK(on.count("closing a host_shutdown") == 1);
  CHECK(on.count("closing a") == 1);
}

TEST_CASE("C-109 C-115 closes of one Spot from everywhere at once are one, whatever the order") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    stage on;
    barrier open;
    mesh net{{.hosts = 3, .seed = seed, .max_link_delay = 5ms, .max_store_delay = 5ms}};
    INFO("seed ", net.seed());
    net.start(serve(on));
    close_when(on, open, true);
    const auto ref = net.run(open_room(net.host(0), "a")).spot;
    auto handled = ask(net.host(0), "a", "close");
    std::vector<zlink::task<bool>> others;
    for (std::size_t host = 0; host < 3; ++host) {
      others.push_back(net.host(host).spots().close(ref));
      net.advance(std::chrono::milliseconds{seed * (host + 1) % 7});
    }
    net.run_until([&] { return open.waiting() == 1 || on.count("closing") == 1; });
    open.open();
    int closed = 0;
    for (auto& one : others)
      closed += net.run(std::move(one)) ? 1 : 0;
    static_cast<void>(net.run(zlink::as_result(std::move(handled)))); // it may have come too late
    CHECK(closed + on.count("closed a") > 0);
    CHECK(on.count("closing a explicit_close") == 1);
    CHECK(on.alive == 0);
    CHECK_FALSE(row_of(net, "a"));
  }
}

/// Instance Spot "a" has been asked to close, and its `on_closing` waits for the barrier: messages with intent are held.
/// The index of its host.
std::size_t seal_a(mesh& net, stage& on, barrier& open) {
  net.run(rouse(net.host(0), "a", "0"));
  on.handler = [&on](const zlink::common_spot_context& context, const std::string& word) {
    return word == "close" ? close_own(context, on, false) : zlink::task<void>::done();
  };
  on.hold("closing", open);
  net.run(rouse(net.host(0), "a", "close"));
  net.run_until([&] { return open.waiting() == 1; });
  return net.owner_of("a");
}

TEST_CASE("C-117 what is held when its host begins to leave goes to another node, in order") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    stage on;
    barrier open;
    mesh net{{.hosts = 2, .seed = seed, .max_link_delay = 5ms, .max_store_delay = 5ms}};
    INFO("seed ", net.seed());
    net.start(serve(on));
    const auto owner = seal_a(net, on, open);
    auto& other = net.host(1 - owner);
    auto first = rouse(other, "a", "1");
    net.run(other.spots().send_to_spot("a", hint{"2"}).instance_spot("cell").submit());
    auto last = rouse(other, "a", "3");
    auto here = rouse(net.host(owner), "a", "4");
    net.advance(20ms);
    auto ending = net.host(owner).shutdown();
    net.advance(50ms);
    on.trace.clear();
    open.open();
    CHECK(net.run(std::move(first)).rid == other.mesh("m").rid());
    CHECK(net.run(std::move(last)).rid == other.mesh("m").rid());
    CHECK(net.run(std::move(here)).rid == other.mesh("m").rid());
    CHECK(net.run(std::move(ending)).outcome == zlink::shutdown_outcome::stopped);
    CHECK(std::vector(on.trace.begin(), on.trace.begin() + 3) == trace{"factory a", "configure a", "initialize a"});
    const auto handled = [&on](const char* word) { return std::ranges::find(on.trace, std::string{"handle a "} + word); };
    CHECK(handled("1") < handled("2"));
    CHECK(handled("2") < handled("3"));
    CHECK(handled("3") != on.trace.end());
    CHECK(on.count("factory a") == 1);
  }
}

TEST_CASE("C-117 X-168 a host that leaves stays until it has handed on what it held, however long the store takes") {
  stage on;
  barrier open;
  mesh net{2};
  net.start(serve(on));
  const auto owner = seal_a(net, on, open);
  net.run(net.host(1 - owner).spots().send_to_spot("a", hint{"1"}).instance_spot("cell").submit());
  net.advance(20ms);
  auto ending = net.host(owner).shutdown();
  net.advance(50ms);
  auto& store = net.faults(owner);
  for (const auto fault : {zlink::testing::store_fault::none, zlink::testing::store_fault::hold_call}) // the row's end first
    store.once(zlink::testing::store_operation::read, zlink::placement::spot_key("a"), fault);
  open.open();
  net.run_until([&] { return store.script_done() && store.held() == 1; });
  net.advance(1s);
  CHECK(net.host(owner).status().state == zlink::host_state::draining);
  store.release();
  CHECK(net.run(std::move(ending)).outcome == zlink::shutdown_outcome::stopped);
  net.run_until([&] { return on.count("handle a 1") == 1; });
  CHECK(net.owner_of("a") == 1 - owner);
}

TEST_CASE("C-117 what is held when its host leaves, and nobody else can take it, ends in shutting_down") {
  stage on;
  barrier open;
  mesh net{2};
  net.start(serve_beside_client(on));
  seal_a(net, on, open);
  auto held = rouse(net.host(0), "a", "1");
  net.advance(20ms);
  auto ending = net.host(1).shutdown();
  net.advance(50ms);
  open.open();
  CHECK(failure(net, std::move(held)) == zlink::error_kind::shutting_down);
  CHECK(net.run(std::move(ending)).outcome == zlink::shutdown_outcome::stopped);
}

TEST_CASE("C-117 X-168 who asked hears the reply of a request that its host handed on to a third node") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    stage on;
    barrier open;
    mesh net{{.hosts = 4, .seed = seed, .max_link_delay = 4ms, .max_store_delay = 4ms}};
    INFO("seed ", net.seed());
    net.start(serve_beside_client(on));
    const auto owner = seal_a(net, on, open);
    std::vector<zlink::task<told>> held;
    for (int i = 0; i < 4; ++i)
      held.push_back(rouse(net.host(0), "a", "held " + std::to_string(i), 15s));
    net.advance(30ms);
    auto ending = net.host(owner).shutdown();
    net.advance(50ms);
    open.open();
    for (auto& call : held)
      CHECK(net.run(std::move(call)).rid != net.host(owner).mesh("m").rid());
    CHECK(net.run(std::move(ending)).outcome == zlink::shutdown_outcome::stopped);
  }
}

TEST_CASE("C-117 C-102 no incarnation is made for messages that nobody waits for any more") {
  for (std::size_t from : {0, 1}) {
    CAPTURE(from);
    stage on;
    barrier open;
    mesh net{2};
    net.start(serve_beside_client(on));
    seal_a(net, on, open);
    auto held = rouse(net.host(from), "a", "1", 100ms);
    SUBCASE("they ended before the row was renewed") { net.advance(200ms); }
    SUBCASE("they ended while the row was renewed") {
      net.advance(50ms);
      net.faults(1).once(zlink::testing::store_operation::write, zlink::placement::spot_key("a"),
                         zlink::testing::store_fault::hold_reply);
    }
    open.open();
    CHECK(failure(net, std::move(held)) == zlink::error_kind::deadline_exceeded);
    net.faults(1).release_all();
    net.advance(5s);
    CHECK(on.count("factory a") == 1);
    CHECK(on.count("handle a 1") == 0);
    CHECK_FALSE(row_of(net, "a"));
  }
}

} // namespace
} // namespace creation_test
