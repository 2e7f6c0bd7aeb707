// The people outside: each has one player in one match, and makes the next move when the last one is answered.
#pragma once

#include "match_packets.hpp"
#include "samples/shared/stop_signal.hpp"

#include <zlink/zlink.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

/// One of them, and what that one knows.
struct person {
  std::string player;
  std::string match;
  std::uint64_t moves = 0; ///< answered
  std::uint64_t points = 0; ///< that these were worth
  bool waits = false;      ///< for an answer
};

class crowd {
public:
  crowd(zlink::host& through, std::size_t matches, std::size_t players);

  /// Opens matches and seats players that are not there yet. Throws `zlink::operation_failed`.
  void take_seats();
  /// Everybody goes on from what the own player has done. Throws `std::runtime_error` if there is no player.
  void remember();
  /// Until a signal; all moves are answered when it returns.
  void play(const stop_signal& until);

  const std::vector<std::string>& matches() const { return matches_; }
  const std::vector<person>& people() const { return people_; }
  /// How many moves had to be asked for again, by the error that came instead of an answer.
  const std::map<std::string, std::size_t>& failures() const { return failures_; }

  match_report ask_match(const std::string& match);
  player_report ask_player(const person& who);

private:
  void take_seat(const person& one);
  void move(person& who);
  void answered(person& who, const zlink::result<moved>& answer);

  zlink::host& host_;
  std::vector<std::string> matches_;
  std::vector<person> people_;

  std::mutex mutex_; // what answers change, on a thread of the host
  std::condition_variable changed_;
  std::size_t waiting_ = 0;
  std::map<std::string, std::size_t> failures_;
};
