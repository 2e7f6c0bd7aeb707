// What goes on whatever the application does, and where work waits that finds no room (02 sections 9, 11 and 13).
#include "tests/contract/execution/stage.hpp"
#include "zlink/host/host_runtime.hpp"

#include <caf/event_based_actor.hpp>

#include <string_view>

namespace progress_test {

using namespace zlink::test;
using zlink::error_kind;
using zlink::testing::mesh;

TEST_CASE("X-109 timeouts, replies, new peers and a shutdown go on although no turn of a host ends") {
  stage scene;
  scene.acts["hold"] = [](player& p) -> zlink::task<int> {
    auto call = knock(p, "never " + p.id(), 10min);
    const auto through = co_await call.submit<answer>();
    co_return through.value;
  };
  mesh net{2};
  net.start(serve(scene));
  std::vector<zlink::task<zlink::result<answer>>> held;
  for (int i = 0; i < 20; ++i)
    held.push_back(zlink::as_result(ask_spot(net.host(0), "spot " + std::to_string(i), "hold", "wide", 10min)));
  net.run_until([&] { return scene.log.size() == 40; });
  for (int i = 0; i < 20; ++i)
    REQUIRE(scene.knocked("never spot " + std::to_string(i)));
  auto timed = zlink::as_result(ask_spot(net.host(0), "spot 0", "behind", "wide", 200ms));
  const auto began = net.elapsed();
  CHECK(failure_of(net.run(std::move(timed))) == error_kind::deadline_exceeded);
  CHECK(net.elapsed() - began < 300ms);
  net.kill(1);
  net.restart(1); // returns when both know each other
  net.run(net.host(0).mesh("m").until_peers_ready(1));
  auto ending = net.host(0).shutdown();
  net.advance(10s);
  CHECK_FALSE(ending.ready());
  CHECK(net.host(0).status().state == zlink::host_state::draining);
  const auto ended = net.run(std::move(ending)); // by its deadline: the turns have not ended
  CHECK(ended.outcome == zlink::shutdown_outcome::force_stopped);
  for (int i = 0; i < 20; ++i)
    scene.open("never spot " + std::to_string(i));
  net.run_until_idle();
}

TEST_CASE("X-94 a request that finds a peer's queue full waits for the send timeout, or for its own time if that is less") {
  stage scene;
  mesh net{2};
  net.start(serve(scene));
  net.run(ask_spot(net.host(0), "x", "prepared"));
  const auto owner = net.owner_of("x");
  auto& far = net.host(1 - owner);
  net.run(ask_spot(far, "x", "route known", ""));
  net.freeze(owner);
  for (int i = 0; i < 200; ++i) // what the queue and the peer's credit take, and more
    (void)tell_spot(far, "x", std::string(100'000, 'x'));
  net.advance(1500ms);
  const auto waits_for = [&](std::chrono::milliseconds limit) {
    const auto began = net.elapsed();
    auto call = far.spots().request_to_spot("x", ask{std::string(100'000, 'y')});
    call.timeout(limit);
    CHECK(failure_of(net.run(zlink::as_result(call.submit<answer>()))) == error_kind::deadline_exceeded);
    return net.elapsed() - began;
  };
  const auto longer = waits_for(8s);
  CHECK(longer >= 1s); // the send timeout
  CHECK(longer < 1100ms);
  const auto shorter = waits_for(300ms);
  CHECK(shorter >= 300ms);
  CHECK(shorter < 400ms);
  net.thaw(owner);
  net.run_until_idle();
  CHECK(std::none_of(scene.log.begin(), scene.log.end(), [](const auto& what) { return what.starts_with("y"); }));
}

TEST_CASE("X-95 no kind of error and no result says that a queue is full") {
  std::size_t kinds = 0;
  for (int i = 0; i < 64; ++i) {
    const std::string_view name = to_string(static_cast<error_kind>(i));
    if (name == "unknown")
      continue;
    ++kinds;
    for (const std::string_view word : {"full", "busy", "pressure", "overload", "queue", "capacity", "retry"})
      CHECK(name.find(word) == std::string_view::npos);
  }
  CHECK(kinds == 13);
  for (const auto state : {zlink::spot_create_state::existing, zlink::spot_create_state::created,
                           zlink::spot_create_state::rejected})
    CHECK(std::string_view{to_string(state)}.find("full") == std::string_view::npos);
}

/// A Spot that shows its CAF actor.
class open_spot final : public zlink::instance_spot {
public:
  open_spot(zlink::instance_spot_context context, stage& scene) : instance_spot(std::move(context)), stage_(scene) {}
  void configure() override { context().handlers().add_packet<&open_spot::on_ask>().add_packet<&open_spot::on_tell>(); }
  static inline caf::event_based_actor* face = nullptr;

private:
  zlink::task<answer> on_ask(const ask&, const zlink::message_context&) {
    face = self();
    co_await stage_.pass("d");
    co_return answer{};
  }
  void on_tell(const tell& m, const zlink::message_context&) { stage_.note(m.what); }
  stage& stage_;
};

TEST_CASE("X-87 what CAF actors send to a held Spot waits in its lane and in front of it, not in a mailbox of CAF") {
  stage scene;
  mesh net{with_lanes(100)};
  net.start(serve(scene, [&scene](zlink::mesh_node& node) {
    node.object_server().add_instance_spot_factory<open_spot>("open", [&scene](auto& factory) {
      factory.disable_relocation().construct_with([&scene](zlink::instance_spot_context c) {
        return std::make_unique<open_spot>(std::move(c), scene);
      });
    });
  }));
  auto held = ask_spot(net.host(0), "x", "hold", "open");
  net.run_until_idle();
  REQUIRE(open_spot::face != nullptr);
  const auto handle = caf::actor_cast<caf::actor>(open_spot::face);
  const auto address = net.host(0).spot_actor("x");
  for (int i = 0; i < 2500; ++i) {
    caf::anon_send(handle, tell{"to the face"});
    caf::anon_send(address, tell{"to the address"});
  }
  net.run_until_idle();
  auto& runtime = net.host(0).runtime();
  const auto object = runtime.objects.find("x");
  CHECK(object->application_word().records() == 100);
  CHECK(runtime.waiting->size() == 5000 - 99);
  CHECK((open_spot::face->mailbox().blocked() || open_spot::face->mailbox().empty()));
  net.advance(1100ms); // the send timeout: what still waits is dropped and counted
  CHECK(runtime.waiting->size() == 0);
  CHECK(runtime.domain.counters.dropped[static_cast<std::size_t>(zlink::detail::drop_reason::refused)] == 5000 - 99);
  scene.open("d");
  net.run(std::move(held));
  net.run_until_idle();
  CHECK(scene.count("to the face") + scene.count("to the address") == 99);
}

} // namespace progress_test
