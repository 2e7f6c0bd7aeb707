// The Location Store on a Redis server (S-131 to S-137).
#include "adapters/location/redis_connection.hpp"
#include "adapters/location/redis_location_scripts.hpp"
#include "zlink/clock.hpp"

#include <atomic>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zlink::adapters {

namespace {

constexpr std::string_view never = "0000000000000000";
constexpr std::size_t cursor_head = redis_version_bytes + 1; // a snapshot's id and ':', then the last key

/// What no script of ours answers: somebody else writes under our prefix.
store_time time_at(std::int64_t microseconds) noexcept { return store_time{std::chrono::microseconds{microseconds}}; }

std::optional<store_time> time_in(const redisReply* part) noexcept {
  return part != nullptr && is_instant(*part) ? std::optional{time_at(part->integer)} : std::nullopt;
}

/// A stored value: version, expiry, bytes.
std::optional<store_value> parse_value(const redisReply* part) {
  if (part == nullptr || !is_string(*part) || text_of(*part).size() < redis_header_bytes)
    return std::nullopt;
  const auto text = text_of(*part);
  const auto expiry = text.substr(redis_version_bytes, redis_header_bytes - redis_version_bytes);
  store_value value;
  value.version = text.substr(0, redis_version_bytes);
  value.bytes = text.substr(redis_header_bytes);
  if (expiry != never) {
    std::int64_t microseconds = 0;
    if (std::from_chars(expiry.data(), expiry.data() + expiry.size(), microseconds).ec != std::errc{}
        || !is_instant(microseconds))
      return std::nullopt;
    value.expires_at = time_at(microseconds);
  }
  return value;
}

store_outcome<store_read_result> read_result(const redisReply& reply) {
  store_read_result result;
  const auto now = time_in(part_of(reply, 0));
  if (!now)
    return not_understood();
  result.now = *now;
  if (const auto* part = part_of(reply, 1)) {
    result.found = parse_value(part);
    if (!result.found)
      return not_understood();
    if (result.found->expires_at && *result.found->expires_at <= result.now)
      result.found.reset();
  }
  return result;
}

store_outcome<store_write_result> write_result(const redisReply& reply, const std::vector<bool>& puts) {
  const auto* applied = part_of(reply, 0);
  const auto now = time_in(part_of(reply, 1));
  if (applied == nullptr || !is_integer(*applied) || !now)
    return not_understood();
  store_write_result result;
  result.now = *now;
  result.applied = applied->integer == 1;
  if (!result.applied)
    return result;
  const auto* version = part_of(reply, 2);
  if (version == nullptr || text_of(*version).size() != redis_version_bytes)
    return not_understood();
  result.versions.reserve(puts.size());
  for (const bool put : puts)
    result.versions.emplace_back(put ? text_of(*version) : std::string_view{});
  return result;
}

store_outcome<store_scan_result> scan_result(const redisReply& reply) {
  const auto* served = part_of(reply, 0);
  const auto now = time_in(part_of(reply, 1));
  if (served == nullptr || !is_integer(*served) || !now)
    return not_understood();
  store_scan_result result;
  result.now = *now;
  result.expired = served->integer == 0;
  if (result.expired)
    return result;
  const auto* snapshot = part_of(reply, 2);
  const auto* last_key = part_of(reply, 3);
  if (snapshot == nullptr || last_key == nullptr)
    return not_understood();
  if (!text_of(*snapshot).empty())
    result.next.append(text_of(*snapshot)).append(1, ':').append(text_of(*last_key));
  for (std::size_t at = 4; const auto* key = part_of(reply, at); at += 2) {
    auto value = parse_value(part_of(reply, at + 1));
    if (!value)
      return not_understood();
    result.items.push_back({std::string{text_of(*key)}, std::move(*value)});
  }
  return result;
}

/// Gives `done` what `parse` makes of the reply, or the failure.
template <class T, class Parse>
auto deliver(store_completion<T> done, Parse parse) {
  return [done = std::move(done), parse = std::move(parse)](redis_answer answer) mutable {
    if (answer)
      done(parse(**answer));
    else
      done(answer.failure());
  };
}

void add_condition(redis_arguments& arguments, const store_condition& condition) {
  switch (condition.what) {
    case store_condition::test::missing: arguments.add("m"); break;
    case store_condition::test::version: arguments.add("v"); break;
    case store_condition::test::value: arguments.add("b"); break;
  }
  arguments.add(condition.key);
  if (condition.what != store_condition::test::missing)
    arguments.add(condition.operand);
}

void add_mutation(redis_arguments& arguments, const store_mutation& mutation) {
  arguments.add(!mutation.put ? "d" : mutation.retention ? "r" : "p");
  arguments.add(mutation.key);
  if (mutation.put)
    arguments.add(*mutation.put);
  if (mutation.retention)
    arguments.add(std::to_string(mutation.retention->count()));
}

} // namespace

