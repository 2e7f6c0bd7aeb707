// Requests that a behaviour leaves to a promise: they end by themselves, and the first use of `self()` is soon enough
// (D-5, D-13).
#include "zlink/host/host_runtime.hpp"

#include <doctest/doctest.h>
#include <zlink/testing/mesh.hpp>
#include <zlink/zlink.hpp>

#include <caf/event_based_actor.hpp>
#include <caf/response_promise.hpp>
#include <caf/typed_response_promise.hpp>

namespace promise_test {

using namespace std::chrono_literals;
using zlink::error_kind;
using zlink::testing::mesh;

struct promise_me {
  int unused = 0;
};
struct promise_and_fail {
  int unused = 0;
};
struct keep {
  int value = 0;
};
struct close_me {
  int unused = 0;
};
struct kept {
  int value = 0;
};
ZLINK_PACKET(promise_me, "promise.promise_me", unused)
ZLINK_PACKET(promise_and_fail, "promise.promise_and_fail", unused)
ZLINK_PACKET(keep, "promise.keep", value)
ZLINK_PACKET(close_me, "promise.close_me", unused)
ZLINK_PACKET(kept, "promise.kept", value)

/// Uses `self()` inside its handlers only.
class promiser final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;
  caf::behavior make_behavior() override {
    return {
      [this](const promise_me&) {
        promise_ = self()->make_response_promise<kept>();
        return promise_;
      },
      [this](const promise_and_fail&) -> caf::result<kept> {
        promise_ = self()->make_response_promise<kept>();
        throw std::runtime_error{"after the promise"};
      },
      [this](const keep& m) { promise_.deliver(kept{m.value}); },
      [this](const close_me&) { auto closing = context().close(); },
    };
  }

private:
  caf::typed_response_promise<kept> promise_;
};

void serve(zlink::host& started) {
  started.add_mesh("m").object_server().add_instance_spot_factory<promiser>(
    "promiser", [](auto& factory) { factory.disable_relocation(); });
}

template <class Packet>
zlink::task<kept> ask(zlink::host& from, std::chrono::milliseconds limit = 60s) {
  return from.spots().request_to_spot("p", Packet{}).instance_spot("promiser").timeout(limit).template submit<kept>();
}

TEST_CASE("the first self() of a Spot, inside the handler that it serves, makes a promise that answers") {
  mesh net{2};
  net.start(serve);
  for (std::size_t from = 0; from < 2; ++from) {
    auto promised = ask<promise_me>(net.host(from));
    net.run_until_idle();
    CHECK_FALSE(promised.ready());
    net.run(net.host(from).spots().send_to_spot("p", keep{7}).submit());
    CHECK(net.run(std::move(promised)).value == 7);
  }
}

TEST_CASE("a request left to a promise ends by its own deadline, and its late answer is dropped") {
  mesh net{1};
  net.start(serve);
  auto promised = zlink::as_result(ask<promise_me>(net.host(0), 2s));
  net.run_until_idle();
  auto& runtime = net.host(0).runtime();
  const auto object = runtime.objects.find("p");
  CHECK(object->application_word().records() == 1);
  CHECK(object->outstanding == 1);
  const auto late = [&] {
    return runtime.domain.counters.dropped[static_cast<std::size_t>(zlink::detail::drop_reason::late_reply)].load();
  };
  net.advance(2100ms);
  const auto outcome = net.run(std::move(promised));
  REQUIRE_FALSE(outcome.has_value());
  CHECK(outcome.error().kind() == error_kind::deadline_exceeded);
  CHECK(object->application_word().records() == 0);
  CHECK(object->outstanding == 0);
  const auto before = late();
  net.run(net.host(0).spots().send_to_spot("p", keep{7}).submit());
  net.run_until_idle();
  CHECK(late() == before + 1);
  auto again = ask<promise_me>(net.host(0)); // the Spot serves on
  net.run_until_idle();
  net.run(net.host(0).spots().send_to_spot("p", keep{8}).submit());
  CHECK(net.run(std::move(again)).value == 8);
}

TEST_CASE("a shutdown waits for a promise until the request's deadline, a close until its own") {
  for (const bool closes : {false, true}) {
    CAPTURE(closes);
    mesh net{1};
    net.start(serve);
    auto promised = ask<promise_me>(net.host(0), closes ? 10min : 5s);
    net.run_until_idle();
    const auto began = net.elapsed();
    if (closes) {
      net.run(net.host(0).spots().send_to_spot("p", close_me{}).submit());
      net.run_until([&] { return promised.ready(); });
      CHECK(net.elapsed() - began >= 29s);
      CHECK(net.elapsed() - began < 32s);
    } else {
      const auto ended = net.run(net.host(0).shutdown());
      CHECK(ended.outcome == zlink::shutdown_outcome::stopped);
      CHECK(net.elapsed() - began >= 4s);
      CHECK(net.elapsed() - began < 7s);
    }
    const auto outcome = net.run(zlink::as_result(std::move(promised)));
    REQUIRE_FALSE(outcome.has_value());
    CHECK(outcome.error().kind() == (closes ? error_kind::unavailable : error_kind::deadline_exceeded));
  }
}

TEST_CASE("a behaviour that throws after it made a promise leaves the answer to the promise") {
  std::vector<std::string> log;
  zlink::testing::mesh_options options;
  options.adjust = [&log](std::size_t, zlink::host_options& o) {
    o.on_dispatch_error = [&log](const zlink::dispatch_error& e) { log.push_back(to_string(e)); };
  };
  mesh net{options};
  net.start(serve);
  auto promised = ask<promise_and_fail>(net.host(0));
  net.run_until_idle();
  CHECK_FALSE(promised.ready());
  REQUIRE(log.size() == 1);
  CHECK(log[0].ends_with("after the promise"));
  net.run(net.host(0).spots().send_to_spot("p", keep{9}).submit());
  CHECK(net.run(std::move(promised)).value == 9);
}

} // namespace promise_test
