// One connection to a Redis server from its first byte to its last. For one thread.
#pragma once

#include "adapters/location/redis_login.hpp"
#include "adapters/location/redis_pipeline.hpp"
#include "adapters/location/redis_reply.hpp"
#include "adapters/location/redis_socket.hpp"
#include "zlink/clock.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zlink::adapters {

class redis_session {
public:
  /// Begins to connect. No byte in either direction for `silence` while an answer is due ends it: so a server that is
  /// stopped or cut off is noticed.
  redis_session(const redis_address& address, SSL_CTX* context, const std::vector<const redis_script*>& scripts,
                std::chrono::milliseconds silence, steady_time now);

  /// Does what can be done without waiting: connects, reads if `readable`, sends what waits in `pipeline`.
  void step(redis_pipeline& pipeline, bool readable, steady_time now);

  int descriptor() const noexcept { return socket_.descriptor(); }
  short wanted_events() const noexcept { return socket_.wanted_events(out_at_ < out_.size()); }
  /// When `step` has something to do even if nothing happens.
  steady_time next_step() const noexcept;
  /// What it waits for before it is ready, in plain words.
  const char* stage() const noexcept;
  /// The server let us in.
  bool ready() const noexcept { return login_done_; }
  const redis_login& login() const noexcept { return login_; }
  /// It is over, and why.
  const std::optional<redis_trouble>& trouble() const noexcept { return trouble_; }
  /// Bytes that the system has taken.
  std::uint64_t sent() const noexcept { return sent_; }

private:
  static constexpr std::chrono::seconds role_check{1}; ///< how often it is asked whether it still leads to a primary

  void receive(redis_pipeline& pipeline, steady_time now);
  void take(redis_pipeline& pipeline, redis_reply reply);
  void check_silence(const redis_pipeline& pipeline, steady_time now);
  void send(redis_pipeline& pipeline, steady_time now);
  void ask_role(const redis_pipeline& pipeline, steady_time now);
  void append(const std::string& command);
  void end(std::string why, bool misconfigured = false);

  const std::chrono::milliseconds silence_;
  redis_socket socket_;
  redis_login login_;
  redis_reader reader_;
  std::string out_;
  std::size_t out_at_ = 0;
  std::uint64_t appended_ = 0;
  std::uint64_t sent_ = 0;
  steady_time progress_;
  bool login_sent_ = false;
  bool login_done_ = false;
  std::optional<std::size_t> role_after_; ///< ROLE was sent: its reply comes after so many others
  steady_time role_due_{};
  bool leaving_ = false; ///< what is under way ends, nothing new is sent
  bool waits_for_answer_ = true;
  std::optional<redis_trouble> trouble_;
};

} // namespace zlink::adapters
