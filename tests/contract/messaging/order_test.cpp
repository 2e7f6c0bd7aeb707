// What one origin sends to one Spot runs in the order in which it was sent, through resolving, waking, waiting for room,
// closing and rebirth, whatever the delays (03 section 19, D-7).
#include "tests/sim/checkers.hpp"

#include <doctest/doctest.h>
#include <zlink/testing/mesh.hpp>
#include <zlink/zlink.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace zlink::test::order {
namespace {

using namespace std::chrono_literals;
using testing::mesh;

struct numbered {
  std::string origin;
  std::uint64_t number = 0;
};
struct leave {
  int unused = 0;
};
struct counted {
  std::uint64_t number = 0;
};
ZLINK_PACKET(numbered, "order.numbered", origin, number)
ZLINK_PACKET(leave, "order.leave", unused)
ZLINK_PACKET(counted, "order.counted", number)

/// Outlives the mesh.
struct evidence {
  sender_order order;
  at_most_once once;
  single_owner owner;
  std::map<std::string, std::vector<std::uint64_t>> runs; ///< numbers by origin and Spot
  int incarnations = 0;
};

class target final : public instance_spot {
public:
  target(instance_spot_context context, evidence& log) : instance_spot(std::move(context)), log_(log) {
    ++log_.incarnations;
  }
  void configure() override {
    context().handlers().add_packet<&target::on_numbered>().add_packet<&target::on_leave>();
  }

private:
  task<counted> on_numbered(const numbered& m, const message_context&) {
    log_.order.ran(m.origin, context().spot_id(), m.number);
    log_.owner.ran(context().spot_id(), "incarnation " + std::to_string(context().object_generation()));
    log_.once.ran(m.origin + " to " + context().spot_id() + " number " + std::to_string(m.number));
    log_.runs[m.origin + " to " + context().spot_id()].push_back(m.number);
    if (m.number % 3 == 0) { // now and then the Spot is busy, and its queue fills
      auto pause = context().run_cpu_worker([](std::stop_token) { return 1; });
      co_await pause.submit();
    }
    co_return counted{m.number};
  }
  task<void> on_leave(const leave&, const message_context&) { co_await context().close(); }

  evidence& log_;
};

auto serve(evidence& log, std::chrono::milliseconds idle) {
  return [&log, idle](host& started) {
    auto& node = started.add_mesh("m");
    node.instance_spot_idle_timeout(idle);
    node.object_server().add_instance_spot_factory<target>("target", [&log](auto& factory) {
      factory.disable_relocation().construct_with(
        [&log](instance_spot_context context) { return std::make_unique<target>(std::move(context), log); });
    });
  };
}

/// Callers outside of Spots, one for each host, that number what they send to each id.
class senders {
public:
  explicit senders(mesh& net) : net_(net) {}

  void send(std::size_t from, const std::string& id) {
    auto call = net_.host(from).spots().send_to_spot(id, next(from, id));
    sends_.push_back(call.instance_spot("target").submit());
  }
  void request(std::size_t from, const std::string& id) {
    auto call = net_.host(from).spots().request_to_spot(id, next(from, id));
    requests_.push_back(call.instance_spot("target").timeout(5s).submit<counted>());
    ++requested_;
  }
  /// Every call has its end; how many ended well.
  std::size_t end_all() {
    std::size_t well = 0;
    for (auto& one : std::exchange(requests_, {}))
      well += net_.run(as_result(std::move(one))).has_value() ? 1 : 0;
    for (auto& one : std::exchange(sends_, {}))
      static_cast<void>(net_.run(as_result(std::move(one))));
    net_.run_until_idle();
    return well;
  }
  std::uint64_t sent(std::size_t from, const std::string& id) { return numbers_[name(from) + " to " + id]; }
  std::size_t requests() const noexcept { return requested_; }
  static std::string name(std::size_t from) { return "host " + std::to_string(from); }

private:
  numbered next(std::size_t from, const std::string& id) {
    return {name(from), ++numbers_[name(from) + " to " + id]};
  }

