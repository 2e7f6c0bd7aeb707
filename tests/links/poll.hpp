// Waiting for what happens on a transport's thread.
#pragma once

#include "zlink/clock.hpp"

#include <thread>

namespace zlink::test {

/// Polls, giving other threads their time; false if it does not come within a minute.
template <class Done>
bool poll_until(Done done, std::chrono::seconds most = std::chrono::seconds{60}) {
  const system_clock time;
  const auto give_up = time.now() + most;
  while (!done()) {
    if (time.now() > give_up)
      return false;
    std::this_thread::yield();
  }
  return true;
}

} // namespace zlink::test
