// The Spot under test: it writes down every turn that it has, and does nothing else.
#pragma once

#include "tests/e2e/node/diary.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/response_promise.hpp>
#include <caf/typed_response_promise.hpp>

#include <poll.h>

#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace zlink::test {

/// A request that is answered at once, one whose turn waits for a worker, and a one-way message.
struct stroke {
  std::string sender;
  std::uint64_t number = 0;
};
struct slow_stroke {
  std::string sender;
  std::uint64_t number = 0;
};
struct mark {
  std::string sender;
  std::uint64_t number = 0;
};
/// Asks for the `tally`.
struct tell {
  int unused = 0;
};
/// A request that is never answered.
struct hold {
  int unused = 0;
};
struct held {
  int unused = 0;
};
/// To a node, and to a channel.
struct hail {
  int unused = 0;
};
struct hailed {
  std::string rid;
};

ZLINK_PACKET(stroke, "e2e.stroke", sender, number)
ZLINK_PACKET(slow_stroke, "e2e.slow_stroke", sender, number)
ZLINK_PACKET(mark, "e2e.mark", sender, number)
ZLINK_PACKET(tell, "e2e.tell", unused)
ZLINK_PACKET(hold, "e2e.hold", unused)
ZLINK_PACKET(held, "e2e.held", unused)
ZLINK_PACKET(hail, "e2e.hail", unused)
ZLINK_PACKET(hailed, "e2e.hailed", rid)

inline constexpr const char* mesh_name = "e2e";
inline constexpr const char* ledger_type = "ledger";
inline constexpr const char* channel_name = "bells";

class ledger final : public instance_spot {
public:
  ledger(instance_spot_context made, process_log& log)
    : instance_spot(std::move(made)), notes(log, context().spot_id(), context().object_generation()) {}

  void configure() override {
    context()
      .handlers()
      .add_packet<&ledger::on_stroke>()
      .add_packet<&ledger::on_slow>()
      .add_packet<&ledger::on_mark>()
      .add_packet<&ledger::on_tell>();
  }
  caf::behavior make_behavior() override {
    return {[this](const hold&) {
      held_.push_back(self()->make_response_promise<held>());
      return held_.back();
    }};
  }

  diary notes;

private:
  stroke_done on_stroke(const stroke& m, const message_context&) { return notes.whole_turn(m.sender, m.number); }
  task<stroke_done> on_slow(const slow_stroke& m, const message_context&) {
    notes.begin(m.sender, m.number);
    auto working = context()
                     .run_cpu_worker([](std::stop_token) {
                       ::poll(nullptr, 0, 3);
                       return 0;
                     })
                     .submit();
    co_await std::move(working);
    co_return notes.end(m.sender, m.number);
  }
  void on_mark(const mark& m, const message_context&) { notes.whole_turn(m.sender, m.number); }
  tally on_tell(const tell&, const message_context&) const { return notes.kept; }

  std::vector<caf::typed_response_promise<held>> held_;
};
using ledger_adapter = diary_adapter<spot_adapter<ledger>, ledger>;

} // namespace zlink::test
