// Who asks for an Actor's end may be what that end waits for: nobody waits for himself (J-131, J-134).
#include "tests/contract/membership/join_scene.hpp"
#include "zlink/host/host_runtime.hpp"

#include <atomic>
#include <thread>

namespace membership_test {
namespace {

/// Outlives the mesh.
struct ending_evidence {
  std::string told;
  std::chrono::nanoseconds told_at{};
  std::chrono::nanoseconds began{};
};

struct ending_scene : ending_evidence, scene {
  /// Destroys Ada, wherever that is asked for.
  zlink::task<void> end_her() {
    auto ending = net.host(0).actors().destroy(ada.actor);
    auto asked = zlink::as_result(std::move(ending));
    const auto ended = co_await std::move(asked);
    told = ended ? (*ended ? "true" : "false") : to_string(ended.error().kind());
    told_at = net.elapsed();
  }
  /// At that step of a callback.
  void end_her_at(const std::string& step) {
    on.during = [this, step](const std::string& now) { return now == step ? end_her() : zlink::task<void>::done(); };
  }
  void check() {
    auto& runtime = net.host(0).runtime();
    net.run_until([&] { return on.alive == 0 && runtime.objects.actors() == 0; });
    CHECK(told == "true");
    CHECK(told_at - began < 1s);
    CHECK(net.elapsed() - began < 1s);
    CHECK_FALSE(net.run(net.host(0).actors().find("ada")));
    CHECK(net.run(make_person(net.host(0), "ada")).state == zlink::spot_create_state::created);
  }
};

TEST_CASE("J-134 J-131 a handler leaves its room, and ends its Actor") {
  ending_scene s;
  move_person(s.net, s.on, "ada", "r");
  s.began = s.net.elapsed();
  s.on.handler = [&](zlink::actor& who, const std::string&) -> zlink::task<void> {
    auto leaving = s.on.leave(who);
    co_await std::move(leaving);
    auto ending = s.end_her();
    co_await std::move(ending);
  };
  CHECK(s.net.run(talk(s.net.host(0), "ada", "x")).word == "x");
  s.on.handler = nullptr;
  s.check();
  CHECK(s.on.count("left r ada") == 1);
  CHECK(s.on.count("joined hall ada") == 1);
}

TEST_CASE("J-134 J-131 a room sends a member home, and ends him") {
  ending_scene s;
  move_person(s.net, s.on, "ada", "r");
  zlink::actor* her = nullptr;
  s.on.handler = [&](zlink::actor& who, const std::string&) -> zlink::task<void> {
    her = &who;
    return zlink::task<void>::done();
  };
  s.net.run(talk(s.net.host(0), "ada", "x"));
  s.began = s.net.elapsed();
  s.on.in_room = [&](const zlink::spot_context& context) -> zlink::task<void> {
    co_await context.leave_actor(*her);
    auto ending = s.end_her();
    co_await std::move(ending);
  };
  s.net.run(s.net.host(0).spots().request_to_spot("r", say{"do"}).submit<said>());
  s.check();
}

TEST_CASE("J-134 J-84 callbacks about an Actor end it: the room's when it has left, the hall's when it has come or is lost") {
  for (const std::string step : {"left r ada", "joined hall ada", "disconnected hall ada"}) {
    CAPTURE(step);
    ending_scene s;
    auto& net = s.net;
    if (step != "disconnected hall ada") {
      move_person(net, s.on, "ada", "r");
      s.on.handler = [&](zlink::actor& who, const std::string&) { return s.on.leave(who); };
    }
    s.end_her_at(step);
    s.began = net.elapsed();
    if (step == "disconnected hall ada") {
      auto& runtime = net.host(0).runtime();
      runtime.infra->post([&runtime, who = runtime.objects.find_actor("ada")] {
        zlink::detail::start_coroutine(runtime.actors.tell_disconnected(who), [](zlink::result<void>) {});
      });
    } else {
      net.run(talk(net.host(0), "ada", "x"));
    }
    net.run_until([&] { return !s.told.empty(); });
    s.on.handler = nullptr;
    s.on.during = nullptr;
    s.check();
  }
}

TEST_CASE("J-136 J-11 who is told that an Actor has come into being may end it at once") {
  stage on;
  zlink::host host;
  serve(host.add_mesh("m"), on);
  host.start();
  std::atomic<bool> stop{false};
  // tidy: allow thread: keeps a processor from the first turn of the Actors
  std::thread busy{[&] {
    for (std::uint64_t n = 0; !stop.load(std::memory_order_relaxed); ++n)
      std::atomic_signal_fence(std::memory_order_seq_cst);
  }};
  int refused = 0;
  for (int i = 0; i < 500; ++i) {
    const auto made = zlink::sync_wait(make_person(host, "p" + std::to_string(i)));
    const auto ended = zlink::sync_wait(zlink::as_result(host.actors().destroy(made.actor)));
    refused += ended && *ended ? 0 : 1;
  }
  stop = true;
  busy.join();
  CHECK(refused == 0);
  zlink::sync_wait(host.shutdown());
}

// -- what the store does not tell in time ----------------------------------------------------------------------------------

TEST_CASE("S-156 J-1 J-118 a commit that is answered by nobody cannot take effect after the Join has failed") {
  for (const auto fault : {store_fault::late, store_fault::vanish}) {
    scene s;
    auto& net = s.net;
    auto& on = s.on;
    barrier open;
    on.hold("gate", open);
    net.run(send_off(net.host(0), "ada", "r"));
    net.run_until([&] { return open.waiting() == 1; });
    net.advance(1'999ms);
    int faults = 0;
    net.faults(0).set_rule([&](const store_call& call) {
      const bool hers = call.what == store_operation::write && call.touches(zlink::placement::actor_key("ada"));
      return hers && ++faults == 1 ? fault : store_fault::none;
    });
    open.open();
    net.run_until([&] { return on.ends.size() == 1; });
    CHECK(on.ends.front().outcome == join_outcome::failed);
    net.faults(0).set_rule({});
    net.advance(100ms);
    net.faults(0).release_all();
    net.advance(1min);
    CHECK_FALSE(net.run(net.host(0).actors().find_spot("ada")));
    CHECK(place_name(person_row(net, "ada")->member_of->spot_id) == "hall");
    CHECK(net.run(talk(net.host(0), "ada", "x")).word == "x");
  }
}

TEST_CASE("C-72 S-156 a target that cannot read its reservation at once reads it again") {
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  net.run_until_idle();
  net.faults(1).once(store_operation::read, zlink::placement::actor_key("bob"), store_fault::vanish);
  CHECK(net.run(make_person(net.host(0), "bob")).state == zlink::spot_create_state::created);
  net.faults(1).once(store_operation::read, zlink::placement::spot_key("r"), store_fault::vanish);
  CHECK(net.run(net.host(0).spots().get_or_create("r", "room").submit()).state == zlink::spot_create_state::created);
}

// -- where nobody can be asked ---------------------------------------------------------------------------------------------

TEST_CASE("J-72 the id of the Entry Spot that an Actor is in names no User Spot") {
  scene s;
  auto& on = s.on;
  on.handler = [](zlink::actor& who, const std::string&) -> zlink::task<void> {
    who.context().join_spot(who.context().spot_id()).defer();
    return zlink::task<void>::done();
  };
  s.net.run(talk(s.net.host(0), "ada", "x"));
  s.net.run_until([&] { return on.ends.size() == 1; });
  REQUIRE(on.ends.front().error);
  CHECK(on.ends.front().error->kind() == error_kind::type_mismatch);
}

class lobby final : public zlink::entry_spot<person> {
public:
  using entry_spot::entry_spot;
  void configure() override { context().handlers().add_packet<&lobby::on_say>(); }
  zlink::task<void> on_joined_actor(person&) override { return zlink::task<void>::done(); }
  zlink::task<void> on_leave_actor(person&) override { return zlink::task<void>::done(); }
  zlink::task<said> on_say(const say& m, const zlink::message_context&) {
    auto making = zlink::as_result(context().host().actors().create(m.word, "person").submit());
    const auto made = co_await std::move(making);
    said answer{made ? "on " + made->actor.node_rid : to_string(made.error().kind()), context().spot_id()};
    co_return answer;
  }
};

TEST_CASE("X-48 a handler of an Entry Spot waits for an Actor on another node, or is refused at once") {
  for (const std::size_t hosts : {1, 2}) {
    CAPTURE(hosts);
    stage on;
    mesh net{hosts};
    net.start([&on](zlink::host& host) {
      host.add_mesh("m").object_server().add_entry_spot<lobby>().add_actor_factory<person>("person", [&on](auto& factory) {
        factory.disable_relocation().construct_with(
          [&on](zlink::actor_context context) { return std::make_unique<person>(std::move(context), on); });
      });
    });
    net.run_until_idle();
    const auto lobby_id = net.host(0).mesh("m").entry_spot_id();
    for (int i = 0; i < 5; ++i) {
      const auto began = net.elapsed();
      const auto answer = net.run(net.host(0).spots().request_to_spot(lobby_id, say{"p" + std::to_string(i)}).submit<said>());
      CHECK(answer.word == (hosts == 1 ? "invalid_operation" : "on " + net.host(1).mesh("m").rid()));
      CHECK(net.elapsed() - began < 1s);
    }
  }
}

} // namespace
} // namespace membership_test
