// Replays a package log into Spots on several nodes, then checks every Spot against a plain fold of the same file.
#include "cluster.hpp"
#include "node_processes.hpp"
#include "options.hpp"
#include "package_log.hpp"
#include "replay.hpp"
#include "report.hpp"
#include "rolling.hpp"
#include "small_log.hpp"

#include <exception>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>

namespace {

/// The log of the options, or nothing if it cannot be read or holds nothing about packages.
std::optional<package_log> load(const std::string& file) {
  package_log log;
  if (file.empty()) {
    std::istringstream from{small_log};
    log = read_package_log(from);
  } else {
    std::ifstream from{file};
    if (!from) {
      std::cerr << "event_replay: cannot read " << file << '\n';
      return std::nullopt;
    }
    log = read_package_log(from);
  }
  print_malformed(log);
  if (log.entries.empty()) {
    std::cerr << "event_replay: no line names a package\n";
    return std::nullopt;
  }
  return log;
}

int replay_and_check(const package_log& log, cluster& nodes, std::size_t outstanding, rolling_pace* pace = nullptr) {
  const auto replayed = replay(log, nodes, outstanding, pace);
  const auto spots = ask_all(log, nodes, outstanding);
  print_table(replayed, spots, nodes);
  return print_verdict(log, replayed, spots) ? 0 : 1;
}

int run(const options& chosen) {
  std::cout << "event_replay: " << (chosen.file.empty() ? "the small log" : chosen.file) << ", " << chosen.nodes
            << (chosen.processes ? " node processes" : " nodes") << ", at most " << chosen.outstanding
            << " lines under way" << (chosen.rolling ? ", each node replaced on the way" : "") << '\n';
  const auto log = load(chosen.file);
  if (!log)
    return 2;
  if (chosen.processes) {
    std::optional<rolling_pace> pace;
    if (chosen.rolling)
      pace.emplace(log->entries.size(), chosen.nodes);
    auto* const shares = pace ? &*pace : nullptr;
    return run_with_node_processes(chosen, shares, [&](const shared_mesh& shared) {
      cluster nodes{chosen.nodes, shared};
      return replay_and_check(*log, nodes, chosen.outstanding, shares);
    });
  }
  cluster nodes{chosen.nodes};
  return replay_and_check(*log, nodes, chosen.outstanding);
}

} // namespace

int main(int argc, char** argv) {
  try {
    const auto parsed = parse_options(argc, argv);
    const auto* chosen = std::get_if<options>(&parsed);
    return chosen ? run(*chosen) : std::get<int>(parsed);
  } catch (const std::exception& failure) {
    std::cerr << "event_replay: " << failure.what() << '\n';
    return 1;
  }
}
