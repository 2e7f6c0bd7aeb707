// Node-direct handlers at the end of their host.
#include "tests/contract/execution/stage.hpp"

namespace node_handlers_test {
namespace {

using namespace zlink::test;
using zlink::error_kind;
using zlink::task;
using zlink::testing::mesh;

task<answer> ask_node(mesh& net, std::size_t from, std::string what) {
  const auto rid = net.host(0).mesh("m").rid();
  return net.host(from).nodes().request_to_node("m", rid, ask{std::move(what)}).timeout(100s).submit<answer>();
}
std::optional<error_kind> failure(mesh& net, task<answer> call) {
  auto outcome = net.run(zlink::as_result(std::move(call)));
  return outcome.has_value() ? std::nullopt : std::optional{outcome.error().kind()};
}

TEST_CASE("X-168 L-241 L-245 a node's handlers that are under way end before their host, and their callers are answered") {
  for (std::size_t from : {0, 1}) {
    CAPTURE(from);
    stage scene;
    scene.node_acts["wait"] = [&scene]() -> task<int> {
      co_await scene.pass("node");
      co_return 5;
    };
    mesh net{2};
    net.start(serve(scene));
    auto under_way = ask_node(net, from, "wait");
    net.run_until([&] { return scene.knocked("node"); });
    const auto began = net.elapsed();
    auto ending = net.host(0).shutdown();
    net.advance(2s);
    CHECK(failure(net, ask_node(net, from, "late")) == error_kind::shutting_down);
    scene.open("node");
    CHECK(net.run(std::move(under_way)).value == 5);
    const auto ended = net.run(std::move(ending));
    CHECK(ended.outcome == zlink::shutdown_outcome::stopped);
    CHECK(net.elapsed() - began >= 2s);
    CHECK_FALSE(scene.has("late"));
  }
}

TEST_CASE("X-168 L-243 at the drain deadline a node's handlers are cut short, and their callers hear it") {
  stage scene;
  std::optional<error_kind> inside;
  scene.acts["wait"] = [&scene](player&) -> task<int> {
    co_await scene.pass("spot");
    co_return 1;
  };
  mesh net{2};
  net.start([&scene](zlink::host& host, std::size_t index) {
    serve(scene)(host);
    if (index == 0)
      host.mesh("m").placement_weight(0); // the Spot lives on the other one
  });
  scene.node_acts["wait"] = [&]() -> task<int> {
    auto asked = ask_spot(net.host(0), "x", "wait", "wide", 100s);
    inside = failure_of(co_await zlink::as_result(std::move(asked)));
    co_return 5;
  };
  auto under_way = ask_node(net, 1, "wait");
  net.run_until([&] { return scene.knocked("spot"); });
  auto ending = net.host(0).shutdown();
  net.advance(31s);
  scene.open("spot");
  const auto ended = net.run(std::move(ending));
  CHECK(ended.outcome == zlink::shutdown_outcome::force_stopped);
  CHECK(ended.reason == zlink::shutdown_reason::deadline_exceeded);
  CHECK(inside == error_kind::shutting_down);
}

} // namespace
} // namespace node_handlers_test
