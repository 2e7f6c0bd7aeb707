// Rooms with walkers in them, and the Entry Spot where walkers begin; all have clocks, and write down every turn.
#pragma once

#include "tests/e2e/node/ledger.hpp"

#include <chrono>
#include <string>
#include <utility>

namespace zlink::test {

/// To a walker: goes into that room, or stays where it is for "-"; its clock begins.
struct set_out {
  std::string room;
};
ZLINK_PACKET(set_out, "e2e.set_out", room)

inline constexpr const char* room_type = "room";
inline constexpr const char* club_type = "club";
inline constexpr const char* walker_type = "walker";
inline constexpr const char* clock_name = "clock"; ///< of the sender that a tick counts as
inline constexpr std::chrono::milliseconds clock_period{50};

class walker final : public actor {
public:
  walker(actor_context made, process_log& log)
    : actor(std::move(made)), notes(log, context().actor_id(), context().object_generation()) {}
  void on_clock(const timer_tick& tick) { notes.whole_turn(clock_name, tick.delivery_index); }

  diary notes;
};
using walker_adapter = diary_adapter<actor_adapter<walker>, walker>;

/// What walkers are served by, wherever they are.
template <class Base>
class walked : public Base {
public:
  using Base::Base;

  void configure() override {
    this->context()
      .handlers()
      .template add_actor_handler<&walked::on_walker_stroke>()
      .template add_actor_handler<&walked::on_walker_mark>()
      .template add_actor_handler<&walked::on_walker_tell>()
      .template add_actor_handler<&walked::on_set_out>();
  }
  task<void> on_joined_actor(walker&) override { co_return; }
  task<void> on_leave_actor(walker&) override { co_return; }

private:
  stroke_done on_walker_stroke(walker& who, const message_context&, const stroke& m) {
    return who.notes.whole_turn(m.sender, m.number);
  }
  void on_walker_mark(walker& who, const message_context&, const mark& m) { who.notes.whole_turn(m.sender, m.number); }
  tally on_walker_tell(walker& who, const message_context&, const tell&) { return who.notes.kept; }
  task<held> on_set_out(walker& who, const message_context&, const set_out& m) {
    co_await who.context().template add_timer<&walker::on_clock>(clock_name, clock_period);
    if (m.room != "-")
      who.context().join_spot(m.room).defer();
    co_return held{};
  }
};

class desk final : public walked<entry_spot<walker>> {
public:
  using walked::walked;
};

class room final : public walked<spot<walker>> {
public:
  room(spot_context made, process_log& log)
    : walked(std::move(made)), notes(log, context().spot_id(), context().object_generation()) {}

  void configure() override {
    walked::configure();
    context().handlers().add_packet<&room::on_stroke>().add_packet<&room::on_mark>().add_packet<&room::on_tell>();
  }
  task<void> on_initialize() override { co_await context().add_timer<&room::on_clock>(clock_name, clock_period); }
  task<actor_join_response> on_actor_join(std::string, const message&) override { co_return accept(); }

  diary notes;

private:
  stroke_done on_stroke(const stroke& m, const message_context&) { return notes.whole_turn(m.sender, m.number); }
  void on_mark(const mark& m, const message_context&) { notes.whole_turn(m.sender, m.number); }
  tally on_tell(const tell&, const message_context&) const { return notes.kept; }
  void on_clock(const timer_tick& tick) { notes.whole_turn(clock_name, tick.delivery_index); }
};
using room_adapter = diary_adapter<spot_adapter<room>, room>;

/// A PerActor room: its members have gates of their own, and it keeps nothing when it moves (L-25).
class club final : public walked<spot<walker>> {
public:
  club(spot_context made, process_log& log)
    : walked(std::move(made)), notes(log, context().spot_id(), context().object_generation()) {}

  void configure() override {
    walked::configure();
    context().handlers().add_packet<&club::on_stroke>().add_packet<&club::on_mark>();
  }
  task<actor_join_response> on_actor_join(std::string, const message&) override { co_return accept(); }

  diary notes;

private:
  stroke_done on_stroke(const stroke& m, const message_context&) { return notes.whole_turn(m.sender, m.number); }
  void on_mark(const mark& m, const message_context&) { notes.whole_turn(m.sender, m.number); }
};

} // namespace zlink::test
