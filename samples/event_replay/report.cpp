#include "report.hpp"

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <locale>
#include <vector>

namespace {

constexpr std::size_t most_shown = 10; // of each kind of bad news

/// 5836 as "5,836", whatever the machine's locale.
class grouped : public std::numpunct<char> {
protected:
  char do_thousands_sep() const override { return ','; }
  std::string do_grouping() const override { return "\3"; }
};

std::ostream& out() {
  static const bool ready = [] {
    std::cout.imbue(std::locale{std::cout.getloc(), new grouped});
    std::cout << std::fixed << std::setprecision(2);
    return true;
  }();
  static_cast<void>(ready);
  return std::cout;
}

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>{time}.count(); }

void print_row(const std::string& name, std::uint64_t spots, std::uint64_t messages) {
  out() << std::left << std::setw(10) << name << std::right << std::setw(10) << spots << std::setw(12) << messages
        << '\n';
}

void print_more(std::size_t all) {
  if (all > most_shown)
    out() << "  and " << all - most_shown << " more\n";
}

std::ostream& operator<<(std::ostream& to, const package_history& h) {
  return to << h.lines << " lines from " << h.first_seen << " to " << h.last_seen << ", " << h.installs << " installs, "
            << h.upgrades << " upgrades, " << h.removals << " removals, now " << h.status << ' ' << h.version
            << ", fingerprint " << h.fingerprint;
}

std::map<std::string, package_history> fold(const package_log& log) {
  std::map<std::string, package_history> packages;
  for (const auto& entry : log.entries)
    packages[entry.package].apply(entry.event);
  return packages;
}

} // namespace

void print_malformed(const package_log& log) {
  out() << log.lines << " lines: " << log.entries.size() << " about packages, " << log.without_package
        << " about none, " << log.malformed.size() << " malformed\n";
  for (std::size_t i = 0; i < std::min(log.malformed.size(), most_shown); ++i)
    out() << "  line " << log.malformed[i].line << ": " << log.malformed[i].why << '\n';
  print_more(log.malformed.size());
}

void print_table(const replay_result& replayed, const histories& spots, const cluster& nodes) {
  std::vector<std::uint64_t> spots_of(nodes.size()), messages_of(nodes.size());
  std::uint64_t moves = 0;
  for (const auto& [package, told] : spots) {
    const auto node = nodes.index_of(told.node);
    ++spots_of[node];
    messages_of[node] += told.history.lines;
    moves += told.moves;
  }
  out() << "\nnode           Spots    messages\n";
  for (std::size_t i = 0; i < nodes.size(); ++i)
    print_row("node-" + std::to_string(i + 1), spots_of[i], messages_of[i]);
  print_row("all", spots.size(), replayed.answered);
  if (moves > 0)
    out() << "\nmoves    " << moves << ", each with what the Spot knew and what waited for it\n";

  const auto rate = static_cast<double>(replayed.answered) / std::max(seconds(replayed.took), 1e-9);
  out() << "\nrate     " << static_cast<std::uint64_t>(rate) << " messages/s, each answered (" << seconds(replayed.took)
        << " s)\n";
  out() << "slowest  " << seconds(replayed.slowest.took) * 1e3 << " ms, line " << replayed.slowest.line << " ("
        << replayed.slowest.package << ")\n\n";
}

bool print_verdict(const package_log& log, const replay_result& replayed, const histories& spots) {
  for (std::size_t i = 0; i < std::min(replayed.failed.size(), most_shown); ++i)
    out() << "FAILED line " << replayed.failed[i].line << " (" << replayed.failed[i].package
          << "): " << replayed.failed[i].why << '\n';
  print_more(replayed.failed.size());

  const auto expected = fold(log);
  std::size_t different = 0;
  for (const auto& [package, history] : expected) {
    const auto spot = spots.find(package);
    if (spot != spots.end() && spot->second.history == history)
      continue;
    out() << "DIFFERENT " << package << "\n  fold: " << history << "\n  Spot: ";
    if (spot == spots.end())
      out() << "no answer\n";
    else
      out() << spot->second.history << '\n';
    ++different;
  }
  if (different == 0 && replayed.failed.empty()) {
    out() << "every Spot agrees with a sequential fold of the file: " << expected.size() << " packages\n";
    return true;
  }
  out() << different << " of " << expected.size() << " Spots differ from the fold, " << replayed.failed.size()
        << " lines failed\n";
  return false;
}
