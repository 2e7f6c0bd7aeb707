// What came of it: where each match was and when, how long nobody could play, and whether anything is missing.
#pragma once

#include "crowd.hpp"

#include <string>
#include <vector>

struct outcome {
  std::vector<match_report> matches; ///< in the crowd's order
  std::vector<player_report> players;
};

/// Asks every match and every player.
outcome ask_all(crowd& all);

/// Who owned which match when: a line for each, a letter for each node.
void print_owners(const crowd& all, const outcome& seen);
/// Every move, and the pause that it made.
void print_pauses(const crowd& all, const outcome& seen);
/// What is wrong, in words; nothing if all is well.
std::vector<std::string> findings(const crowd& all, const outcome& seen);
