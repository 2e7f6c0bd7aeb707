// What is kept apart on its way, and for how long whose bytes are whose (06 sections 2, 3, 5, 9 and 10).
#include "tests/contract/relocation/room_scene.hpp"
#include "tests/contract/relocation/tampered_wire.hpp"
#include "zlink/placement/aggregates.hpp"

namespace relocation_test {
namespace {

using lines = std::vector<std::string>;
using zlink::detail::restore_request;
using zlink::testing::store_fault;
using zlink::testing::store_operation;

TEST_CASE("L-125 L-106 L-156 captured work and ticks wait in a span of their own, which nothing that arrives enters, and no batch replaces") {
  for (const bool batch_again : {false, true}) {
    CAPTURE(batch_again);
    stage on;
    barrier handler;
    barrier restore;
    tampered_wire wire;
    mesh net{{.hosts = 3, .adjust = wire.taps()}};
    const lane_scene s{net, on};
    net.run(net.host(s.from).spots().send_to_spot("a", start_clock{"tick", 100, false}).submit());
    on.during = [&](const std::string& step, const std::string&) {
      return step == "handle" ? handler.passed() : step == "restore" ? restore.passed() : zlink::task<void>::done();
    };
    auto running = count(net.host(s.from), "a", "r", 0);
    net.run_until([&] { return handler.waiting() == 1; });
    auto q1 = count(net.host(s.from), "a", "q", 1);
    net.run_until_idle();
    net.advance(150ms); // a tick is due, and waits between the two
    net.run(jot(net.host(s.from), "a", "q", 2));
    net.run_until_idle();
    // Straight to the target, from the moment when it has a queue: before there is an instance, and before any chunk.
    net.host(s.from).runtime().moving.on_step = [&](move_step step, const std::string&) {
      if (step == move_step::restore_sent)
        send_straight(net, s.from, s.to, "a", {"d", 1}, std::nullopt);
    };
    auto moving = start_move(net, "a", s.from, s.to);
    net.advance(5ms);
    on.trace.clear();
    handler.open();
    net.run_until([&] { return restore.waiting() == 1; });
    for (std::uint64_t i = 1; i <= 3; ++i)
      net.run(jot(net.host(s.from), "a", "h", i));
    send_straight(net, s.other, s.to, "a", {"d", 2}, std::nullopt);
    bool broken = false;
    wire.rule = [&](lane_record& r) {
      if (batch_again && r.command == control_command::relay && !std::exchange(broken, true))
        net.lose_links(s.from, s.to); // in the middle of the batch
      return true;
    };
    net.run_until_idle();
    CHECK(on.count("handle a q") + on.count("handle a h") + on.count("handle a d") + on.count("tick") == 0);
    restore.open();
    CHECK(net.run(std::move(moving)).left);
    CHECK(net.run(std::move(q1)).number == 1);
    CHECK(net.run(std::move(running)).number == 0);
    net.run_until([&] { return on.count("handle a d/2") == 1; });
    lines order;
    for (const auto& one : on.trace)
      if (one.starts_with("handle a ") || (one.starts_with("tick a") && order.size() < 6))
        order.push_back(one);
    CHECK(order == lines{"handle a q/1", "tick a tick", "handle a q/2", "handle a h/1", "handle a h/2", "handle a h/3", "handle a d/1", "handle a d/2"});
    CHECK(broken == batch_again);
    wire.rule = nullptr;
  }
}

TEST_CASE("L-112 with 4 permits and a thousand stored records, the host still takes what others send, and the backlog runs in order") {
  stage on;
  barrier restore;
  mesh net{{.hosts = 3, .adjust = [](std::size_t, zlink::host_options& options) { options.max_jobs = 4; }}};
  net.start(serve(on));
  std::string moved;
  std::vector<std::string> stays(2); // one at the source, one at the target
  const auto at = [&](const std::string& prefix, std::size_t host) {
    for (int i = 0;; ++i) {
      const auto id = prefix + std::to_string(i);
      net.run(rouse(net.host(2), id));
      net.run_until_idle();
      if (net.owner_of(id) == host)
        return id;
    }
  };
  moved = at("a", 0);
  stays = {at("b", 0), at("c", 1)};
  on.hold("restore", restore);
  auto moving = start_move(net, moved, 0, 1);
  net.run_until([&] { return restore.waiting() == 1; });
  constexpr std::uint64_t backlog = 1000;
  int answered = 0;
  for (std::uint64_t i = 1; i <= backlog; ++i) {
    if (i % 10 == 0) // held at the source, as a job of its host would be
      count(net.host(2), moved, "h", i).then([&](zlink::result<count_up> end) { answered += end ? 1 : 0; });
    else
      static_cast<void>(net.host(2).spots().send_to_spot(moved, note{"h", i}).submit());
    send_straight(net, 2, 1, moved, {"d", i}, std::nullopt); // stored at the target
  }
  net.advance(1s);
  for (const auto& one : stays) // stored records hold no permit
    for (std::uint64_t i = 1; i <= 20; ++i)
      CHECK(net.run(count(net.host(2), one, "x", i, 1s)).number == i);
  CHECK(on.count("handle " + moved) == 1); // its first one
  restore.open();
  CHECK(net.run(std::move(moving)).left);
  net.run_until([&] { return on.count("handle " + moved + " h/") == backlog && on.count("handle " + moved + " d/") == backlog; });
  CHECK(answered == backlog / 10);
  std::uint64_t next = 0;
  for (const auto& one : look_at(net, 2, moved).entries)
    if (one.starts_with("h/"))
      CHECK(one == "h/" + std::to_string(++next));
}

TEST_CASE("L-57 a unit that finds no boundary looks again and again; its work goes on meanwhile, and nothing is called for it") {
  stage on;
  barrier slow;
  mesh net{2};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  net.run(rouse(net.host(0), "b"));
  const auto from = net.owner_of("a");
  on.during = [&](const std::string& step, const std::string& id) { return step == "handle" && id == "b" ? slow.passed() : zlink::task<void>::done(); };
  on.acts = [](const zlink::instance_spot_context& context, const std::string& word) -> zlink::task<void> {
    if (word == "closing")
      co_return;
    auto asking = context.outbound().request_to_spot("b", count_up{"y", 1}).timeout(60s).yield<count_up>();
    static_cast<void>(co_await std::move(asking));
  };
  net.run(net.host(0).spots().send_to_spot("a", start_clock{"tick", 50, false}).submit());
  auto yielded = net.host(0).spots().request_to_spot("a", act{"yields"}).timeout(60s).submit<acted>();
  net.run_until([&] { return slow.waiting() == 1; });
  on.trace.clear();
  auto moving = start_move(net, "a", from, 1 - from, 60s);
  for (std::uint64_t i = 1; i <= 100; ++i) { // over some two thousand looks
    const auto since = net.elapsed();
    CHECK(net.run(count(net.host(1), "a", "x", i)).number == i);
    CHECK(net.elapsed() - since <= 1ms);
    net.advance(20ms);
  }
  CHECK(on.count("tick a") >= 39);
  CHECK(on.trace.size() == static_cast<std::size_t>(on.count("handle a x/") + on.count("tick a"))); // and nothing else
  slow.open();
  CHECK(net.run(std::move(moving)).left);
  static_cast<void>(net.run(std::move(yielded)));
}

TEST_CASE("L-17 a SpotWide move with members has an aggregate id of 128 random bits, and a generation") {
  stage on;
  tampered_wire wire;
  mesh net{{.hosts = 2, .adjust = wire.taps()}};
  net.start(serve_rooms(on));
  const table t{net, on, "r", {"ada", "bob"}};
  std::set<std::uint64_t> ids;
  auto at = t.home;
  for (int i = 0; i < 3; ++i, at = 1 - at) {
    std::optional<zlink::placement::aggregate_record> stands;
    net.host(1 - at).runtime().moving.on_step = [&](move_step step, const std::string&) {
      if (step != move_step::committing)
        return;
      const auto request = zlink::decode<restore_request>(wire.last(control_command::restore).body);
      stands = stored<zlink::placement::aggregate_record>(net, zlink::placement::aggregate_key({request.aggregate_high, request.aggregate_low})).record;
    };
    CHECK(net.run(start_move(net, t.room, at, 1 - at)).left);
    net.run_until([&, at] { return lives(net, 1 - at, t.room) && !lives(net, at, t.room); });
    net.run_until_idle();
    const auto request = zlink::decode<restore_request>(wire.last(control_command::restore).body);
    CHECK(request.aggregate_high != 0);
    CHECK(request.aggregate_low != 0);
    ids.insert(request.aggregate_high);
    ids.insert(request.aggregate_low);
    REQUIRE(stands);
    CHECK(stands->generation.value != 0);
    CHECK(stands->move->relocation == wire.last(control_command::restore).move);
    net.host(1 - at).runtime().moving.on_step = nullptr;
  }
  CHECK(ids.size() == 6);
}

// -- whose bytes ----------------------------------------------------------------------------------------------------------

/// Goes on using its own memory after it has given away what it captured, and reads what it gets to the last moment.
class shared_memory_adapter final : public zlink::spot_adapter<ledger> {
public:
  explicit shared_memory_adapter(zlink::bytes& mine) : mine_(mine) {}
  zlink::task<zlink::bytes> capture(ledger& from, std::stop_token) const override {
    from.on.happened("capture", from.id());
    co_return mine_;
  }
  zlink::task<void> restore(ledger& into, zlink::byte_view state, std::stop_token) const override {
    into.on.happened("restore", into.id());
    co_await into.on.wait("restore", into.id());
    const auto whole = std::ranges::all_of(state, [](std::byte one) { return one == std::byte{1}; });
    into.on.happened("restored", into.id(), whole && state.size() == 200'000 ? "whole" : "spoiled");
  }

private:
  zlink::bytes& mine_;
};

TEST_CASE("L-28 captured bytes are the layer's at once, and what Restore gets is there until its task ends") {
  stage on;
  barrier restore;
  zlink::bytes mine(200'000, std::byte{1});
  mesh net{2};
  net.start([&](zlink::host& host) {
    host.add_mesh("m").object_server().add_instance_spot_factory<ledger>("ledger", [&](auto& factory) {
      factory.preserve_state_with(shared_memory_adapter{mine}).construct_with([&](zlink::instance_spot_context context) { return std::make_unique<ledger>(std::move(context), on); });
    });
  });
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  net.host(from).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::captured)
      std::ranges::fill(mine, std::byte{2});
    if (step == move_step::restore_sent)
      zlink::bytes{}.swap(mine);
  };
  on.hold("restore", restore);
  auto moving = start_move(net, "a", from, 1 - from);
  net.run_until([&] { return restore.waiting() == 1; });
  net.advance(5s);
  restore.open();
  CHECK(net.run(std::move(moving)).left);
  net.run_until([&] { return on.count("restored a whole") == 1; });
}

} // namespace
} // namespace relocation_test