class redis_location_store final : public location_store {
public:
  explicit redis_location_store(redis_options options);

  void read(std::string key, store_completion<store_read_result> done) override;
  void write(store_batch batch, store_completion<store_write_result> done) override;
  void scan(std::string prefix, std::string cursor, std::size_t limit,
            store_completion<store_scan_result> done) override;
  bool process_local() const noexcept override { return false; }

private:
  std::string new_epoch();

  const std::string key_;
  const std::uint64_t epochs_from_;
  std::atomic<std::uint64_t> epochs_{0};
  redis_connection connection_;
};

redis_location_store::redis_location_store(redis_options options)
  : key_("{" + options.key_prefix + "}:m"),
    epochs_from_(system_random{}.next()),
    connection_(std::move(options), {&redis_write_script(), &redis_read_script(), &redis_scan_script()}) {}

/// 16 hexadecimal digits, another with every request: so each data set that one of them begins has its own.
std::string redis_location_store::new_epoch() {
  const auto number = epochs_from_ + epochs_.fetch_add(1, std::memory_order_relaxed);
  char digits[redis_epoch_bytes];
  for (std::size_t i = 0; i < redis_epoch_bytes; ++i)
    digits[i] = "0123456789abcdef"[number >> (60 - 4 * i) & 15];
  return {digits, redis_epoch_bytes};
}

void redis_location_store::read(std::string key, store_completion<store_read_result> done) {
  check_store_key(key);
  redis_arguments arguments{key_};
  arguments.add(key);
  connection_.submit(redis_read_script(), std::move(arguments), false, deliver(std::move(done), &read_result));
}

void redis_location_store::write(store_batch batch, store_completion<store_write_result> done) {
  check_store_batch(batch);
  redis_arguments arguments{key_};
  std::size_t bytes = 128;
  for (const auto& condition : batch.conditions)
    bytes += encoded_size(condition) + 32;
  for (const auto& mutation : batch.mutations)
    bytes += encoded_size(mutation) + 64;
  arguments.reserve(bytes);
  arguments.add(new_epoch());
  arguments.add(std::to_string(batch.conditions.size()));
  for (const auto& condition : batch.conditions)
    add_condition(arguments, condition);
  std::vector<bool> puts;
  for (const auto& mutation : batch.mutations) {
    add_mutation(arguments, mutation);
    puts.push_back(mutation.put.has_value());
  }
  connection_.submit(
    redis_write_script(), std::move(arguments), true,
    deliver(std::move(done), [puts = std::move(puts)](const redisReply& reply) { return write_result(reply, puts); }));
}

void redis_location_store::scan(std::string prefix, std::string cursor, std::size_t limit,
                                store_completion<store_scan_result> done) {
  check_store_scan(prefix, cursor, limit);
  redis_arguments arguments{key_};
  arguments.add(prefix);
  if (cursor.empty()) {
    arguments.add("");
    arguments.add("");
  } else { // a foreign one names a snapshot that does not exist: Expired
    const bool ours = cursor.size() > cursor_head && cursor[cursor_head - 1] == ':';
    arguments.add(ours ? std::string_view{cursor}.substr(0, redis_version_bytes) : std::string_view{"-"});
    arguments.add(ours ? std::string_view{cursor}.substr(cursor_head) : std::string_view{"-"});
  }
  arguments.add(std::to_string(limit));
  arguments.add(new_epoch());
  connection_.submit(redis_scan_script(), std::move(arguments), false, deliver(std::move(done), &scan_result));
}

} // namespace zlink::adapters

namespace zlink {

std::shared_ptr<location_store> make_redis_location_store(redis_options options) {
  return std::make_shared<adapters::redis_location_store>(std::move(options));
}

} // namespace zlink
