// The Relocation Store on a Redis server: raw bytes that leave by the server's own expiry (S-145).
#include "adapters/location/redis_connection.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace zlink::adapters {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds longest_retention = std::chrono::hours{24 * 365 * 100}; // the server's clock ends

// A blob whose time to live is 0 is over, though the server keeps it for the rest of that millisecond.

/// KEYS[1] the blob. ARGV: bytes, milliseconds. Answers 0 stored, 1 already stored, 2 conflict.
const redis_script& put_script() {
  static const redis_script script{R"lua(
if redis.call('PTTL', KEYS[1]) > 0 then
  if redis.call('STRLEN', KEYS[1]) == #ARGV[1] and redis.call('GET', KEYS[1]) == ARGV[1] then return 1 end
  return 2
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 0
)lua"};
  return script;
}

/// KEYS[1] the blob. Answers {now, milliseconds left, bytes} or {now}.
const redis_script& read_script() {
  static const redis_script script{R"lua(
local clock, left = redis.call('TIME'), redis.call('PTTL', KEYS[1])
local now = clock[1] * 1000000 + clock[2]
if left <= 0 then return {now} end
return {now, left, redis.call('GET', KEYS[1])}
)lua"};
  return script;
}

/// KEYS[1] the blob. ARGV: milliseconds. Answers 1 renewed or 0 missing.
const redis_script& renew_script() {
  static const redis_script script{R"lua(
if redis.call('PTTL', KEYS[1]) <= 0 then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[1])
)lua"};
  return script;
}

/// KEYS[1] the blob.
const redis_script& erase_script() {
  static const redis_script script{"return redis.call('UNLINK', KEYS[1])"};
  return script;
}

std::string digits_of(std::chrono::milliseconds retention) {
  return std::to_string(std::min(retention, longest_retention).count());
}

store_outcome<std::optional<blob_value>> blob_in(const redisReply& reply) {
  const auto* now = part_of(reply, 0);
  const auto* left = part_of(reply, 1);
  const auto* bytes = part_of(reply, 2);
  if (now == nullptr || !is_instant(*now))
    return not_understood();
  if (left == nullptr)
    return std::optional<blob_value>{};
  const bool possible = is_integer(*left) && left->integer >= 0 && left->integer <= (latest_instant - now->integer) / 1000;
  if (!possible || bytes == nullptr || !is_string(*bytes))
    return not_understood();
  blob_value blob;
  blob.bytes = text_of(*bytes);
  blob.now = store_time{std::chrono::microseconds{now->integer}};
  blob.expires_at = blob.now + std::chrono::milliseconds{left->integer};
  return std::optional{std::move(blob)};
}

} // namespace

class redis_relocation_store final : public relocation_store {
public:
  explicit redis_relocation_store(redis_options options);

  void put(std::string reference, store_bytes bytes, std::chrono::milliseconds retention,
           store_completion<blob_put_result> done) override;
  void read_blob(std::string reference, store_completion<std::optional<blob_value>> done) override;
  void renew(std::string reference, std::chrono::milliseconds retention, store_completion<bool> done) override;
  void erase(std::string reference, store_completion<std::monostate> done) override;

private:
  redis_arguments blob(const std::string& reference) const {
    return redis_arguments{connection_.key("b:" + reference)};
  }

  redis_connection connection_;
};

redis_relocation_store::redis_relocation_store(redis_options options)
  : connection_(std::move(options), {&put_script(), &read_script(), &renew_script(), &erase_script()}) {}

void redis_relocation_store::put(std::string reference, store_bytes bytes, std::chrono::milliseconds retention,
                                 store_completion<blob_put_result> done) {
  check_blob_put(reference, bytes, retention);
  auto arguments = blob(reference);
  arguments.reserve(arguments.size() + bytes.size() + 64);
  arguments.add(bytes);
  arguments.add(digits_of(retention));
  connection_.submit(put_script(), std::move(arguments), true, [done = std::move(done)](redis_answer answer) mutable {
    if (!answer)
      return done(answer.failure());
    if (!is_integer(**answer) || (*answer)->integer < 0 || (*answer)->integer > 2)
      return done(not_understood());
    done(static_cast<blob_put_result>((*answer)->integer));
  });
}

void redis_relocation_store::read_blob(std::string reference, store_completion<std::optional<blob_value>> done) {
  check_blob_reference(reference);
  connection_.submit(read_script(), blob(reference), false, [done = std::move(done)](redis_answer answer) mutable {
    if (answer)
      done(blob_in(**answer));
    else
      done(answer.failure());
  });
}

void redis_relocation_store::renew(std::string reference, std::chrono::milliseconds retention,
                                   store_completion<bool> done) {
  check_blob_reference(reference);
  check_blob_retention(retention);
  auto arguments = blob(reference);
  arguments.add(digits_of(retention));
  connection_.submit(renew_script(), std::move(arguments), true, [done = std::move(done)](redis_answer answer) mutable {
    if (!answer)
      return done(answer.failure());
    if (!is_integer(**answer))
      return done(not_understood());
    done((*answer)->integer == 1);
  });
}

void redis_relocation_store::erase(std::string reference, store_completion<std::monostate> done) {
  check_blob_reference(reference);
  connection_.submit(erase_script(), blob(reference), true, [done = std::move(done)](redis_answer answer) mutable {
    if (answer)
      done(std::monostate{});
    else
      done(answer.failure());
  });
}

} // namespace zlink::adapters

namespace zlink {

std::shared_ptr<relocation_store> make_redis_relocation_store(redis_options options) {
  return std::make_shared<adapters::redis_relocation_store>(std::move(options));
}

} // namespace zlink
