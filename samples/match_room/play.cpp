#include "arena.hpp"
#include "commands.hpp"
#include "crowd.hpp"
#include "report.hpp"

#include <cstdint>
#include <iostream>

namespace {

/// Whether nothing is missing.
bool print_verdict(const crowd& all, const outcome& seen) {
  std::uint64_t moves = 0;
  std::uint64_t points = 0;
  for (const auto& one : all.people()) {
    moves += one.moves;
    points += one.points;
  }
  std::uint64_t rounds = 0;
  for (const auto& one : seen.matches)
    rounds += one.rounds;
  std::cout << '\n'
            << all.matches().size() << " matches, " << all.people().size() << " players, " << rounds << " rounds, " << moves
            << " moves, " << points << " points\n";
  for (const auto& [kind, times] : all.failures())
    std::cout << times << " moves were asked for again: " << kind << '\n';
  const auto wrong = findings(all, seen);
  for (const auto& one : wrong)
    std::cout << one << '\n';
  if (wrong.empty())
    std::cout << "no round was interrupted, no point lost, no player left behind\n";
  std::cout << std::flush;
  return wrong.empty();
}

} // namespace

int open_matches(const arena& where, const options& chosen) {
  visitor here{where, chosen.nodes};
  crowd all{here.host(), chosen.matches, chosen.players};
  all.take_seats();
  std::cout << all.matches().size() << " matches are open, " << all.people().size() << " players are seated\n" << std::flush;
  return 0;
}

int play(const arena& where, const options& chosen, const std::function<void()>& begun) {
  const stop_signal stop; // before any thread
  visitor here{where};
  crowd all{here.host(), chosen.matches, chosen.players};
  all.remember();
  std::cout << "players: play\n" << std::flush;
  begun();
  all.play(stop);
  const auto seen = ask_all(all);
  print_owners(all, seen);
  print_pauses(all, seen);
  return print_verdict(all, seen) ? 0 : 1;
}
