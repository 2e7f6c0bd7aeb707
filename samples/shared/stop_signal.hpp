// SIGTERM and Ctrl-C as events that the program waits for.
#pragma once

#include <chrono>
#include <csignal>

/// From construction on both wait until they are asked for; made before any thread, since threads inherit that.
class stop_signal {
public:
  stop_signal();
  /// Returns when one has come.
  void await() const;
  /// As `await`, for so long at most. True: one has come.
  bool await_for(std::chrono::milliseconds time) const;

private:
  sigset_t which_;
};
