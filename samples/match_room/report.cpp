#include "report.hpp"

#include <zlink/clock.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>

namespace {

constexpr std::size_t plot_width = 64;
constexpr std::size_t bar_width = 30;

double to_ms(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e6; }

/// A letter for each node, in the order in which matches came to them.
class letters {
public:
  explicit letters(const outcome& seen) {
    std::map<std::int64_t, std::string> first;
    for (const auto& match : seen.matches)
      for (const auto& one : match.stays)
        first.emplace(one.since, one.node);
    for (const auto& [since, node] : first)
      if (std::ranges::find(nodes_, node) == nodes_.end())
        nodes_.push_back(node);
  }
  char of(const std::string& node) const {
    return static_cast<char>('a' + (std::ranges::find(nodes_, node) - nodes_.begin()) % 26);
  }
  const std::vector<std::string>& nodes() const { return nodes_; }

private:
  std::vector<std::string> nodes_;
};

std::int64_t begin_of(const outcome& seen) {
  std::int64_t begin = INT64_MAX;
  for (const auto& match : seen.matches)
    for (const auto& one : match.stays)
      begin = std::min(begin, one.since);
  return begin;
}

/// The letter of whoever owned the match in each of the equal pieces of the time.
std::string owners_of(const match_report& match, const letters& known, std::int64_t begin, std::int64_t end) {
  std::string line;
  for (std::size_t i = 0; i < plot_width; ++i) {
    const auto at = begin + (end - begin) * static_cast<std::int64_t>(i) / static_cast<std::int64_t>(plot_width);
    char owner = ' ';
    for (const auto& one : match.stays)
      if (one.since <= at)
        owner = known.of(one.node);
    line += owner;
  }
  return line;
}

std::vector<std::int64_t> pauses_of(const outcome& seen) {
  std::vector<std::int64_t> all;
  for (const auto& match : seen.matches)
    for (std::size_t i = 1; i < match.stays.size(); ++i)
      all.push_back(match.stays[i].pause);
  std::ranges::sort(all);
  return all;
}

} // namespace

outcome ask_all(crowd& all) {
  outcome seen;
  for (const auto& match : all.matches())
    seen.matches.push_back(all.ask_match(match));
  for (const auto& one : all.people())
    seen.players.push_back(all.ask_player(one));
  return seen;
}

void print_owners(const crowd& all, const outcome& seen) {
  const letters known{seen};
  const auto begin = begin_of(seen);
  const auto end = zlink::system_clock{}.now().time_since_epoch().count();
  std::printf("\nwho owned which match when, %.1f s from left to right:", to_ms(end - begin) / 1e3);
  for (const auto& node : known.nodes())
    std::printf(" %c %s", known.of(node), node.c_str());
  std::printf("\n");
  for (std::size_t i = 0; i < seen.matches.size(); ++i)
    std::printf("%-10s %s\n", all.matches()[i].c_str(), owners_of(seen.matches[i], known, begin, end).c_str());
}

void print_pauses(const crowd& all, const outcome& seen) {
  const auto pauses = pauses_of(seen);
  if (pauses.empty()) {
    std::printf("\nno match has moved\n");
    return;
  }
  std::printf("\n%-10s %-20s %11s %8s %10s\n", "match", "move", "after round", "players", "pause, ms");
  for (std::size_t i = 0; i < seen.matches.size(); ++i) {
    const auto& stays = seen.matches[i].stays;
    for (std::size_t k = 1; k < stays.size(); ++k) {
      const auto length = static_cast<std::size_t>(stays[k].pause * static_cast<std::int64_t>(bar_width) / pauses.back());
      std::printf("%-10s %-20s %11llu %8llu %10.2f %s\n", all.matches()[i].c_str(),
                  (stays[k - 1].node + " > " + stays[k].node).c_str(),
                  static_cast<unsigned long long>(stays[k].after_round), static_cast<unsigned long long>(stays[k].players),
                  to_ms(stays[k].pause), std::string(std::max<std::size_t>(length, 1), '#').c_str());
    }
  }
  std::printf("%zu moves, the pause in the middle of them %.2f ms, the longest %.2f ms\n", pauses.size(),
              to_ms(pauses[pauses.size() / 2]), to_ms(pauses.back()));
}

std::vector<std::string> findings(const crowd& all, const outcome& seen) {
  std::vector<std::string> wrong;
  for (std::size_t i = 0; i < seen.matches.size(); ++i) {
    const auto& name = all.matches()[i];
    const auto& match = seen.matches[i];
    if (match.interrupted != 0)
      wrong.push_back(name + ": " + std::to_string(match.interrupted) + " times a round was interrupted");
    std::uint64_t points = 0;
    std::vector<std::string> players;
    for (std::size_t k = 0; k < seen.players.size(); ++k) {
      const auto& person = all.people()[k];
      if (person.match != name)
        continue;
      points += person.points;
      players.push_back(person.player);
      const auto& told = seen.players[k];
      if (told.moves != person.moves || told.points != person.points)
        wrong.push_back(person.player + " has " + std::to_string(told.points) + " points for " + std::to_string(told.moves)
                        + " moves, and should have " + std::to_string(person.points) + " for "
                        + std::to_string(person.moves));
      if (told.spot != name || told.node != match.node)
        wrong.push_back(person.player + " was left behind: it is in " + told.spot + " on " + told.node + ", its match on "
                        + match.node);
    }
    if (match.points != points)
      wrong.push_back(name + " counts " + std::to_string(match.points) + " points, its people "
                      + std::to_string(points));
    auto members = match.players;
    std::ranges::sort(members);
    std::ranges::sort(players);
    if (members != players)
      wrong.push_back(name + " has " + std::to_string(members.size()) + " members, and not just those who play in it");
  }
  return wrong;
}
