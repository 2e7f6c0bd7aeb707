// Steady load: one outstanding call for each sender and id, numbered, with a pause after each.
#pragma once

#include "tests/e2e/node/call_log.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <vector>

namespace zlink::test {

struct load_plan {
  std::string ids; ///< what all of them begin with, a number follows
  std::size_t count = 0;
  std::chrono::milliseconds pause{0};
  std::chrono::milliseconds timeout{0};
  bool one_way = false;
  bool intent = true;
  bool actor = false;
};

class load {
public:
  explicit load(process_log& log) : log_(log) {}
  ~load() { end(); }
  load(const load&) = delete;
  load& operator=(const load&) = delete;

  /// One more sender, to all ids of the plan, from now on.
  void add(host& from, const load_plan& plan);
  /// No new calls; returns when all have ended, with how many there were so far.
  std::uint64_t rest();
  /// For good. What a host that is gone has not ended is left.
  void end();

private:
  struct stream {
    host* from;
    called next;
    std::chrono::milliseconds pause;
  };
  struct due {
    steady_time at;
    stream* which;
    bool operator>(const due& other) const { return at > other.at; }
  };

  void run();
  void start(stream& one);
  void on_end(stream& one);

  process_log& log_;
  system_clock time_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<stream> streams_; // stay where they are
  std::priority_queue<due, std::vector<due>, std::greater<>> due_;
  std::uint64_t senders_ = 0;
  std::uint64_t started_ = 0;
  std::size_t under_way_ = 0;
  bool resting_ = false;
  bool ended_ = false;
  std::thread runner_;
};

} // namespace zlink::test
