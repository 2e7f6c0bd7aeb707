// What becomes of exceptions and of messages that nobody serves: counted, logged with their cause (02 section 18).
#include "tests/contract/execution/stage.hpp"
#include "zlink/host/host_runtime.hpp"

namespace faults_test {

using namespace zlink::test;
using zlink::error_kind;
using zlink::testing::mesh;
using zlink::testing::mesh_options;

struct unserved {
  int number = 0;
};
ZLINK_PACKET(unserved, "faults.unserved", number)

/// Every host's log.
mesh_options logging(std::vector<std::string>& log, std::size_t hosts = 1) {
  mesh_options options;
  options.hosts = hosts;
  options.adjust = [&log](std::size_t, zlink::host_options& o) {
    o.on_dispatch_error = [&log](const zlink::dispatch_error& e) { log.push_back(to_string(e)); };
  };
  return options;
}

std::uint64_t dropped(mesh& net, zlink::detail::drop_reason why) {
  return net.host(0).runtime().domain.counters.dropped[static_cast<std::size_t>(why)];
}

TEST_CASE("X-162 a throwing send or tick handler is logged and counted once with its cause, and nothing is sent back") {
  stage scene;
  std::vector<std::string> log;
  scene.acts["throw"] = [](player&) -> zlink::task<int> {
    throw std::runtime_error{"out of paint"};
    co_return 0;
  };
  scene.acts["throw later"] = [](player& p) -> zlink::task<int> {
    auto work = p.spot().run_cpu_worker([](std::stop_token) { return 1; });
    co_await work.submit();
    throw 7;
  };
  mesh net{logging(log)};
  net.start(serve(scene));
  prepare(net, "x", "wide");
  auto& counters = net.host(0).runtime().domain.counters;
  const auto before = net.host(0).runtime().outside.size();
  net.run(tell_spot(net.host(0), "x", "throw"));
  net.run_until_idle();
  REQUIRE(log.size() == 1);
  CHECK(log[0] == "zlink: handler_exception drop instance_spot send mesh=m spot=x what=stage.tell: out of paint");
  CHECK(counters.handler_exceptions.load() == 1);
  CHECK(dropped(net, zlink::detail::drop_reason::handler_failed) == 1);
  net.run(tell_spot(net.host(0), "x", "throw later"));
  net.run_until_idle();
  REQUIRE(log.size() == 2);
  CHECK(log[1].ends_with("an exception that is no std::exception"));
  CHECK(counters.handler_exceptions.load() == 2);
  CHECK(net.host(0).runtime().outside.size() == before);
  CHECK(dropped(net, zlink::detail::drop_reason::late_reply) == 0);
  // A request's fault is told to its caller, and to the log.
  CHECK(failure_of(net.run(zlink::as_result(ask_spot(net.host(0), "x", "throw")))) == error_kind::internal_failure);
  REQUIRE(log.size() == 3);
  CHECK(log[2] == "zlink: handler_exception reply_error instance_spot request mesh=m spot=x what=stage.ask: out of paint");
  CHECK(dropped(net, zlink::detail::drop_reason::handler_failed) == 2); // the sends
}

TEST_CASE("messages that nobody serves are logged, never with what they hold") { // M-142, O-92
  stage scene;
  std::vector<std::string> log;
  mesh net{logging(log)};
  net.start(serve(scene));
  prepare(net, "x", "room");
  auto send = net.host(0).spots().send_to_spot("x", unserved{4711});
  net.run(send.submit());
  net.run_until_idle();
  REQUIRE(log.size() == 1);
  CHECK(log[0] == "zlink: no_handler drop spot send mesh=m spot=x what=faults.unserved");
  auto request = net.host(0).spots().request_to_spot("x", unserved{4711});
  CHECK(failure_of(net.run(zlink::as_result(request.submit<answer>()))) == error_kind::not_found);
  CHECK(log[1] == "zlink: no_handler reply_error spot request mesh=m spot=x what=faults.unserved");
  auto to_node = net.host(0).nodes().send_to_node("m", net.host(0).mesh("m").rid(), unserved{4711});
  net.run(to_node.submit());
  net.run_until_idle();
  CHECK(log[2] == "zlink: no_handler drop node send mesh=m what=faults.unserved");
}

TEST_CASE("callbacks and lifecycle callbacks that throw are logged under their names; a long cause is cut") {
  stage scene;
  std::vector<std::string> log;
  scene.on_initialize = [](player& p) -> zlink::task<void> {
    if (p.id() == "refused")
      throw std::runtime_error{std::string(1000, 'x')};
    co_return;
  };
  scene.on_closing = [](player&, const zlink::spot_closing_context&) -> zlink::task<void> {
    throw std::runtime_error{"at the end"};
    co_return;
  };
  scene.acts["then"] = [](player& p) -> zlink::task<int> {
    auto work = p.spot().run_cpu_worker([](std::stop_token) { return 1; });
    work.submit().then([](zlink::result<int>) { throw std::runtime_error{"callback"}; });
    co_return 0;
  };
  scene.acts["close"] = [](player& p) -> zlink::task<int> {
    co_await p.close();
    co_return 0;
  };
  mesh net{logging(log)};
  net.start(serve(scene));
  CHECK_FALSE(net.run(zlink::as_result(ask_spot(net.host(0), "refused", "asked"))).has_value());
  REQUIRE(log.size() == 1);
  CHECK(log[0] == "zlink: handler_exception fail_caller instance_spot control mesh=m spot=refused what=creation: "
                    + std::string(256, 'x'));
  net.run(ask_spot(net.host(0), "x", "then"));
  net.run_until_idle();
  REQUIRE(log.size() == 2);
  CHECK(log[1].ends_with("what=completion callback: callback"));
  net.run(ask_spot(net.host(0), "x", "close"));
  net.run_until_idle();
  REQUIRE(log.size() == 3);
  CHECK(log[2].ends_with("spot=x what=on_closing: at the end"));
}

TEST_CASE("a log that throws changes nothing") { // O-115
  stage scene;
  int told = 0;
  scene.acts["throw"] = [](player&) -> zlink::task<int> {
    throw std::runtime_error{"handler"};
    co_return 0;
  };
  mesh_options options;
  options.adjust = [&told](std::size_t, zlink::host_options& o) {
    o.on_dispatch_error = [&told](const zlink::dispatch_error&) {
      ++told;
      throw std::runtime_error{"log"};
    };
  };
  mesh net{options};
  net.start(serve(scene));
  for (int i = 0; i < 20; ++i) {
    CHECK(failure_of(net.run(zlink::as_result(ask_spot(net.host(0), "x", "throw")))) == error_kind::internal_failure);
    net.run(ask_spot(net.host(0), "x", "works"));
  }
  CHECK(told == 20);
}

/// Handlers that are no coroutines although they return tasks.
class plain_spot final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;
  void configure() override {
    context().handlers().add_packet<&plain_spot::on_ask>().add_packet<&plain_spot::on_tell>();
  }

private:
  zlink::task<answer> on_ask(const ask& m, const zlink::message_context&) {
    if (m.what == "throw")
      throw std::runtime_error{"before there was a task"};
    return knock_on(m.what);
  }
  zlink::task<answer> knock_on(std::string door) {
    auto call = context().outbound().request_to_spot(std::move(door), ask{"knock"});
    call.instance_spot("door").timeout(60s);
    return call.submit<answer>();
  }
  zlink::task<void> on_tell(const tell&, const zlink::message_context&) {
    throw std::runtime_error{"before there was a task"};
  }
};

TEST_CASE("X-163 X-164 a plain function that throws instead of returning its task ends its record only") {
  stage scene;
  std::vector<std::string> log;
  mesh net{logging(log)};
  net.start(serve(scene, [](zlink::mesh_node& node) {
    node.object_server().add_instance_spot_factory<plain_spot>("plain",
                                                               [](auto& factory) { factory.disable_relocation(); });
  }));
  for (int i = 0; i < 100; ++i) {
    CHECK(failure_of(net.run(zlink::as_result(ask_spot(net.host(0), "x", "throw", "plain"))))
          == error_kind::internal_failure);
    net.run(tell_spot(net.host(0), "x", "throw"));
  }
  scene.open("d");
  CHECK(net.run(ask_spot(net.host(0), "x", "d", "plain")).value == 1);
  CHECK(log.size() == 200);
  auto& object = *net.host(0).runtime().objects.find("x");
  CHECK(object.active_runs == nullptr);
  CHECK(object.application_word().records() == 0);
}

} // namespace faults_test
