// What processes write down about themselves, and what is read from it afterwards. Each process has files of its own:
// NAME.turns tells what its Spots did, NAME.calls what its load generator asked for. One line, one write, so that
// nothing is torn by a kill. Instants are CLOCK_BOOTTIME, which all processes of a machine share.
//
//   turns:  n INSTANT ID GENERATION TAG                 an instance was built
//           b INSTANT ID GENERATION TAG SENDER NUMBER   a turn begins
//           e INSTANT ID GENERATION TAG SENDER NUMBER   it ends
//   calls:  s INSTANT ID SENDER NUMBER KIND TIMEOUT     a call is started; KIND r: request, o: one-way
//           d INSTANT ID SENDER NUMBER OUTCOME INCARNATION
#pragma once

#include "zlink/clock.hpp"

#include <chrono>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace zlink::test {

/// One life of one id: the process, the generation that the store gave it, and the number of the instance there.
struct incarnation {
  std::uint64_t generation = 0;
  std::string process;
  std::uint64_t tag = 0;
  auto operator<=>(const incarnation&) const = default;
};
/// "GENERATION@PROCESS#TAG".
std::string to_string(const incarnation& one);

struct birth {
  steady_time at;
  std::string id;
  incarnation in;
};

/// Of a message that a Spot served.
struct turn {
  steady_time begin;
  std::optional<steady_time> end; ///< nothing: the process died in it, or the Spot was discarded
  std::string id;
  incarnation in;
  std::string sender;
  std::uint64_t number = 0; ///< of the message among those of its sender to that id
};

struct call {
  steady_time start;
  std::string id;
  std::string sender;
  std::uint64_t number = 0;
  bool one_way = false;
  std::chrono::milliseconds timeout{0};
  std::optional<steady_time> end;
  std::string outcome; ///< "ok", "cancelled" or an error kind; empty: none
  std::string served_by; ///< of an "ok" request: the incarnation, as text
  int ends = 0;
};

/// From SIGSTOP to SIGCONT.
struct freeze {
  steady_time from;
  steady_time to;
};

/// Everything that is known of one process.
struct process_history {
  std::string name;
  std::optional<steady_time> killed; ///< it did not live to the end
  std::vector<freeze> frozen;
  std::vector<birth> births;
  std::vector<turn> turns;
  std::vector<call> calls;
};

using evidence = std::vector<process_history>;

/// Appends lines of one process; any thread.
class log_file {
public:
  explicit log_file(const std::filesystem::path& file);
  ~log_file();
  log_file(const log_file&) = delete;
  log_file& operator=(const log_file&) = delete;
  /// One write; a full disk ends the process, since a log with holes proves nothing.
  void append(const std::string& line) const;

private:
  int file_;
};

/// Fills in turns and calls from the text of a process's files; throws for a line that nobody writes.
void read_turns(process_history& into, const std::string& text);
void read_calls(process_history& into, const std::string& text);
void read_files(process_history& into, const std::filesystem::path& directory);

} // namespace zlink::test
