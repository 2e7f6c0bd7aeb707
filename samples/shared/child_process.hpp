// Processes that this one starts and ends. They die with it, even when it is killed.
#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

/// One child. It has a process group of its own, so that Ctrl-C reaches this process only, which then ends its children
/// in an order that makes sense.
class child_process {
public:
  /// Runs `body` in a copy of this process, which ends with the code that it returns. Start it while there is one thread.
  child_process(std::string name, const std::function<int()>& body);
  /// Runs a program, found as a shell would. One that cannot be run ends with 127.
  child_process(std::string name, std::vector<std::string> words);
  child_process(child_process&& other) noexcept;
  child_process& operator=(child_process&&) = delete;
  /// Ends it, the hard way if need be.
  ~child_process() { end(std::chrono::seconds{15}); }

  const std::string& name() const { return name_; }
  /// How it ended, as `waitpid` tells; nothing while it runs.
  std::optional<int> status();
  /// Tells it to end.
  void ask_to_end() { send(SIGTERM); }
  /// Unless it has ended.
  void send(int signal);
  /// As `ask_to_end`, and returns when it has ended; after `patience` it is killed.
  void end(std::chrono::milliseconds patience);

private:
  std::string name_;
  pid_t pid_ = -1;
  std::optional<int> status_;
};

/// "ended with 3", "was ended by signal 9".
std::string describe_end(int status);

/// From construction on SIGTERM, SIGINT, SIGHUP, the two signals of users and the end of a child wait until they are asked
/// for; children inherit that.
class kept_signals {
public:
  kept_signals();
  /// Returns the next one.
  int next() const;
  /// As `next`, for so long at most. Nothing: none has come.
  std::optional<int> next_within(std::chrono::milliseconds time) const;
  /// For a child that has nothing to clean up: they reach it as they reach any program.
  void let_through() const;

private:
  sigset_t which_;
};
