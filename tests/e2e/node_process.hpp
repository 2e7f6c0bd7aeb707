// One node as a process of its own: started, asked, frozen, killed, and looked after until it is gone.
#pragma once

#include "tests/e2e/evidence.hpp"

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <sys/types.h>
#include <vector>

namespace zlink::test {

void pause_a_moment();

/// Looks every few milliseconds whether `holds`; throws with `what` after `limit`.
template <class F>
void eventually(const std::string& what, std::chrono::milliseconds limit, F holds) {
  const system_clock time;
  const auto end = time.now() + limit;
  while (!holds()) {
    if (time.now() > end)
      throw std::runtime_error{"did not come true: " + what};
    pause_a_moment();
  }
}

/// For faults that last: until that instant.
void wait_until(steady_time when);

class node_process {
public:
  /// Returns when the process serves. A client hosts nothing.
  node_process(std::string name, std::filesystem::path directory, const std::string& redis_url, bool client = false);
  /// SIGKILL, if it still runs.
  ~node_process();
  node_process(const node_process&) = delete;
  node_process& operator=(const node_process&) = delete;

  const std::string& name() const noexcept { return name_; }
  const std::string& rid() const noexcept { return rid_; }
  const std::string& entry_spot_id() const noexcept { return entry_spot_id_; }
  pid_t pid() const noexcept { return pid_; }
  /// Neither ended nor frozen.
  bool running() const noexcept { return pid_ > 0 && !frozen_; }

  /// The answer to a command of tests/e2e/node/commands.hpp; throws if there is none within `limit`.
  std::string ask(const std::string& command, std::chrono::milliseconds limit = std::chrono::seconds{90});
  /// The same in two steps, to ask several nodes at once.
  void tell(const std::string& command);
  std::string hear(std::chrono::milliseconds limit = std::chrono::seconds{90});
  /// Of an answer "ok a b c", its words; throws for any other.
  std::vector<std::string> list(const std::string& command);

  /// SIGKILL, and its end is seen; returns the instant before.
  steady_time kill();
  /// SIGSTOP, and SIGCONT.
  steady_time freeze();
  steady_time thaw();
  /// SIGTERM; its exit code, or -1 if a signal ended it. Throws if it does not end within `limit`.
  int terminate(std::chrono::milliseconds limit);

  /// What it left, to be read when it rests or is gone.
  process_history history() const;
  /// The last that it said to stderr.
  std::string last_words() const;

private:
  void launch(const std::string& redis_url, bool client);
  int wait();

  const std::string name_;
  const std::filesystem::path directory_;
  std::string rid_;
  std::string entry_spot_id_;
  pid_t pid_ = -1;
  bool frozen_ = false;
  int channel_ = -1; // its stdin and stdout
  std::string heard_;
  process_history kept_; // what the driver did to it
  system_clock time_;
};

} // namespace zlink::test
