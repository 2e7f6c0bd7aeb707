// Samples the resident memory of processes, while everything else goes on.
#pragma once

#include "tests/e2e/checker.hpp"

#include <condition_variable>
#include <mutex>
#include <string>
#include <sys/types.h>
#include <thread>
#include <utility>
#include <vector>

namespace zlink::test {

class memory_watch {
public:
  memory_watch();
  ~memory_watch();
  memory_watch(const memory_watch&) = delete;
  memory_watch& operator=(const memory_watch&) = delete;

  /// From now on, until it is gone.
  void add(std::string process, pid_t pid);
  std::vector<memory_samples> samples() const;

private:
  void run();

  mutable std::mutex mutex_;
  std::condition_variable ending_;
  std::vector<std::pair<pid_t, memory_samples>> watched_;
  bool ended_ = false;
  std::thread runner_;
};

} // namespace zlink::test
