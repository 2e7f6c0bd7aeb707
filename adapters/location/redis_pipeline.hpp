// Requests to a Redis server: those that wait and those that were sent, in their order. For one thread.
#pragma once

#include "adapters/location/redis_reply.hpp"
#include "adapters/location/redis_script.hpp"
#include "zlink/clock.hpp"
#include "zlink/unique_function.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

namespace zlink::adapters {

/// A reply that is no error, or why there is none.
using redis_answer = store_outcome<redis_reply>;

struct redis_request {
  const redis_script* script = nullptr;
  redis_arguments arguments;
  bool changes = false; ///< it may have had an effect when its answer is lost; others are simply sent again
  unique_function<void(redis_answer)> done;
  steady_time deadline{}; ///< later requests have later ones
  bool whole = false;     ///< the server does not know the script
};

class redis_pipeline {
public:
  struct limits {
    std::size_t in_flight = 1024;
    std::size_t in_flight_bytes = 16 * 1024 * 1024;
    std::uint32_t acknowledging_replicas = 0; ///< asked after each change (S-143)
    std::chrono::milliseconds acknowledgement{1000};
  };
  /// What a reply means for the connection.
  enum class sequel { go_on, leave };

  explicit redis_pipeline(limits most) : limits_(most) {}

  void add(redis_request request);
  /// Appends what may be sent now to `out`, up to about `room` bytes; `sent_before` bytes went out or stand there.
  void fill(std::string& out, std::size_t room, std::uint64_t sent_before);
  /// The server's next reply. `leave`: it will refuse the following ones too.
  sequel answered(redis_reply reply);
  /// The connection is gone after `sent` bytes: what went out whole and changes something is unclear, everything else
  /// waits again (S-139, S-157).
  void broken(std::uint64_t sent, const std::string& why);
  /// Ends what is past its deadline; what was sent keeps its place for the reply that may still come (S-159).
  void expire(steady_time now, const std::string& why);
  /// Ends what waits, which never was sent.
  void refuse_waiting(const store_failure& why);
  /// Ends all.
  void close(const std::string& why);

  /// Replies that the server owes for what was sent.
  std::size_t replies_due() const noexcept { return replies_due_; }
  bool has_in_flight() const noexcept { return !in_flight_.empty(); }
  /// Requests that wait or were sent, and their bytes.
  std::size_t size() const noexcept { return waiting_.size() + in_flight_.size(); }
  std::size_t bytes() const noexcept { return waiting_bytes_ + in_flight_bytes_; }
  std::optional<steady_time> next_deadline() const noexcept;
  /// Where the server said that the data is; told once.
  std::optional<redis_redirection> take_redirection() noexcept { return std::exchange(redirection_, std::nullopt); }

private:
  struct sent_request {
    redis_request request;
    std::uint64_t ends_at = 0; // in the stream of bytes
    bool ended = false;        // its deadline passed: the reply is not wanted any more
    bool acknowledged = false; // WAIT follows it
    redis_reply reply{};       // come already, while the acknowledgement has not
  };

  void append(std::string& out, const redis_request& request) const;
  bool acknowledges(const redis_request& request) const noexcept {
    return request.changes && limits_.acknowledging_replicas > 0;
  }
  sequel judge(sent_request which, redis_reply reply);
  void wait_again(redis_request request);
  redis_request take_waiting();

  const limits limits_;
  std::deque<redis_request> waiting_;
  std::deque<sent_request> in_flight_;
  std::size_t waiting_bytes_ = 0;
  std::size_t in_flight_bytes_ = 0;
  std::size_t replies_due_ = 0;
  std::size_t ended_ = 0; // the first so many in flight have ended by their deadlines
  std::optional<redis_redirection> redirection_;
};

} // namespace zlink::adapters
