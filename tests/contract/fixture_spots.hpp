// The Spot with which the fixture tests itself, and what its handlers leave behind.
#pragma once

#include "tests/sim/checkers.hpp"

#include <doctest/doctest.h>
#include <zlink/testing/mesh.hpp>
#include <zlink/zlink.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fixture_test {

using namespace std::chrono_literals;
using zlink::testing::mesh;

struct add {
  int by = 1;
  std::string from = {};
  std::uint64_t number = 0;
};
struct sum {
  int value = 0;
};
struct compute {
  int of = 0;
};
ZLINK_PACKET(add, "fixture.add", by, from, number)
ZLINK_PACKET(sum, "fixture.sum", value)
ZLINK_PACKET(compute, "fixture.compute", of)

/// What handlers leave behind for the test. Outlives the mesh.
struct evidence {
  std::vector<std::string> runs;
  zlink::test::exclusive_gates gates;
  zlink::test::sender_order order;
  zlink::test::single_owner owner;
  int incarnations = 0;
  int alive = 0;
  int ticks = 0;

  bool clean() const { return gates.broken().empty() && order.broken().empty() && owner.broken().empty(); }
};

class adder final : public zlink::instance_spot {
public:
  adder(zlink::instance_spot_context context, evidence& log)
    : instance_spot(std::move(context)), log_(log), name_("incarnation " + std::to_string(++log.incarnations)) {
    ++log_.alive;
  }
  ~adder() override { --log_.alive; }

  void configure() override { context().handlers().add_packet<&adder::on_add>().add_packet<&adder::on_compute>(); }
  zlink::task<void> on_initialize() override { co_await context().add_timer<&adder::on_tick>("tick", 60s); }

private:
  sum on_add(const add& m, const zlink::message_context&) {
    const auto inside = log_.gates.enter(context().spot_id() + " of " + name_);
    log_.owner.ran(context().spot_id(), name_);
    if (!m.from.empty()) {
      log_.order.ran(m.from, context().spot_id(), m.number);
      log_.runs.push_back(m.from + " " + std::to_string(m.number));
    }
    value_ += m.by;
    return sum{value_};
  }
  zlink::task<sum> on_compute(const compute& m, const zlink::message_context&) {
    const auto inside = log_.gates.enter(context().spot_id() + " of " + name_);
    auto work = context().run_cpu_worker([of = m.of](std::stop_token) { return of * of; });
    const int square = co_await work.submit();
    co_return sum{square};
  }
  void on_tick(const zlink::timer_tick&) { ++log_.ticks; }

  evidence& log_;
  std::string name_;
  int value_ = 0;
};

inline auto serve(evidence& log) {
  return [&log](zlink::host& host) {
    host.add_mesh("m").object_server().add_instance_spot_factory<adder>("adder", [&log](auto& factory) {
      factory.disable_relocation().construct_with(
        [&log](zlink::instance_spot_context context) { return std::make_unique<adder>(std::move(context), log); });
    });
  };
}

inline zlink::task<sum> add_at(zlink::host& host, int by, std::chrono::seconds limit = 5s, std::string id = "c") {
  return host.spots().request_to_spot(std::move(id), add{by}).instance_spot("adder").timeout(limit).submit<sum>();
}

inline zlink::error_kind failure_of(const zlink::result<sum>& outcome) {
  REQUIRE_FALSE(outcome.has_value());
  return outcome.error().kind();
}

} // namespace fixture_test
