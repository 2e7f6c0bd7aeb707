#include "samples/shared/stop_signal.hpp"

#include <ctime>

stop_signal::stop_signal() {
  ::sigemptyset(&which_);
  for (const auto one : {SIGTERM, SIGINT})
    ::sigaddset(&which_, one);
  ::pthread_sigmask(SIG_BLOCK, &which_, nullptr);
}

void stop_signal::await() const {
  int received = 0;
  ::sigwait(&which_, &received);
}

bool stop_signal::await_for(std::chrono::milliseconds time) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  const timespec limit{seconds.count(), std::chrono::nanoseconds{time - seconds}.count()};
  return ::sigtimedwait(&which_, nullptr, &limit) > 0;
}
