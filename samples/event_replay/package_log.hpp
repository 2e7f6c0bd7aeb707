// Reading the log that dpkg keeps: lines in, events by package out. Nothing in a file is fatal.
#pragma once

#include "package_history.hpp"

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

struct log_entry {
  std::string package; ///< "zlib1g:amd64"; the id of its Spot
  package_event event;
};

struct malformed_line {
  std::uint64_t line = 0;
  std::string why;
};

struct package_log {
  std::uint64_t lines = 0;
  std::uint64_t without_package = 0; ///< well-formed lines about dpkg itself or a configuration file
  std::vector<log_entry> entries;    ///< in the order of the file
  std::vector<malformed_line> malformed;
};

package_log read_package_log(std::istream& from);