  mesh& net_;
  std::map<std::string, std::uint64_t> numbers_;
  std::vector<task<void>> sends_;
  std::vector<task<counted>> requests_;
  std::size_t requested_ = 0;
};

std::string first_of(const checker& watched) {
  return watched.broken().empty() ? std::string{} : watched.broken().front();
}

testing::mesh_options options(std::uint64_t seed, std::uint32_t lane_records) {
  return {.hosts = 3,
          .seed = seed,
          .max_link_delay = 8ms,
          .max_store_delay = 6ms,
          .adjust = [lane_records](std::size_t, host_options& o) { o.application_lane_records = lane_records; }};
}

TEST_CASE("M-148 M-149 D-7 C-100 the first messages of one origin go to one node: all run, in order, in one incarnation") {
  for (std::uint64_t seed = 1; seed <= 700; ++seed) {
    evidence log;
    mesh net{options(seed, 1024)};
    INFO("seed ", net.seed());
    net.start(serve(log, 0ms)); // every node may be chosen
    senders all{net};
    const std::size_t from = seed % 3;
    std::uint64_t sent = 0;
    for (int burst = 0; burst < 4; ++burst) {
      for (int i = 0; i < 4; ++i, ++sent)
        i == 2 ? all.request(from, "cold") : all.send(from, "cold");
      net.advance(std::chrono::milliseconds{seed % 7});
    }
    CHECK(all.end_all() == all.requests());
    const auto& runs = log.runs[senders::name(from) + " to cold"];
    REQUIRE(runs.size() == sent);
    CHECK(std::ranges::is_sorted(runs));
    CHECK(log.incarnations == 1);
  }
}

TEST_CASE("M-148 M-149 M-5 three origins, Spots that fall idle and come back elsewhere, full queues: order holds") {
  std::size_t fed = 0;
  int incarnations = 0;
  for (std::uint64_t seed = 1; seed <= 700; ++seed) {
    evidence log;
    mesh net{options(seed, 3)};
    INFO("seed ", net.seed());
    net.start(serve(log, 500ms)); // longer than an activation: one that loses is over before the winner is evicted
    senders all{net};
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 18; ++i) {
        const auto from = (seed + static_cast<std::uint64_t>(i * i)) % 3;
        const std::string id = (seed >> (i % 5)) % 2 == 0 ? "a" : "b";
        i % 4 == 1 ? all.request(from, id) : all.send(from, id);
        if (i % 6 == static_cast<int>(seed % 6))
          net.advance(std::chrono::milliseconds{seed % 11});
      }
      all.end_all();
      net.advance(seed % 2 == 0 ? 1500ms : 5ms); // long enough to be evicted, or not
    }
    all.end_all();
    CHECK(first_of(log.order) == "");
    CHECK(first_of(log.once) == "");
    CHECK(first_of(log.owner) == "");
    fed += log.order.fed();
    incarnations += log.incarnations;
  }
  CHECK(fed > 10'000);
  CHECK(incarnations > 1'000);
}

TEST_CASE("C-117 M-148 a Spot that closes again and again while its callers go on: nothing of theirs is overtaken or lost") {
  std::size_t closings = 0;
  for (std::uint64_t seed = 1; seed <= 700; ++seed) {
    evidence log;
    mesh net{options(seed, 3)};
    INFO("seed ", net.seed());
    net.start(serve(log, 0ms));
    senders all{net};
    all.request(0, "c");
    all.end_all();
    const auto owner = net.owner_of("c");
    for (int i = 0; i < 30; ++i) {
      // The owner's own callers: what they send takes one way only, whatever becomes of the Spot meanwhile.
      i % 5 == 2 ? all.request(owner, "c") : all.send(owner, "c");
      if (i % 7 == static_cast<int>(seed % 7))
        net.host(owner).spots().send_to_spot("c", leave{}).submit();
      if (i % 4 == static_cast<int>(seed % 4))
        net.advance(std::chrono::milliseconds{seed % 9});
    }
    all.end_all();
    net.advance(1s); // a close may have to wait before it tries the store again
    CHECK(first_of(log.order) == "");
    CHECK(first_of(log.once) == "");
    CHECK(first_of(log.owner) == "");
    CHECK(log.runs[senders::name(owner) + " to c"].size() == all.sent(owner, "c"));
    closings += static_cast<std::size_t>(log.incarnations) - 1;
  }
  CHECK(closings > 700);
}

} // namespace
} // namespace zlink::test::order
