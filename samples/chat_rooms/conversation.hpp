// A conversation as text: lines of name, room and what is said, with tabs between.
#pragma once

#include <istream>
#include <string>
#include <vector>

struct line {
  std::size_t number = 0;
  std::string name; ///< "*": an announcement to all rooms
  std::string room;
  std::string text;
};

/// Empty lines and those that begin with '#' are skipped. Throws `std::runtime_error` with the number of a line that is none.
std::vector<line> read_conversation(std::istream& from);

/// What is read if nothing else is named.
extern const char* const small_conversation;
