// What a caller may attach to a message besides its packet. Includes nothing of CAF.
#pragma once

#include "zlink/packet_type.hpp"

#include <atomic>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace zlink {

/// A small ordered set of texts by key (M-38). Keys are 1 byte or more, keys and values UTF-8 without NUL, and the
/// whole set takes at most 1,024 bytes encoded. One pointer in size, null when empty; copies share what they hold until
/// one of them is changed, so every match of a multicast has the same snapshot. Different objects may be used from
/// different threads, one object from one thread at a time unless all only read.
class message_metadata {
public:
  static constexpr std::size_t encoded_bytes_limit = 1024;

  message_metadata() = default;
  message_metadata(const message_metadata& other) noexcept;
  message_metadata(message_metadata&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  message_metadata& operator=(message_metadata other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~message_metadata() { release(); }

  /// Adds, or replaces the value of that key. Throws `std::invalid_argument` and changes nothing if a text is not
  /// allowed or the set would exceed its limit.
  void set(std::string_view key, std::string_view value);

  /// The value of that key, or nothing. Valid until this object is changed or gone (M-39).
  std::optional<std::string_view> get(std::string_view key) const noexcept;
  bool empty() const noexcept { return block_ == nullptr; }
  std::size_t size() const noexcept;
  /// All pairs in order of key bytes. Views as with `get`.
  std::vector<std::pair<std::string_view, std::string_view>> entries() const;

  /// The form on the wire: a count, then for each pair in key order the length and bytes of key and value; lengths are
  /// LEB128. An empty set has no bytes. Valid until this object is changed or gone.
  byte_view encoded() const noexcept;
  /// Throws `decode_error` for anything that `encoded` does not produce: a wrong count or length, a key twice or out of
  /// order, text that is not allowed, more than 1,024 bytes.
  static message_metadata decode(byte_view from);

  friend bool operator==(const message_metadata& a, const message_metadata& b) noexcept;

private:
  struct block;
  explicit message_metadata(block* held) noexcept : block_(held) {}
  void release() noexcept;

  block* block_ = nullptr;
};

} // namespace zlink
