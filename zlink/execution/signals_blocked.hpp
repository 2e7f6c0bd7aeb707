// Threads of the layer and the signals of the process, which are the application's.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace zlink::detail {

/// Threads that are made while this lives take no signal, or not those that ask a program to end: `host::run` waits for these,
/// and a thread that does not block them would be ended by them, and the process with it (O-21).
class signals_blocked {
public:
  enum class which { all, to_end };
  explicit signals_blocked(which what) noexcept {
    sigset_t blocked;
    if (what == which::all) {
      ::sigfillset(&blocked);
    } else {
      ::sigemptyset(&blocked);
      ::sigaddset(&blocked, SIGTERM);
      ::sigaddset(&blocked, SIGINT);
    }
    ::pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  ~signals_blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

private:
  sigset_t before_;
};

} // namespace zlink::detail
