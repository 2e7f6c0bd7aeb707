// Sends every line of a log to the Spot of its package, with a bound on what is under way.
#pragma once

#include "cluster.hpp"
#include "package_log.hpp"
#include "package_spot.hpp"
#include "rolling.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

struct failed_line {
  std::uint64_t line = 0;
  std::string package;
  std::string why;
};

struct slowest_line {
  std::chrono::nanoseconds took{0}; ///< from the call to its reply
  std::uint64_t line = 0;
  std::string package;
};

struct replay_result {
  std::uint64_t answered = 0;
  std::chrono::nanoseconds took{0};
  slowest_line slowest;
  std::vector<failed_line> failed;
};

/// Returns when every line is answered or has failed. At most `outstanding` lines are under way at any time. A `pace` says
/// when a line may go.
replay_result replay(const package_log& log, cluster& nodes, std::size_t outstanding, rolling_pace* pace);

using histories = std::map<std::string, told_history>;

/// What every Spot of the log knows, by package; one that does not answer is missing.
histories ask_all(const package_log& log, cluster& nodes, std::size_t outstanding);
