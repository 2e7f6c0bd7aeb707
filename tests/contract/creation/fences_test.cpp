// Who is asked for what is no longer so, or never was: another run of a node, another incarnation, a forged reservation, a
// host that has closed its Spots.
#include "tests/contract/creation/scripted_spots.hpp"
#include "zlink/codec.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/control_frames.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/messaging/mesh_links.hpp"
#include "zlink/testing/virtual_time.hpp"

namespace creation_test {
namespace {

using zlink::placement::allocation_state;

/// The same names in every life of a node, and a lifecycle token of the test's choice.
class named_life final : public zlink::random_source {
public:
  named_life(std::uint64_t lifecycle, std::uint64_t stream) : lifecycle_(lifecycle), rest_(lifecycle, stream) {}
  std::uint64_t next() override {
    const auto position = position_++;
    return position < 4 ? 0x1234'5678'9abc'def0 + position : position == 4 ? lifecycle_ : rest_.next();
  }

private:
  std::uint64_t lifecycle_;
  std::uint64_t position_ = 0;
  zlink::testing::seeded_random rest_;
};

TEST_CASE("C-10 C-106 a node of the same name with another token is another run, whichever token is larger") {
  for (const std::uint64_t second : {500, 2'000}) {
    CAPTURE(second);
    stage on;
    std::uint64_t lifecycle = 1'000;
    mesh net{{.hosts = 2, .adjust = [&lifecycle](std::size_t host, zlink::host_options& options) {
                if (host == 1)
                  options.random = std::make_shared<named_life>(lifecycle, host);
              }}};
    net.start([&on](zlink::host& host, std::size_t index) {
      auto& node = host.add_mesh("m");
      if (index == 0)
        node.object_client();
      else
        add_cells(node.object_server(), on);
    });
    const auto rid = net.host(1).mesh("m").rid();
    REQUIRE(descriptor_of(net, rid)->node.lifecycle.value == lifecycle);
    net.run(rouse(net.host(0), "a", "1"));
    const auto old = *net.run(net.host(0).spots().find("a"));
    net.kill(1);
    net.advance(60s);
    lifecycle = second;
    net.restart(1);
    net.run(net.host(0).mesh("m").until_peers_ready(1));
    REQUIRE(net.host(1).mesh("m").rid() == rid);
    CHECK(descriptor_of(net, rid)->node.lifecycle.value == second);
    // What the former run owned is not served by this one, though the row names its routing id.
    on.trace.clear();
    CHECK(failure(net, ask(net.host(0), "a", "2")) == error_kind::unavailable);
    CHECK(failure(net, rouse(net.host(0), "a", "3")) == error_kind::unavailable);
    CHECK(failure(net, rouse(net.host(1), "a", "4")) == error_kind::unavailable);
    CHECK(on.count("handle") == 0);
    CHECK(net.run(net.host(0).spots().close(old)));
    CHECK(net.run(rouse(net.host(0), "a", "5")).generation > old.object_generation);
  }
}

TEST_CASE("C-93 S-46 a Spot runs nothing for a sender to whom the store has shown another incarnation or owner") {
  for (const std::string forged : {"generation", "authority", "owner"}) {
    CAPTURE(forged);
    stage on;
    mesh net{3};
    net.start(serve_beside_client(on));
    net.run(rouse(net.host(0), "a", "1"));
    net.run_until_idle();
    const auto real = *row_of(net, "a");
    auto row = real;
    if (forged == "generation")
      ++row.generation.value;
    if (forged != "owner")
      ++row.authority.value;
    if (forged == "owner") {
      const auto other = descriptor_of(net, net.host(3 - net.owner_of("a")).mesh("m").rid());
      row.node = other->node;
      row.owner = other->owner;
    }
    put(net, zlink::placement::spot_key("a"), encode(zlink::placement::object_record{row}));
    net.host(0).runtime().messages.routes.cache.clear();
    CHECK(failure(net, ask(net.host(0), "a", "2")) == error_kind::unavailable);
    const auto woken = net.run(zlink::as_result(rouse(net.host(0), "a", "3")));
    INFO((woken ? woken->word + " by " + woken->rid : zlink::to_string(woken.error())));
    CHECK(failure_of(woken) == error_kind::unavailable);
    CHECK(on.count("handle") == 1);
    put(net, zlink::placement::spot_key("a"), encode(zlink::placement::object_record{real}));
    net.host(0).runtime().messages.routes.cache.clear();
    CHECK(net.run(ask(net.host(0), "a", "4")).word == "4");
  }
}

/// Asks host 1 as host 0 would, except for what the test changes.
template <class Question>
void ask_forged(mesh& net, zlink::detail::control_command command, const Question& question, std::uint64_t operation) {
  const auto link = net.host(0).runtime().find_node("m")->links->ready_link(net.host(1).mesh("m").rid());
  REQUIRE(link);
  const zlink::detail::control_envelope envelope{operation, operation, zlink::encode(question)};
  link->send_control(static_cast<std::uint16_t>(command), zlink::encode(envelope));
  net.run_until_idle();
}
zlink::detail::question_route honest_route(mesh& net) {
  const auto& source = net.host(0).runtime().find_node("m")->identity;
  const auto& target = net.host(1).runtime().find_node("m")->identity;
  return {source.node_rid, source.lifecycle.value, target.node_rid, target.lifecycle.value, 5'000};
}

TEST_CASE("C-69 C-70 a target builds for the very reservation that the question names, and the question brings no request") {
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  net.faults(0).once(store_operation::write, zlink::placement::spot_key("a"), store_fault::hold_reply);
  auto call = open_room(net.host(0), "a", "word"); // reserved, and its coordinator does not know yet
  net.run_until([&] { return net.faults(0).held() == 1; });
  const auto seen = stored<zlink::placement::object_record>(net, zlink::placement::spot_key("a"));
  const auto& row = *zlink::placement::row_in(seen);
  REQUIRE(row.state == allocation_state::reserved);
  zlink::detail::create_question honest;
  honest.id = "a";
  honest.type = "room";
  honest.reservation_high = row.pending->reservation.high;
  honest.reservation_low = row.pending->reservation.low;
  honest.generation = row.generation.value;
  honest.authority = row.authority.value;
  honest.version = seen.version;
  honest.route = honest_route(net);
  std::uint64_t operation = 0;
  const auto ask_with = [&](auto change) {
    auto forged = honest;
    change(forged);
    ask_forged(net, zlink::detail::control_command::create_spot, forged, ++operation);
    CHECK(on.trace.empty());
    CHECK(row_of(net, "a")->state == allocation_state::reserved);
  };
  ask_with([](auto& q) { q.id = "b"; });
  ask_with([](auto& q) { q.type = "other"; });
  ask_with([](auto& q) { ++q.reservation_high; });
  ask_with([](auto& q) { ++q.reservation_low; });
  ask_with([](auto& q) { ++q.generation; });
  ask_with([](auto& q) { ++q.authority; });
  ask_with([](auto& q) { q.version += "x"; });
  ask_with([](auto& q) { q.route.source_rid += "x"; });
  ask_with([](auto& q) { ++q.route.source_lifecycle; });
  ask_with([](auto& q) { q.route.target_rid += "x"; });
  ask_with([](auto& q) { ++q.route.target_lifecycle; });
  ask_forged(net, zlink::detail::control_command::create_spot, honest, ++operation);
  CHECK(on.count("create a word") == 1); // the request came from the store
  CHECK(row_of(net, "a")->state == allocation_state::active);
  CHECK(zlink::encode(honest).size() < 300);
  net.faults(0).release_all();
  static_cast<void>(net.run(zlink::as_result(std::move(call)))); // its own question comes too late
  CHECK(on.count("create") == 1);
}

TEST_CASE("C-118 an owner closes the very incarnation, under the ownership that whoever asks has read") {
  stage on;
  barrier end;
  mesh net{2};
  net.start(serve_beside_client(on));
  const auto ref = net.run(open_room(net.host(0), "a")).spot;
  net.run(rouse(net.host(0), "i", "1"));
  net.run_until_idle();
  const auto seen = stored<zlink::placement::object_record>(net, zlink::placement::spot_key("a"));
  zlink::detail::close_question honest;
  honest.id = "a";
  honest.generation = ref.object_generation;
  honest.authority = zlink::placement::row_in(seen)->authority.value;
  honest.version = seen.version;
  honest.route = honest_route(net);
  std::uint64_t operation = 0;
  const auto ask_with = [&](auto change) {
    auto forged = honest;
    change(forged);
    ask_forged(net, zlink::detail::control_command::close_spot, forged, ++operation);
    CHECK(on.count("closing") == 0);
    CHECK(net.run(ask(net.host(0), "a", "alive")).word == "alive");
  };
  ask_with([](auto& q) { q.id = "b"; });
  ask_with([](auto& q) { ++q.generation; });
  ask_with([](auto& q) { ++q.authority; });
  ask_with([](auto& q) { q.version += "x"; });
  ask_with([](auto& q) { q.route.source_rid += "x"; });
  ask_with([](auto& q) { ++q.route.source_lifecycle; });
  ask_with([](auto& q) { q.route.target_rid += "x"; });
  ask_with([](auto& q) { ++q.route.target_lifecycle; });
  const auto cell = stored<zlink::placement::object_record>(net, zlink::placement::spot_key("i"));
  ask_with([&](auto& q) { // an Instance Spot, with everything right (C-112)
    q.id = "i";
    q.generation = zlink::placement::row_in(cell)->generation.value;
    q.authority = zlink::placement::row_in(cell)->authority.value;
    q.version = cell.version;
  });
  on.hold("closing", end);
  for (int i = 0; i < 3; ++i) // the same question again, and another one about the same Spot
    ask_forged(net, zlink::detail::control_command::close_spot, honest, operation + (i == 2 ? 1 : 0));
  end.open();
  net.run_until_idle();
  CHECK(on.count("closing a explicit_close") == 1);
  CHECK_FALSE(row_of(net, "a"));
}

TEST_CASE("C-49 C-39 a node that is leaving takes nothing new, serves what it has, and keeps what was reserved on it") {
  stage on;
  mesh net{3};
  net.start(serve_beside_client(on));
  net.run(open_room(net.host(0), "old"));
  net.run(open_room(net.host(0), "other"));
  const auto leaving = net.owner_of("old");
  net.mute(0, leaving); // what is reserved there from now on, it is not told
  std::vector<zlink::task<zlink::spot_create_result>> calls;
  for (int i = 0; i < 8; ++i)
    calls.push_back(open_room(net.host(0), "pending " + std::to_string(i), "x", 20s));
  net.run_until_idle();
  std::size_t reserved_there = 0;
  for (int i = 0; i < 8; ++i)
    reserved_there += row_of(net, "pending " + std::to_string(i))->state == allocation_state::reserved ? 1 : 0;
  REQUIRE(reserved_there > 0);
  auto& runtime = net.host(leaving).runtime();
  bool announced = false;
  runtime.infra->post([&] {
    auto change = runtime.find_node("m")->registration->change(
      [](zlink::placement::descriptor_record& d) { d.state = zlink::placement::node_state::relocating; },
      runtime.time->now() + 10s);
    zlink::detail::start_coroutine(std::move(change), [&announced](auto outcome) { announced = outcome.has_value(); });
  });
  net.run_until([&announced] { return announced; });
  net.advance(10s); // everybody has heard of it
  for (int i = 0; i < 12; ++i) {
    const auto made = net.run(open_room(net.host(0), "new " + std::to_string(i)));
    CHECK(made.spot.node_rid != net.host(leaving).mesh("m").rid());
    CHECK(net.run(rouse(net.host(0), "woken " + std::to_string(i), "x")).rid != net.host(leaving).mesh("m").rid());
  }
  net.heal();
  CHECK(net.run(ask(net.host(0), "old", "still served")).rid == net.host(leaving).mesh("m").rid());
  std::size_t made_there = 0;
  for (auto& call : calls) {
    const auto made = net.run(std::move(call));
    CHECK(made.state == zlink::spot_create_state::created);
    made_there += made.spot.node_rid == net.host(leaving).mesh("m").rid() ? 1 : 0;
  }
  CHECK(made_there == reserved_there);
}

/// A host that is about to leave, with what it still does when all its Spots have been closed and it has its lease yet.
struct leaving_host {
  explicit leaving_host(mesh& of) : net(of) {
    const auto descriptor = zlink::placement::descriptor_key("m", net.host(1).mesh("m").rid());
    net.faults(1).set_rule([this, descriptor](const store_call& call) {
      if (call.what == store_operation::read && call.touches(zlink::placement::spot_key("a")))
        return store_fault::hold_call;
      const bool leaves = call.what == store_operation::write && call.touches(descriptor) && ++published == 2;
      return leaves ? store_fault::hold_call : store_fault::none;
    });
  }
  /// The read of the row is held; it is answered behind the last close.
  void leave() {
    net.run_until([this] { return net.faults(1).held() == 1; });
    auto ending = net.host(1).shutdown();
    net.run_until([this] { return net.faults(1).held() == 2; });
    net.faults(1).set_rule({});
    net.faults(1).release();
    net.run_until_idle();
    net.faults(1).release_all();
    net.run(std::move(ending));
    CHECK(net.host(1).status().spots == 0);
  }
  mesh& net;
  int published = 0;
};

TEST_CASE("L-245 S-117 nothing comes to life on a host that has closed its Spots") {
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  leaving_host host{net};
  SUBCASE("a creation whose question had come") {
    auto call = open_room(net.host(0), "a", "1", 60s);
    host.leave();
    CHECK(failure(net, std::move(call)) == error_kind::shutting_down);
  }
  SUBCASE("a message of another host that stood in line") {
    auto own = rouse(net.host(1), "a", "own", 60s);
    net.run_until([&] { return net.faults(1).held() == 1; });
    auto call = rouse(net.host(0), "a", "1", 60s);
    net.run_until_idle();
    host.leave();
    CHECK(failure(net, std::move(own)) == error_kind::shutting_down);
    static_cast<void>(net.run(zlink::as_result(std::move(call)))); // its link may be gone before the answer
  }
  CHECK(on.count("factory a") == 0);
}

} // namespace
} // namespace creation_test
