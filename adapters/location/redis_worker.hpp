// What the thread of a redis_connection does: takes requests in, keeps a connection, waits in between.
#pragma once

#include "adapters/location/redis_connection.hpp"
#include "adapters/location/redis_session.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace zlink::adapters {

/// Shared by the connection and its thread, so that a completion may destroy the connection.
class redis_connection::worker {
public:
  worker(redis_options options, std::vector<const redis_script*> scripts);
  ~worker();

  void submit(redis_request request);
  /// The thread's whole life.
  void run();
  void stop();

private:
  bool take_inbox(std::vector<redis_request>& into);
  void publish_load() noexcept;
  void keep_session(steady_time now);
  void end_session(const redis_trouble& why, steady_time now);
  std::string place() const { return redirected_.value_or(address_).shown(); }
  void note_ready();
  void note(const std::string& text);
  void wait(steady_time now);
  void wake() noexcept;
  steady_duration next_pause();

  const redis_options options_;
  const redis_address address_;
  const std::vector<const redis_script*> scripts_;
  tls_context context_{nullptr, &::SSL_CTX_free};
  const system_clock time_;
  int wake_fd_ = -1;

  // The thread's own.
  redis_pipeline pipeline_;
  system_random random_;
  std::optional<redis_address> redirected_; // a server of a cluster that another one named
  std::unique_ptr<redis_session> session_;
  bool readable_ = true;
  bool was_ready_ = false;
  unsigned failures_ = 0; // attempts in a row
  steady_time retry_at_{};
  std::string trouble_ = "there is no connection yet"; // why there is no session
  std::string noted_;                                  // the last notice: none is repeated
  std::vector<std::string> warned_;

  std::mutex mutex_; // guards the next two
  std::vector<redis_request> inbox_;
  bool stopped_ = false;
  std::atomic<std::size_t> inbox_bytes_{0};
  std::atomic<std::size_t> load_{0}; // requests and bytes beyond the inbox
  std::atomic<std::size_t> load_bytes_{0};
};

} // namespace zlink::adapters
