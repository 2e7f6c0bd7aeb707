// The match, its players, and what of them travels when they move to another node.
#pragma once

#include "match_packets.hpp"

#include <cstdint>
#include <string>
#include <vector>

/// What a player takes along.
struct player_state {
  std::uint64_t moves = 0;
  std::uint64_t points = 0;
};
ZLINK_PACKET(player_state, "match_room.player_state", moves, points)

/// Belongs to one person, wherever that person plays.
class player final : public zlink::actor {
public:
  static constexpr const char* type = "player";
  using actor::actor;

  player_state state;

  zlink::task<void> on_join_completed(const zlink::join_completion& join) override;
};

/// What a match takes along: what is over. Nothing of a round that is under way is in here, because none ever is then.
struct match_state {
  std::uint64_t rounds = 0;
  std::uint64_t points = 0;
  std::uint64_t interrupted = 0; ///< moves of this match that fell into a round; 0, or the layer has a bug
  std::int64_t last_handler = 0; ///< when it ended
  std::vector<stay> stays;
};
ZLINK_PACKET(match_state, "match_room.match_state", rounds, points, interrupted, last_handler, stays)

/// A SpotWide User Spot that says itself when it may move: between two rounds.
class match final : public zlink::spot<player> {
public:
  static constexpr const char* type = "match";
  using spot::spot;

  void configure() override;
  zlink::task<void> on_initialize() override;
  zlink::task<zlink::spot_create_response> on_create(const zlink::message& request) override;
  zlink::task<void> on_joined_actor(player& who) override;
  zlink::task<void> on_leave_actor(player& who) override;
  zlink::task<void> on_relocation_ready_completed(const zlink::spot_relocation_ready_completion& completion) override;

private:
  friend class match_adapter;
  class handled;

  moved on_move(player& who, const zlink::message_context& context, const make_move& m);
  player_report on_ask_player(player& who, const zlink::message_context& context, const ask_player& m);
  match_report on_ask(const ask_match& m, const zlink::message_context& context);
  void on_bell(const zlink::timer_tick& tick);
  void begin_round();
  void arrive();

  match_state state_;
  // The round under way, which lives in this object only: a move in the middle of it would lose it.
  bool playing_ = false;
  std::uint64_t round_points_ = 0;
  bool arrived_ = false; ///< by a move, and no handler has run yet
};

class match_adapter final : public zlink::spot_adapter<match> {
public:
  zlink::task<zlink::bytes> capture(match& from, std::stop_token cancel) const override;
  zlink::task<void> restore(match& into, zlink::byte_view state, std::stop_token cancel) const override;
};

class player_adapter final : public zlink::actor_adapter<player> {
public:
  zlink::task<zlink::bytes> capture(player& from, std::stop_token cancel) const override;
  zlink::task<void> restore(player& into, zlink::byte_view state, std::stop_token cancel) const override;
};

/// The Entry Spot: players come into being here and wait for a match.
class lobby final : public zlink::entry_spot<player> {
public:
  using entry_spot::entry_spot;

  void configure() override;
  zlink::task<void> on_joined_actor(player& who) override;
  zlink::task<void> on_leave_actor(player& who) override;

private:
  void on_enter(player& who, const zlink::message_context& context, const enter& m);
  player_report on_ask_player(player& who, const zlink::message_context& context, const ask_player& m);
};

/// Lets a node hold matches and players.
void serve_matches(zlink::mesh_node& node);
