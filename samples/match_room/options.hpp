// The command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

enum class command { show, serve, open, play, nodes, drain };

struct options {
  command what = command::show;
  std::string redis; ///< URL of the server where the nodes meet; empty, for `show` only: one is started for the run
  std::string secret;
  std::string name = "node"; ///< the node's
  std::uint64_t version = 1;
  std::uint64_t to_version = 0; ///< 0: to nodes of the same version
  std::size_t seconds = 30;     ///< a drain may take
  std::size_t nodes = 1;        ///< that `open` waits for
  std::size_t matches = 6;
  std::size_t players = 4; ///< of each match
  std::size_t deploys = 1;
};

/// The options, or the exit code of a program that has nothing more to do, after it has said why.
std::variant<options, int> parse_options(int argc, char** argv);
