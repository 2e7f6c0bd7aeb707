// The index of a payload in the Relocation Store: what it is, and where its parts are (S-122 to S-124).
#pragma once

#include "zlink/placement/records.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zlink::placement {

struct payload_chunk {
  std::string reference;
  std::size_t offset = 0; ///< in the payload; follows from the order
  std::uint64_t size = 0;
  content_digest digest{};
  friend bool operator==(const payload_chunk&, const payload_chunk&) = default;
};

/// Stored last, under the payload's own reference, and never changed. A payload that fits into one chunk stands in it.
struct payload_root {
  static constexpr std::size_t chunk_limit = 4'096; ///< so a payload has 256 GiB at most
  std::uint64_t size = 0;
  content_digest digest{}; ///< of the whole
  std::string whole;
  std::vector<payload_chunk> chunks;
  friend bool operator==(const payload_root&, const payload_root&) = default;
};

std::string encode(const payload_root& root);
/// Nothing for bytes that are no root of this version.
std::optional<payload_root> decode_payload_root(std::string_view bytes);

/// The chunks of `bytes`, each of `relocation_store::chunk_bytes` but the last.
std::vector<payload_chunk> cut_payload(const std::string& reference, std::string_view bytes);
/// Where they are, for who knows the payload's size; none if it fits into its root.
std::vector<std::string> chunk_references(const std::string& reference, std::uint64_t size);

} // namespace zlink::placement
