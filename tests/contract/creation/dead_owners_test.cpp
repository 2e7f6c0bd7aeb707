// What somebody meets that a host has left behind, and refs of what has gone.
#include "tests/contract/creation/scripted_spots.hpp"
#include "zlink/host/host_runtime.hpp"

namespace creation_test {
namespace {

using zlink::testing::store_fault;
using zlink::testing::store_operation;

TEST_CASE("S-79 S-156 C-113 a close that could not release a dead owner's Spot does not say that it is gone") {
  for (auto fault : {store_fault::refuse, store_fault::vanish, store_fault::conflict, store_fault::lose_reply}) {
    CAPTURE(static_cast<int>(fault));
    stage on;
    mesh net{3};
    net.start(serve_beside_client(on));
    const auto made = net.run(open_room(net.host(0), "a")).spot;
    net.kill(net.owner_of("a"));
    net.advance(30s);
    net.faults(0).once(store_operation::write, zlink::placement::spot_key("a"), fault);
    const auto closed = net.run(zlink::as_result(net.host(0).spots().close(made)));
    if (fault == store_fault::lose_reply) {
      CHECK(closed.value());
    } else {
      CHECK(failure_of(closed) == error_kind::unavailable);
      CHECK(net.run(net.host(0).spots().close(made)));
    }
    CHECK_FALSE(row_of(net, "a"));
    CHECK_FALSE(net.run(net.host(0).spots().close(made)));
  }
}

TEST_CASE("S-79 C-112 before the lease of a dead owner is over, a close of what it had is unavailable, for every kind of Spot") {
  stage on;
  mesh net{3};
  net.start(serve_beside_client(on));
  const auto room = net.run(open_room(net.host(0), "a")).spot;
  const auto owner = net.owner_of("a");
  std::string id = "i"; // becomes that of an Instance Spot on the same node
  do {
    id += 'i';
    net.run(rouse(net.host(0), id, "x"));
  } while (net.owner_of(id) != owner);
  const auto instance = *net.run(net.host(0).spots().find(id));
  CHECK(failure(net, net.host(0).spots().close(instance)) == error_kind::invalid_operation); // it lives
  net.kill(owner);
  net.run_until_idle();
  CHECK(failure(net, net.host(0).spots().close(instance)) == error_kind::unavailable);
  CHECK(failure(net, net.host(0).spots().close(room)) == error_kind::unavailable);
  net.advance(30s);
  CHECK(net.run(net.host(0).spots().close(instance)));
  CHECK(net.run(net.host(0).spots().close(room)));
}

TEST_CASE("C-79 a message with intent that meets a dead reservation has it released") {
  stage on;
  barrier never;
  mesh net{3};
  net.start(serve_beside_client(on));
  on.hold("initialize", never);
  auto call = rouse(net.host(0), "a", "1", 3s);
  net.run_until([&] { return never.waiting() == 1; });
  net.run_until_idle();
  REQUIRE(row_of(net, "a"));
  net.kill(row_of(net, "a")->node.node_rid == net.host(1).mesh("m").rid() ? 1 : 2);
  on.during = nullptr;
  net.advance(17s);
  CHECK(failure(net, std::move(call)) == error_kind::unavailable);
  REQUIRE(row_of(net, "a"));
  CHECK(net.run(rouse(net.host(0), "a", "2")).word == "2");
  never.open();
}

TEST_CASE("S-115 C-90 a Closing row whose owner is dead is unavailable to everybody, until it is closed by its ref") {
  stage on;
  barrier never;
  mesh net{2};
  net.start(serve_beside_client(on));
  const auto made = net.run(open_room(net.host(0), "a")).spot;
  on.hold("closing", never);
  auto closing = net.host(0).spots().close(made);
  net.run_until([&] { return never.waiting() == 1; });
  net.kill(1);
  net.advance(30s);
  CHECK(failure(net, open_room(net.host(0), "a")) == error_kind::unavailable);
  CHECK(failure(net, ask(net.host(0), "a", "x")) == error_kind::unavailable);
  CHECK(net.run(net.host(0).spots().close(made)));
  CHECK_FALSE(row_of(net, "a"));
  static_cast<void>(net.run(zlink::as_result(std::move(closing))));
  never.open();
}

TEST_CASE("C-113 closes of one ref from its own node that cross: one closes it, to the others it is gone") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    stage on;
    mesh net{{.hosts = 1, .seed = seed, .max_store_delay = 5ms}};
    INFO("seed ", net.seed());
    net.start(serve(on));
    const auto made = net.run(open_room(net.host(0), "a")).spot;
    std::vector<zlink::task<bool>> closes;
    for (int i = 0; i < 4; ++i) {
      closes.push_back(net.host(0).spots().close(made));
      net.advance(2ms);
    }
    int closed = 0;
    for (auto& one : closes)
      closed += net.run(std::move(one)) ? 1 : 0;
    CHECK(closed >= 1);
    CHECK(on.count("closing a") == 1);
    CHECK_FALSE(net.run(net.host(0).spots().close(made)));
  }
}

TEST_CASE("C-72 C-74 a reply of on_create that has no encoding fails the creation at once, here and from afar") {
  for (std::size_t from : {0, 1}) {
    CAPTURE(from);
    stage on;
    mesh net{2};
    net.start(serve_beside_client(on));
    on.answer = [](const std::string&) { return zlink::accept(order{std::string(2 * 1024 * 1024, 'x')}); };
    const auto before = net.elapsed();
    CHECK(failure(net, open_room(net.host(from), "a")) == error_kind::internal_failure);
    CHECK(net.elapsed() - before < 1s);
    CHECK_FALSE(row_of(net, "a"));
    on.answer = nullptr;
    net.run(open_room(net.host(from), "a"));
  }
}

} // namespace
} // namespace creation_test
