// How state travels: in chunks that fit, within budgets, beside everybody else (06 sections 5 and 8).
#include "tests/contract/relocation/tampered_wire.hpp"

namespace relocation_test {
namespace {

/// Carries so many bytes, and finds out whether they came as they were.
class bulk_adapter final : public zlink::spot_adapter<ledger> {
public:
  explicit bulk_adapter(std::size_t size) : size_(size) {}
  zlink::task<zlink::bytes> capture(ledger& from, std::stop_token) const override {
    from.on.happened("capture", from.id());
    co_return zlink::bytes(size_, std::byte{42});
  }
  zlink::task<void> restore(ledger& into, zlink::byte_view state, std::stop_token) const override {
    into.on.happened("restore", into.id(), state.size() == size_ && state.back() == std::byte{42} ? "whole" : "spoiled");
    co_return;
  }

private:
  std::size_t size_;
};
auto serve_bulk(stage& on, std::size_t size) {
  return [&on, size](zlink::host& host) {
    host.add_mesh("m").object_server().add_instance_spot_factory<ledger>("ledger", [&](auto& factory) {
      factory.preserve_state_with(bulk_adapter{size}).construct_with([&on](zlink::instance_spot_context context) { return std::make_unique<ledger>(std::move(context), on); });
    });
  };
}

/// Bytes of chunks that a source has sent and no target has taken. Outlives the mesh, as the wire that it listens to does.
struct flow {
  explicit flow(tampered_wire& wire) {
    wire.rule = [this](lane_record& r) {
      if (r.command == control_command::restore_chunk) {
        const auto chunk = zlink::detail::decode_chunk(r.body);
        largest = std::max(largest, chunk.content.size());
        sent[r.move] += chunk.content.size();
        ++chunks;
      } else if (r.command == control_command::chunks_taken) {
        ++reports;
        if (lose_reports)
          return false;
        taken[r.move] = zlink::decode<zlink::detail::chunks_taken>(r.body).bytes;
      } else if (r.command == control_command::restore) {
        begun.insert(r.move);
      }
      most = std::max(most, under_way());
      return true;
    };
  }
  std::uint64_t under_way() const {
    std::uint64_t all = 0;
    for (const auto& one : sent) {
      const auto back = taken.find(one.first);
      all += one.second - (back == taken.end() ? 0 : back->second);
    }
    return all;
  }
  std::map<zlink::detail::unique_id, std::uint64_t> sent;
  std::map<zlink::detail::unique_id, std::uint64_t> taken;
  std::set<zlink::detail::unique_id> begun;
  std::uint64_t most = 0;
  std::size_t largest = 0;
  std::size_t chunks = 0;
  std::size_t reports = 0;
  bool lose_reports = false;
};

std::string node_name_of(mesh& net, std::size_t host) { return net.host(host).runtime().find_node("m")->identity.node_rid; }
/// Spots of host 0, as many as wanted.
std::vector<std::string> bulk_spots(mesh& net, std::size_t wanted) {
  std::vector<std::string> found;
  for (int i = 0; found.size() < wanted; ++i) {
    const auto id = "s" + std::to_string(i);
    net.run(rouse(net.host(0), id));
    if (net.owner_of(id) == 0)
      found.push_back(id);
  }
  net.run_until_idle();
  return found;
}
auto budgets(std::uint64_t per_peer, std::uint64_t per_node, std::uint32_t chunk = 256 * 1024) {
  return [=](std::size_t, zlink::host_options& options) {
    options.relocation_in_flight_bytes = per_peer;
    options.relocation_node_in_flight_bytes = per_node;
    options.relocation_chunk_bytes = chunk;
  };
}
auto with(tampered_wire& wire, std::function<void(std::size_t, zlink::host_options&)> more) {
  return [taps = wire.taps(), more](std::size_t host, zlink::host_options& options) mutable {
    more(host, options);
    taps(host, options);
  };
}

TEST_CASE("L-93 L-27 64 MiB of state by a budget of 16 MiB: it moves, and the budget holds") {
  stage on;
  tampered_wire wire;
  flow flow{wire};
  mesh net{{.hosts = 2, .max_link_delay = 1ms, .adjust = with(wire, budgets(16U << 20, 0))}};
  net.start(serve_bulk(on, 64U << 20));
  net.run(rouse(net.host(0), "a"));
  const auto from = net.owner_of("a");
  CHECK(net.run(start_move(net, "a", from, 1 - from, 120s)).left);
  net.run_until([&] { return lives(net, 1 - from, "a"); });
  CHECK(on.count("restore a whole") == 1);
  CHECK(flow.most <= (16U << 20));
  CHECK(flow.sent.begin()->second > (64U << 20));
  wire.rule = nullptr;
}

TEST_CASE("L-93 many units at once stay within both budgets, to each peer and of the node, and all of them move") {
  for (const auto& limits : std::vector<std::pair<std::uint64_t, std::uint64_t>>{{200'000, 0}, {0, 150'000}, {200'000, 300'000}, {10'000, 0}, {0, 5'000}}) {
    CAPTURE(limits.first);
    CAPTURE(limits.second);
    stage on;
    tampered_wire wire;
    flow flow{wire};
    mesh net{{.hosts = 3, .max_link_delay = 2ms, .adjust = with(wire, budgets(limits.first, limits.second))}};
    net.start(serve_bulk(on, 150'000));
    std::vector<zlink::task<zlink::detail::unit_end>> moves;
    const auto spots = bulk_spots(net, 10);
    for (std::size_t i = 0; i < spots.size(); ++i)
      moves.push_back(start_move(net, spots[i], 0, 1 + i % 2, 120s));
    for (auto& one : moves)
      CHECK(net.run(std::move(one)).left);
    net.run_until([&] { return on.count("restore") == 10; });
    CHECK(flow.most <= (limits.second != 0 ? limits.second : 2 * limits.first)); // two peers
    if (limits.first != 0)
      CHECK(flow.largest <= limits.first);
    wire.rule = nullptr;
  }
}

TEST_CASE("L-92 a chunk is as large as the least of the setting, the frames of both ends and the budgets allow") {
  struct limits {
    std::uint32_t chunk;
    std::uint64_t frame;
    std::uint64_t per_peer;
    std::uint64_t per_node;
    std::size_t least; ///< of what it may be
    std::size_t most;
  };
  for (const auto& given : {limits{2'000, 0, 16U << 20, 0, 2'000, 2'000}, limits{64 * 1024, 5'000, 16U << 20, 0, 4'000, 5'000},
                            limits{64 * 1024, 0, 7'000, 0, 7'000, 7'000}, limits{64 * 1024, 0, 7'000, 3'000, 3'000, 3'000},
                            limits{1'024, 5'000, 7'000, 3'000, 1'024, 1'024}}) {
    CAPTURE(given.most);
    stage on;
    tampered_wire wire;
    flow flow{wire};
    wire.frame_limit = given.frame;
    mesh net{{.hosts = 2, .adjust = with(wire, budgets(given.per_peer, given.per_node, given.chunk))}};
    net.start(serve_bulk(on, 40'000));
    const auto spots = bulk_spots(net, 1);
    CHECK(net.run(start_move(net, spots[0], 0, 1)).left);
    net.run_until([&] { return on.count("restore " + spots[0] + " whole") == 1; });
    CHECK(flow.largest >= given.least);
    CHECK(flow.largest <= given.most);
    wire.rule = nullptr;
  }
}

TEST_CASE("L-56 a unit that finds the budgets full is not sealed: it runs messages and timers until there is room") {
  stage on;
  tampered_wire wire;
  flow flow{wire};
  mesh net{{.hosts = 2, .adjust = with(wire, budgets(100'000, 0))}};
  net.start(serve_bulk(on, 300'000));
  const auto spots = bulk_spots(net, 2);
  net.run(net.host(0).spots().send_to_spot(spots[1], start_clock{"tick", 100, false}).submit());
  net.run_until_idle();
  flow.lose_reports = true; // the target takes chunks, and its reports do not arrive
  auto first = start_move(net, spots[0], 0, 1, 5s);
  net.advance(100ms);
  CHECK(flow.chunks >= 1);
  CHECK(flow.under_way() > 100'000 - 64 * 1024); // no room for another one
  std::vector<move_step> seen;
  net.host(0).runtime().moving.on_step = [&](move_step step, const std::string& id) {
    if (id == spots[1])
      seen.push_back(step);
  };
  auto second = start_move(net, spots[1], 0, 1, 60s);
  const auto ticks = on.count("tick " + spots[1]);
  for (std::uint64_t i = 1; i <= 20; ++i) {
    CHECK(net.run(count(net.host(1), spots[1], "x", i, 1s)).number == i);
    net.advance(100ms);
  }
  CHECK(on.count("tick " + spots[1]) >= ticks + 20);
  CHECK(on.count("capture " + spots[1]) == 0);
  CHECK(std::ranges::count(seen, move_step::sealed) == 0);
  CHECK(!second.ready());
  CHECK(!net.run(std::move(first)).left); // its time is over; its bytes are void
  flow.lose_reports = false;
  CHECK(net.run(std::move(second)).left);
  net.run_until([&] { return lives(net, 1, spots[1]) && !lives(net, 0, spots[1]); });
  wire.rule = nullptr;
}

TEST_CASE("L-56 L-48 one that finds no room until its deadline does not start") {
  stage on;
  tampered_wire wire;
  flow flow{wire};
  mesh net{{.hosts = 2, .adjust = with(wire, budgets(100'000, 0))}};
  net.start(serve_bulk(on, 300'000));
  const auto spots = bulk_spots(net, 2);
  flow.lose_reports = true;
  auto first = start_move(net, spots[0], 0, 1, 10s);
  net.advance(100ms);
  const auto end = net.run(start_move(net, spots[1], 0, 1, 2s));
  CHECK(!end.left);
  CHECK(end.reason == relocate_reason::deadline_exceeded);
  CHECK(on.count("capture " + spots[1]) == 0);
  CHECK(net.run(count(net.host(1), spots[1], "x", 1)).number == 1);
  CHECK(!row_of(net, spots[1])->move);
  CHECK(!net.run(std::move(first)).left);
  wire.rule = nullptr;
}

TEST_CASE("L-94 reports that are lost stall the chunks and accept nothing; one that comes late is enough for the same result") {
  stage on;
  tampered_wire wire;
  flow flow{wire};
  mesh net{{.hosts = 2, .adjust = wire.taps()}};
  net.start(serve_bulk(on, 1'000'000));
  const auto spots = bulk_spots(net, 1);
  flow.lose_reports = true;
  auto moving = start_move(net, spots[0], 0, 1, 60s);
  net.advance(5s);
  const auto stalled_at = flow.chunks;
  CHECK(stalled_at >= 1);
  CHECK(flow.sent.begin()->second < 1'000'000);
  net.advance(5s);
  CHECK(flow.chunks == stalled_at);
  CHECK(on.count("restore") == 0);
  CHECK(!moving.ready());
  CHECK(row_of(net, spots[0])->node.node_rid == node_name_of(net, 0));
  flow.lose_reports = false;
  forge(net, 1, 0, wire.last(control_command::chunks_taken));
  CHECK(net.run(std::move(moving)).left);
  net.run_until([&] { return lives(net, 1, spots[0]); });
  CHECK(on.count("restore " + spots[0] + " whole") == 1);
  wire.rule = nullptr;
}

TEST_CASE("L-95 between the chunks of a large state the messages of others pass, by the same connection") {
  stage on;
  tampered_wire wire;
  flow flow{wire};
  mesh net{{.hosts = 2, .max_link_delay = 1ms, .adjust = wire.taps()}};
  net.start(serve_bulk(on, 64U << 20));
  const auto spots = bulk_spots(net, 1);
  std::string other;
  for (int i = 0; other.empty(); ++i) {
    const auto id = "o" + std::to_string(i);
    net.run(rouse(net.host(0), id));
    if (net.owner_of(id) == 1)
      other = id;
  }
  auto moving = start_move(net, spots[0], 0, 1, 120s);
  net.run_until([&] { return flow.chunks > 0; });
  std::uint64_t asked = 0;
  std::size_t most_ahead = 0;
  while (!moving.ready() && asked < 100) {
    const auto before = flow.chunks;
    const auto since = net.elapsed();
    CHECK(net.run(count(net.host(0), other, "x", ++asked, 1s)).number == asked);
    CHECK(net.elapsed() - since < 50ms);
    most_ahead = std::max(most_ahead, flow.chunks - before);
  }
  CHECK(asked == 100); // while it was under way
  CHECK(most_ahead * 64 * 1024 <= (1U << 20)); // of 64 MiB
  CHECK(net.run(std::move(moving)).left);
  wire.rule = nullptr;
}

} // namespace
} // namespace relocation_test
