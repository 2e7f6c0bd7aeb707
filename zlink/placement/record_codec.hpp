// Records to bytes and back. Equal records are equal bytes, which value conditions rely on (S-13).
#pragma once

#include "zlink/placement/records.hpp"

#include <string>
#include <string_view>
#include <variant>

namespace zlink::placement {

/// Why bytes are no record that this version of the layer may use. Neither is ever guessed around (S-21).
enum class record_fault : std::uint8_t {
  corrupt,         ///< damaged, of another kind, or out of range
  unknown_version, ///< written by a layer with another record structure
};

template <class Record>
using decoded = std::variant<Record, record_fault>;

/// The structure version in the second byte of every record.
inline constexpr std::uint8_t record_version = 1;

std::string encode(const row_record& record);
std::string encode(const entry_claim& record);
std::string encode(const object_record& record);
std::string encode(const lease_record& record);
std::string encode(const descriptor_record& record);
std::string encode(const capacity_record& record);
std::string encode(const creation_terminal& record);
std::string encode(const counter_record& record);
std::string encode(const epoch_record& record);
std::string encode(const aggregate_record& record);
std::string encode(const participant_page& record);

/// Writes the numbers of its incarnation into an encoded row, or that of its owner into an aggregate record: they are
/// drawn inside the batch that stores it (S-31).
void stamp_generations(store_bytes& encoded, const new_generations& numbers) noexcept;

/// Defined for every record above.
template <class Record>
decoded<Record> decode(std::string_view bytes);

template <>
decoded<row_record> decode(std::string_view bytes);
template <>
decoded<entry_claim> decode(std::string_view bytes);
template <>
decoded<object_record> decode(std::string_view bytes);
template <>
decoded<lease_record> decode(std::string_view bytes);
template <>
decoded<descriptor_record> decode(std::string_view bytes);
template <>
decoded<capacity_record> decode(std::string_view bytes);
template <>
decoded<creation_terminal> decode(std::string_view bytes);
template <>
decoded<counter_record> decode(std::string_view bytes);
template <>
decoded<epoch_record> decode(std::string_view bytes);
template <>
decoded<aggregate_record> decode(std::string_view bytes);
template <>
decoded<participant_page> decode(std::string_view bytes);

/// What a read showed, decoded.
template <class Record>
decoded<observed<Record>> observe(const store_read_result& seen) {
  observed<Record> result;
  result.now = seen.now;
  if (seen.found) {
    auto record = decode<Record>(seen.found->bytes);
    if (const auto* fault = std::get_if<record_fault>(&record))
      return *fault;
    result.record = std::move(std::get<Record>(record));
    result.version = seen.found->version;
    result.expires_at = seen.found->expires_at;
  }
  return result;
}

} // namespace zlink::placement
