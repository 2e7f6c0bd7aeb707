// Lets things that may outlive a host ask for it safely.
#pragma once

#include <condition_variable>
#include <mutex>

namespace zlink::detail {

class host_runtime;

class host_gate {
public:
  explicit host_gate(host_runtime& host) noexcept : host_(&host) {}
  /// The host, kept from ending until `leave()`; null once it has ended.
  host_runtime* enter() {
    std::lock_guard guard{mutex_};
    if (host_ != nullptr)
      ++inside_;
    return host_;
  }
  void leave() {
    std::lock_guard guard{mutex_};
    if (--inside_ == 0)
      left_.notify_all();
  }
  /// Nobody enters any more; returns when nobody is inside.
  void shut() {
    std::unique_lock lock{mutex_};
    host_ = nullptr;
    left_.wait(lock, [this] { return inside_ == 0; });
  }

private:
  std::mutex mutex_;
  std::condition_variable left_;
  host_runtime* host_;
  int inside_ = 0;
};

} // namespace zlink::detail
