#include "tests/e2e/memory_watch.hpp"

#include <unistd.h>

#include <chrono>
#include <fstream>

namespace zlink::test {

namespace {

std::size_t resident_bytes(pid_t pid) {
  std::ifstream in{"/proc/" + std::to_string(pid) + "/statm"};
  std::size_t all = 0;
  std::size_t resident = 0;
  in >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

} // namespace

memory_watch::memory_watch() : runner_([this] { run(); }) {}

memory_watch::~memory_watch() {
  {
    std::lock_guard guard{mutex_};
    ended_ = true;
  }
  ending_.notify_all();
  runner_.join();
}

void memory_watch::add(std::string process, pid_t pid) {
  std::lock_guard guard{mutex_};
  watched_.push_back({pid, {std::move(process), {resident_bytes(pid)}}});
}

std::vector<memory_samples> memory_watch::samples() const {
  std::lock_guard guard{mutex_};
  std::vector<memory_samples> all;
  for (const auto& [pid, seen] : watched_)
    all.push_back(seen);
  return all;
}

void memory_watch::run() {
  std::unique_lock guard{mutex_};
  while (!ended_) {
    for (auto& [pid, seen] : watched_)
      if (const auto bytes = resident_bytes(pid); bytes != 0) // 0: it is gone
        seen.bytes.push_back(bytes);
    ending_.wait_for(guard, std::chrono::milliseconds{200});
  }
}

} // namespace zlink::test
