// What a Redis server answers, and what its error replies mean for the command that was refused.
#pragma once

#include "zlink/location_store.hpp"

#include <hiredis/hiredis.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace zlink::adapters {

struct free_redis_reply {
  void operator()(redisReply* reply) const noexcept { ::freeReplyObject(reply); }
};
using redis_reply = std::unique_ptr<redisReply, free_redis_reply>;

/// Cuts replies out of a stream of bytes.
class redis_reader {
public:
  redis_reader();
  redis_reader(const redis_reader&) = delete;
  redis_reader& operator=(const redis_reader&) = delete;
  void feed(const char* bytes, std::size_t size) { ::redisReaderFeed(reader_.get(), bytes, size); }
  /// The next whole reply, or null. `broken()` if what came is no reply.
  redis_reply next() {
    void* reply = nullptr;
    if (::redisReaderGetReply(reader_.get(), &reply) != REDIS_OK)
      broken_ = true;
    return redis_reply{static_cast<redisReply*>(reply)};
  }
  bool broken() const noexcept { return broken_; }

private:
  redisReplyObjectFunctions make_; ///< the reader's own, with a bound on arrays
  std::unique_ptr<redisReader, decltype(&::redisReaderFree)> reader_;
  bool broken_ = false;
};

/// What a server can mean by a time in microseconds, or by a span: everything else is nonsense, and would not fit in ours.
inline constexpr std::int64_t latest_instant = std::int64_t{1} << 53;
inline bool is_instant(std::int64_t number) noexcept { return number >= 0 && number <= latest_instant; }
/// The end of a request whose answer is none of those that its script gives.
store_failure not_understood();
inline bool is_error(const redisReply& reply) noexcept { return reply.type == REDIS_REPLY_ERROR; }
inline bool is_integer(const redisReply& reply) noexcept { return reply.type == REDIS_REPLY_INTEGER; }
inline bool is_instant(const redisReply& reply) noexcept { return is_integer(reply) && is_instant(reply.integer); }
/// Text of a string, status or error reply.
inline std::string_view text_of(const redisReply& reply) noexcept {
  return reply.str == nullptr ? std::string_view{} : std::string_view{reply.str, static_cast<std::size_t>(reply.len)};
}
inline bool is_string(const redisReply& reply) noexcept { return reply.type == REDIS_REPLY_STRING; }
/// Part `at` of an array, or null.
inline const redisReply* part_of(const redisReply& reply, std::size_t at) noexcept {
  return reply.type == REDIS_REPLY_ARRAY && at < static_cast<std::size_t>(reply.elements) ? reply.element[at] : nullptr;
}

/// The word that an error begins with, like "NOSCRIPT"; also out of the wrapping that servers before version 7 put
/// around errors of a script.
std::string_view error_code(std::string_view error) noexcept;

enum class redis_refusal : std::uint8_t {
  unknown_script, ///< not executed: the script must be sent as a whole
  elsewhere,      ///< not executed: another server has these keys, or this one writes no more
  starting,       ///< not executed: it still loads its data
  refused,        ///< not executed, and not to be repeated by the provider
  unclear,        ///< may have happened in part
};
redis_refusal judge_refusal(std::string_view error) noexcept;
/// For logs: what went wrong and what to do. Holds no key and no part of a command (S-17).
std::string explain_refusal(std::string_view error);

/// Where "MOVED slot host:port" points to.
struct redis_redirection {
  std::string host; ///< empty: the host that answered
  std::uint16_t port = 0;
};
std::optional<redis_redirection> parse_redirection(std::string_view error);

} // namespace zlink::adapters
