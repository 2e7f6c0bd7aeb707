// The Spot under test: it writes down every turn that it has, and does nothing else.
#pragma once

#include "tests/e2e/node/process_log.hpp"
#include "zlink/zlink.hpp"

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
struct stroke_done {
  std::uint64_t generation = 0;
  std::string process;
  std::uint64_t tag = 0;
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
ZLINK_PACKET(stroke_done, "e2e.stroke_done", generation, process, tag)
ZLINK_PACKET(hold, "e2e.hold", unused)
ZLINK_PACKET(held, "e2e.held", unused)
ZLINK_PACKET(hail, "e2e.hail", unused)
ZLINK_PACKET(hailed, "e2e.hailed", rid)

inline constexpr const char* mesh_name = "e2e";
inline constexpr const char* ledger_type = "ledger";
inline constexpr const char* channel_name = "bells";

class ledger final : public instance_spot {
public:
  ledger(instance_spot_context context, process_log& log)
    : instance_spot(std::move(context)), log_(log), tag_(log.next_tag()) {
    log_.turns.append("n " + log_.now() + ' ' + identity() + '\n');
  }

  void configure() override {
    context().handlers().add_packet<&ledger::on_stroke>().add_packet<&ledger::on_slow>().add_packet<&ledger::on_mark>();
  }
  caf::behavior make_behavior() override {
    return {[this](const hold&) {
      held_.push_back(self()->make_response_promise<held>());
      return held_.back();
    }};
  }

private:
  stroke_done on_stroke(const stroke& m, const message_context&) {
    begin(m.sender, m.number);
    return end(m.sender, m.number);
  }
  task<stroke_done> on_slow(const slow_stroke& m, const message_context&) {
    begin(m.sender, m.number);
    auto working = context()
                     .run_cpu_worker([](std::stop_token) {
                       ::poll(nullptr, 0, 3);
                       return 0;
                     })
                     .submit();
    co_await std::move(working);
    co_return end(m.sender, m.number);
  }
  void on_mark(const mark& m, const message_context&) {
    begin(m.sender, m.number);
    end(m.sender, m.number);
  }

  void begin(const std::string& sender, std::uint64_t number) const {
    log_.turns.append("b " + log_.now() + ' ' + identity() + ' ' + sender + ' ' + std::to_string(number) + '\n');
  }
  stroke_done end(const std::string& sender, std::uint64_t number) const {
    log_.turns.append("e " + log_.now() + ' ' + identity() + ' ' + sender + ' ' + std::to_string(number) + '\n');
    return {context().object_generation(), log_.name(), tag_};
  }
  std::string identity() const {
    return context().spot_id() + ' ' + std::to_string(context().object_generation()) + ' ' + std::to_string(tag_);
  }

  process_log& log_;
  const std::uint64_t tag_;
  std::vector<caf::typed_response_promise<held>> held_;
};

/// So that the node has an Entry Spot.
class desk final : public entry_spot<> {
public:
  using entry_spot::entry_spot;
};

} // namespace zlink::test
