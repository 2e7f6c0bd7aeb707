// A call that has ended while its message waited at this node: the message is never sent.
#include "tests/contract/execution/stage.hpp"
#include "zlink/host/host_runtime.hpp"

namespace taken_back_test {
namespace {

using namespace zlink::test;
using zlink::testing::mesh;

template <class T>
auto note_end(std::string& end) {
  return [&end](zlink::result<T> r) {
    end = r.is_cancelled() ? "cancelled" : r.has_value() ? "ok" : to_string(r.error().kind());
  };
}

TEST_CASE("X-96 X-147 what was cancelled while the target's host was paused does not run when it goes on") {
  stage scene;
  scene.acts["hold"] = hold_at("d");
  mesh net{{.hosts = 2, .adjust = [](std::size_t, zlink::host_options& o) { o.max_jobs = 10; }}};
  net.start(serve(scene));
  net.run(ask_spot(net.host(0), "held", "prepared"));
  const auto owner = net.owner_of("held");
  const auto stranger = 1 - owner;
  net.run(ask_spot(net.host(stranger), "held", "route known", ""));
  net.run(tell_spot(net.host(owner), "held", "hold"));
  net.run_until_idle();
  for (int i = 0; i < 8; ++i)
    tell_spot(net.host(stranger), "held", "taken");
  net.run_until_idle();
  REQUIRE(net.host(owner).runtime().permits->paused());
  std::stop_source stop;
  std::string send_end;
  std::string request_end;
  const auto spots = net.host(stranger).spots();
  spots.send_to_spot("held", tell{"cancelled send"}).submit(stop.get_token()).then(note_end<void>(send_end));
  spots.request_to_spot("held", ask{"cancelled request"}).submit<answer>(stop.get_token()).then(note_end<answer>(request_end));
  net.run_until_idle();
  CHECK(send_end.empty());
  stop.request_stop();
  net.run_until_idle();
  CHECK(send_end == "cancelled");
  CHECK(request_end == "cancelled");
  scene.open("d");
  net.run_until_idle();
  CHECK(scene.count("taken") == 8);
  CHECK(scene.count("cancelled send") == 0);
  CHECK(scene.count("cancelled request") == 0);
}

TEST_CASE("X-96 M-89 what was cancelled while its node was not ready is not sent when it is") {
  stage scene;
  mesh net{2};
  net.start(serve(scene, [](zlink::mesh_node& node) { node.send_timeout(60s); }));
  const auto rid = net.host(1).mesh("m").rid();
  net.partition({0}, {1});
  net.advance(20s);
  std::stop_source stop;
  std::string first;
  std::string second;
  const auto nodes = net.host(0).nodes();
  nodes.request_to_node("m", rid, ask{"one"}).submit<answer>(stop.get_token()).then(note_end<answer>(first));
  nodes.request_to_node("m", rid, ask{"two"}).submit<answer>(stop.get_token()).then(note_end<answer>(second));
  std::string kept;
  nodes.request_to_node("m", rid, ask{"kept"}).timeout(100s).submit<answer>().then(note_end<answer>(kept));
  net.run_until_idle();
  CHECK(first.empty());
  stop.request_stop();
  net.run_until_idle();
  CHECK(first == "cancelled");
  CHECK(second == "cancelled");
  net.heal();
  net.advance(30s);
  CHECK(kept == "ok");
  CHECK(scene.count("kept starts") == 1);
  CHECK(scene.count("one starts") == 0);
  CHECK(scene.count("two starts") == 0);
}

TEST_CASE("X-154 M-21 a callback on an accepted send runs on the completion dispatcher, never inside then") {
  stage scene;
  mesh net{1};
  net.start(serve(scene));
  prepare(net, "x", "wide");
  int depth = 0;
  int deepest = 0;
  int runs = 0;
  std::function<void()> again = [&] {
    deepest = std::max(deepest, ++depth);
    if (++runs <= 100)
      net.host(0).spots().send_to_spot("x", tell{"a"}).submit().then([&again](zlink::result<void>) { again(); });
    --depth;
  };
  again();
  CHECK(runs == 1);
  net.run_until_idle();
  CHECK(runs == 101);
  CHECK(deepest == 1);
}

TEST_CASE("M-8 a terminal on a call that was moved away is invalid_operation") {
  stage scene;
  mesh net{1};
  net.start(serve(scene));
  prepare(net, "x", "wide");
  auto send = net.host(0).spots().send_to_spot("x", tell{"a"});
  auto other_send = std::move(send);
  net.run(other_send.submit());
  CHECK(failure_of(net.run(as_result(send.submit()))) == zlink::error_kind::invalid_operation);
  auto request = net.host(0).spots().request_to_spot("x", ask{"b"});
  auto other_request = std::move(request);
  net.run(other_request.submit<answer>());
  CHECK(failure_of(net.run(as_result(request.submit<answer>()))) == zlink::error_kind::invalid_operation);
}

TEST_CASE("X-34 X-35 a task that another Spot began by yield gives no turn away where it is awaited") {
  stage scene;
  std::optional<zlink::task<answer>> kept;
  scene.acts["begin"] = [&](player& p) -> zlink::task<int> {
    auto call = p.spot().outbound().request_to_spot("d", ask{"open"}).instance_spot("door");
    kept = call.yield<answer>();
    co_return 0;
  };
  scene.acts["await"] = [&](player&) -> zlink::task<int> {
    auto begun = std::move(*kept);
    const auto got = co_await std::move(begun);
    co_return got.value;
  };
  mesh net{1};
  net.start(serve(scene));
  prepare(net, "s", "split");
  net.run(ask_spot(net.host(0), "x", "begin"));
  auto awaiting = ask_spot(net.host(0), "s", "await", "");
  net.run_until_idle();
  std::string probe;
  ask_spot(net.host(0), "s", "probe", "").then(note_end<answer>(probe));
  net.run_until_idle();
  CHECK(probe.empty());
  scene.open("d");
  CHECK(net.run(std::move(awaiting)).value == 1);
  net.run_until_idle();
  CHECK(probe == "ok");
}

} // namespace
} // namespace taken_back_test
