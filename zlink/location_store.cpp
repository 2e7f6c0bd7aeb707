#include "zlink/location_store.hpp"

#include "zlink/identity.hpp"

#include <algorithm>
#include <compare>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace zlink {

namespace {

[[noreturn]] void out_of_bounds(std::string_view what, std::size_t bytes, std::string_view range) {
  throw std::invalid_argument{std::string{what} + " has " + std::to_string(bytes) + " bytes; allowed are "
                              + std::string{range}};
}

/// Every operation passes here, and nearly every key is plain ASCII: eight bytes at a time before the full check.
bool is_utf8_text(std::string_view text) noexcept {
  constexpr std::uint64_t high_bits = 0x8080'8080'8080'8080ULL;
  while (text.size() >= sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, text.data(), sizeof word);
    if ((word & high_bits) != 0)
      break;
    text.remove_prefix(sizeof word);
  }
  return detail::is_utf8(text);
}

void check_condition(const store_condition& condition) {
  check_store_key(condition.key);
  const auto size = condition.operand.size();
  switch (condition.what) {
    case store_condition::test::missing:
      if (size != 0)
        throw std::invalid_argument{"store condition 'missing' takes no operand"};
      break;
    case store_condition::test::version:
      if (size == 0 || size > store_bounds::version_bytes)
        out_of_bounds("store version", size, "1 to 4096");
      break;
    case store_condition::test::value:
      if (size > store_bounds::value_bytes)
        out_of_bounds("store condition value", size, "0 to 1048576");
      break;
  }
}

void check_mutation(const store_mutation& mutation) {
  check_store_key(mutation.key);
  if (mutation.put && mutation.put->size() > store_bounds::value_bytes)
    out_of_bounds("store value", mutation.put->size(), "0 to 1048576");
  if (mutation.retention && !mutation.put)
    throw std::invalid_argument{"store retention goes with put only"};
  if (mutation.retention && mutation.retention->count() <= 0)
    throw std::invalid_argument{"store retention must be positive"};
}

/// Keys in the order of their hashes: keys of one batch tend to begin alike, so to compare them as texts takes long.
using hashed_key = std::pair<std::size_t, std::string_view>;
hashed_key hashed(std::string_view key) noexcept { return {std::hash<std::string_view>{}(key), key}; }

/// Sorts `keys`; throws if one is there twice.
void check_distinct(std::vector<hashed_key>& keys, const char* where) {
  std::sort(keys.begin(), keys.end());
  if (std::adjacent_find(keys.begin(), keys.end()) != keys.end())
    throw std::invalid_argument{std::string{"store batch names a key twice among its "} + where};
}

/// How many different keys two sorted lists of distinct keys hold together.
std::size_t count_union(const std::vector<hashed_key>& a, const std::vector<hashed_key>& b) noexcept {
  std::size_t shared = 0;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    const auto order = *i <=> *j;
    shared += order == 0;
    i += order <= 0;
    j += order >= 0;
  }
  return a.size() + b.size() - shared;
}

} // namespace

std::size_t encoded_size(const store_condition& condition) noexcept {
  return condition.key.size() + condition.operand.size();
}

std::size_t encoded_size(const store_mutation& mutation) noexcept {
  return mutation.key.size() + (mutation.put ? mutation.put->size() : 0);
}

std::size_t encoded_size(const store_scan_item& item) noexcept {
  return item.key.size() + item.value.bytes.size() + item.value.version.size();
}

void check_store_key(const std::string& key) {
  if (key.empty() || key.size() > store_bounds::key_bytes)
    out_of_bounds("store key", key.size(), "1 to 1024");
  if (!is_utf8_text(key))
    throw std::invalid_argument{"store key is not valid UTF-8"};
}

void check_store_batch(const store_batch& batch) {
  std::size_t bytes = 0;
  std::vector<hashed_key> conditions;
  std::vector<hashed_key> mutations;
  conditions.reserve(batch.conditions.size());
  mutations.reserve(batch.mutations.size());
  for (const auto& condition : batch.conditions) {
    check_condition(condition);
    bytes += encoded_size(condition);
    conditions.push_back(hashed(condition.key));
  }
  for (const auto& mutation : batch.mutations) {
    check_mutation(mutation);
    bytes += encoded_size(mutation);
    mutations.push_back(hashed(mutation.key));
  }
  check_distinct(conditions, "conditions");
  check_distinct(mutations, "mutations");
  if (const auto keys = count_union(conditions, mutations); keys > store_bounds::batch_keys)
    throw std::invalid_argument{"store batch names " + std::to_string(keys) + " keys; at most 2048 are allowed"};
  if (bytes > store_bounds::batch_bytes)
    out_of_bounds("store batch", bytes, "0 to 4194304");
}

void check_store_scan(const std::string& prefix, const std::string& cursor, std::size_t limit) {
  if (prefix.size() > store_bounds::prefix_bytes)
    out_of_bounds("store scan prefix", prefix.size(), "0 to 1024");
  if (cursor.size() > store_bounds::cursor_bytes)
    out_of_bounds("store scan cursor", cursor.size(), "1 to 4096");
  if (limit == 0 || limit > store_bounds::page_items)
    throw std::invalid_argument{"store scan limit is " + std::to_string(limit) + "; allowed are 1 to 1000"};
}

void check_blob_reference(const std::string& reference) {
  if (reference.empty() || reference.size() > relocation_store::reference_bytes)
    out_of_bounds("blob reference", reference.size(), "1 to 4096");
  if (!is_utf8_text(reference))
    throw std::invalid_argument{"blob reference is not valid UTF-8"};
}

void check_blob_retention(std::chrono::milliseconds retention) {
  if (retention.count() <= 0)
    throw std::invalid_argument{"blob retention must be positive"};
}

void check_blob_put(const std::string& reference, const store_bytes& bytes, std::chrono::milliseconds retention) {
  check_blob_reference(reference);
  check_blob_retention(retention);
  if (bytes.size() > relocation_store::blob_bytes)
    out_of_bounds("blob", bytes.size(), "0 to 67174400");
}

} // namespace zlink
