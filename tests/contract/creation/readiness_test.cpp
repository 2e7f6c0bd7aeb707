// Signalled readiness to move, on hosts where nothing moves.
#include "tests/contract/creation/scripted_spots.hpp"

namespace creation_test {
namespace {

using trace = std::vector<std::string>;

struct round_over {
  std::string how;
};
ZLINK_PACKET(round_over, "creation.round_over", how)

class arena final : public zlink::spot<> {
public:
  arena(zlink::spot_context context, std::vector<std::string>& said) : spot(std::move(context)), said_(said) {}
  void configure() override { context().handlers().add_packet<&arena::on_round_over>().add_packet<&arena::on_wake>(); }
  zlink::task<void> on_relocation_ready_completed(const zlink::spot_relocation_ready_completion& completion) override {
    said_.push_back(std::string{"completed "} + to_string(completion.outcome));
    if (completing)
      co_await completing->passed();
    if (yielding) {
      auto call = context().run_cpu_worker([](std::stop_token) {});
      co_await call.yield();
    }
    said_.push_back("next round");
  }
  static inline barrier* completing = nullptr;
  static inline bool yielding = false;

private:
  zlink::task<told> on_round_over(const round_over& m, const zlink::message_context&) {
    told answer{"ended", 0, {}};
    if (m.how == "callback") {
      auto call = context().run_cpu_worker([](std::stop_token) {});
      call.submit().then([this](zlink::result<void>) { context().relocation_ready().defer(); });
      co_return answer;
    }
    try {
      context().relocation_ready().defer();
      if (m.how == "twice")
        context().relocation_ready().defer();
      if (m.how == "send") {
        auto call = context().outbound().send_to_spot(context().spot_id(), wake{"never"});
        co_await call.submit();
      }
      if (m.how == "timer")
        co_await context().add_timer<&arena::on_tick>("t", 1s);
      if (m.how == "worker") {
        auto call = context().run_cpu_worker([](std::stop_token) {});
        co_await call.submit();
      }
      if (m.how == "create") {
        auto call = context().host().spots().create("arena");
        co_await call.submit();
      }
      if (m.how == "close")
        co_await context().close();
    } catch (const zlink::operation_failed& failed) {
      answer.word = to_string(failed.kind());
    }
    said_.push_back("turn over");
    co_return answer;
  }
  told on_wake(const wake& m, const zlink::message_context&) {
    said_.push_back("handle " + m.word);
    return {m.word, 0, {}};
  }
  void on_tick(const zlink::timer_tick&) {}

  std::vector<std::string>& said_;
};

/// Of Entry and Instance Spots: they have no such member, so that it takes the object under the context to misuse it.
class odd_cell final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;
  void configure() override { context().handlers().add_packet<&odd_cell::on_wake>(); }

private:
  told on_wake(const wake&, const zlink::message_context&) {
    zlink::spot_relocation_ready_call call{
      zlink::detail::counted_ptr<zlink::detail::spot_object>::share(&context().object())};
    try {
      call.defer();
    } catch (const zlink::operation_failed& failed) {
      return {to_string(failed.kind()), 0, {}};
    }
    return {"passed", 0, {}};
  }
};

auto serve_arena(std::vector<std::string>& said, bool signaled, bool per_actor = false) {
  return [&said, signaled, per_actor](zlink::host& host) {
    host.add_mesh("m").object_server().add_spot_factory<arena>("arena", [&said, signaled, per_actor](auto& factory) {
      if (per_actor)
        factory.recreate_on_relocation().per_actor();
      else
        factory.disable_relocation();
      if (signaled)
        factory.application_signaled();
      factory.construct_with(
        [&said](zlink::spot_context context) { return std::make_unique<arena>(std::move(context), said); });
    });
  };
}
zlink::task<told> end_round(mesh& net, std::string how) {
  return net.host(0).spots().request_to_spot("a", round_over{std::move(how)}).timeout(5s).submit<told>();
}

TEST_CASE("C-138 X-61 where nothing can move, a signalled boundary is told as continued before the next message runs") {
  std::vector<std::string> said;
  barrier completing;
  arena::completing = &completing;
  mesh net{1};
  net.start(serve_arena(said, true));
  net.run(net.host(0).spots().get_or_create("a", "arena").submit());
  CHECK(net.run(end_round(net, "well")).word == "ended");
  auto next = ask(net.host(0), "a", "next", 60s);
  net.advance(10s);
  CHECK(said == trace{"turn over", "completed continued"}); // what waits is held until the callback has ended
  completing.open();
  CHECK(net.run(std::move(next)).word == "next");
  CHECK(said == trace{"turn over", "completed continued", "next round", "handle next"});
  said.clear();
  net.run(end_round(net, "well"));
  net.run_until_idle();
  CHECK(said == trace{"turn over", "completed continued", "next round"}); // one completion for each registration
  arena::completing = nullptr;
}

TEST_CASE("L-46 what waits is held though the callback yields") {
  std::vector<std::string> said;
  mesh net{1};
  net.start(serve_arena(said, true));
  net.run(net.host(0).spots().get_or_create("a", "arena").submit());
  arena::yielding = true;
  auto round = end_round(net, "well");
  auto next = ask(net.host(0), "a", "next");
  net.run(std::move(round));
  net.run(std::move(next));
  arena::yielding = false;
  CHECK(said == trace{"turn over", "completed continued", "next round", "handle next"});
}

TEST_CASE("X-62 X-61 L-43 L-42 after readiness the turn starts nothing else, and not readiness again") {
  for (const std::string how : {"twice", "send", "timer", "worker", "create", "close"}) {
    CAPTURE(how);
    std::vector<std::string> said;
    mesh net{1};
    net.start(serve_arena(said, true));
    net.run(net.host(0).spots().get_or_create("a", "arena").submit());
    CHECK(net.run(end_round(net, how)).word == "invalid_operation");
    net.run_until_idle();
    CHECK(said == trace{"turn over", "completed continued", "next round"});
    CHECK(net.run(ask(net.host(0), "a", "next")).word == "next"); // another turn may again
  }
}

TEST_CASE("X-61 L-46 a callback of a turn that has ended may signal readiness, too") {
  std::vector<std::string> said;
  mesh net{1};
  net.start(serve_arena(said, true));
  net.run(net.host(0).spots().get_or_create("a", "arena").submit());
  net.run(end_round(net, "callback"));
  net.run_until_idle();
  CHECK(said == trace{"completed continued", "next round"});
  CHECK(net.run(ask(net.host(0), "a", "next")).word == "next");
}

TEST_CASE("X-61 L-42 readiness where it may not be said changes nothing") {
  for (const bool per_actor : {false, true}) {
    std::vector<std::string> said;
    mesh net{1};
    net.start(serve_arena(said, false, per_actor));
    net.run(net.host(0).spots().get_or_create("a", "arena").submit());
    CHECK(net.run(end_round(net, "well")).word == "invalid_operation");
    net.run_until_idle();
    CHECK(said == trace{"turn over"});
  }
  mesh net{1};
  net.start([](zlink::host& host) {
    host.add_mesh("m").object_server().add_instance_spot_factory<odd_cell>(
      "cell", [](auto& factory) { factory.disable_relocation(); });
  });
  CHECK(net.run(rouse(net.host(0), "a", "x")).word == "invalid_operation");
}

} // namespace
} // namespace creation_test
