// The command line.
#pragma once

#include <cstddef>
#include <string>
#include <variant>

struct options {
  std::string file; ///< empty: the small log that comes with the program
  std::size_t nodes = 4;
  bool processes = false; ///< each node is a process of its own
  std::string redis;      ///< URL of the server that the processes share; empty: one is started for the run
  bool rolling = false;   ///< each node process is emptied and replaced while the log is replayed
  std::size_t outstanding = 256;
};

/// The options, or the exit code of a program that has nothing more to do, after it has said why.
std::variant<options, int> parse_options(int argc, char** argv);
