// What players and matches are asked, and what they tell.
#pragma once

#include <zlink/zlink.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// To a player: go and play there.
struct enter {
  std::string match;
};

/// To a player: your move. Numbered, so that asking again after a failed call does no harm.
struct make_move {
  std::uint64_t number = 0; ///< of this player's moves, from 1 on
};
struct moved {
  std::uint64_t moves = 0; ///< of this player, this one included
};

/// What a move brings, known to whoever knows its number: so everybody can count for himself, and compare.
inline std::uint64_t worth_of(std::uint64_t number) { return 1 + number * number % 7; }

/// To a player: what do you have, and where are you?
struct ask_player {};
struct player_report {
  std::uint64_t moves = 0;
  std::uint64_t points = 0;
  std::string spot; ///< the match, or a lobby
  std::string node;
};

/// A match was at home on that node for so long. Times are nanoseconds since the machine's boot, which all its processes share.
struct stay {
  std::string node;
  std::int64_t since = 0;
  std::uint64_t after_round = 0; ///< the match came when so many were over
  std::uint64_t players = 0;     ///< who came along
  std::int64_t pause = 0;        ///< from the end of its last handler on the node before to its first one here
};

/// To a match: tell everything.
struct ask_match {};
struct match_report {
  std::string node;
  std::uint64_t rounds = 0;
  std::uint64_t points = 0; ///< of all rounds, the one under way included
  std::uint64_t interrupted = 0;
  std::vector<std::string> players;
  std::vector<stay> stays; ///< since the match began
};

/// To a node: what are you doing?
struct ask_node {};
struct node_report {
  std::uint64_t version = 0;
  std::string state;
  bool safe_to_stop = false; ///< it is empty, and nothing comes for it any more
  std::uint64_t matches = 0;
  std::uint64_t players = 0;
};

/// To a node: hand over everything you have.
struct leave_node {
  std::uint64_t to_version = 0; ///< 0: to other nodes of your version
  std::uint64_t seconds = 30;   ///< it may take
};
struct node_left {
  bool relocated = false;
  std::string reason;
};

ZLINK_PACKET(enter, "match_room.enter", match)
ZLINK_PACKET(make_move, "match_room.make_move", number)
ZLINK_PACKET(moved, "match_room.moved", moves)
ZLINK_PACKET(ask_player, "match_room.ask_player")
ZLINK_PACKET(player_report, "match_room.player_report", moves, points, spot, node)
ZLINK_PACKET(stay, "match_room.stay", node, since, after_round, players, pause)
ZLINK_PACKET(ask_match, "match_room.ask_match")
ZLINK_PACKET(match_report, "match_room.match_report", node, rounds, points, interrupted, players, stays)
ZLINK_PACKET(ask_node, "match_room.ask_node")
ZLINK_PACKET(node_report, "match_room.node_report", version, state, safe_to_stop, matches, players)
ZLINK_PACKET(leave_node, "match_room.leave_node", to_version, seconds)
ZLINK_PACKET(node_left, "match_room.node_left", relocated, reason)
