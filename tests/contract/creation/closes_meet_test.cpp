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

} // namespace
} // namespace creation_test
