// How numbers and texts become bytes in a record: variable-length numbers, length-prefixed texts, fixed 64-bit random
// values.
#pragma once

#include "zlink/identity.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace zlink::placement {

class byte_writer {
public:
  explicit byte_writer(std::size_t expected) { bytes_.reserve(expected); }
  void byte(std::uint8_t value) { bytes_ += static_cast<char>(value); }
  /// 7 bits a byte, low bits first; the shortest form, so equal values are equal bytes.
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      byte(static_cast<std::uint8_t>(value | 0x80));
    byte(static_cast<std::uint8_t>(value));
  }
  /// Eight bytes, low first: for random values, which no variable length would shorten.
  void fixed64(std::uint64_t value) {
    char eight[8];
    for (int i = 0; i < 8; ++i)
      eight[i] = static_cast<char>(value >> (8 * i));
    bytes_.append(eight, sizeof eight);
  }
  void id(const detail::unique_id& value) {
    fixed64(value.high);
    fixed64(value.low);
  }
  void text(std::string_view value) {
    number(value.size());
    bytes_.append(value);
  }
  void raw(const void* data, std::size_t size) { bytes_.append(static_cast<const char*>(data), size); }
  std::string take() { return std::move(bytes_); }

private:
  std::string bytes_;
};

/// Reads never go past the end: after the first wrong byte everything reads as zero or empty and `ok()` is false.
class byte_reader {
public:
  explicit byte_reader(std::string_view bytes) : left_(bytes) {}
  bool ok() const noexcept { return ok_; }
  /// Everything was read and nothing was wrong.
  bool at_end() const noexcept { return ok_ && left_.empty(); }
  void fail() noexcept {
    ok_ = false;
    left_ = {};
  }

  std::uint8_t byte() noexcept {
    if (left_.empty()) {
      fail();
      return 0;
    }
    const auto value = static_cast<std::uint8_t>(left_.front());
    left_.remove_prefix(1);
    return value;
  }
  /// Anything but the shortest form is refused.
  std::uint64_t number() noexcept {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto next = byte();
      if (shift == 63 && next > 1)
        break;
      value |= static_cast<std::uint64_t>(next & 0x7f) << shift;
      if (next < 0x80) {
        if (next == 0 && shift > 0)
          break;
        return value;
      }
    }
    fail();
    return 0;
  }
  std::uint64_t number_up_to(std::uint64_t limit) noexcept {
    const auto value = number();
    if (value <= limit)
      return value;
    fail();
    return 0;
  }
  std::uint64_t fixed64() noexcept {
    unsigned char eight[8]{};
    raw(eight, sizeof eight);
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i)
      value |= std::uint64_t{eight[i]} << (8 * i);
    return value;
  }
  detail::unique_id id() noexcept {
    const auto high = fixed64();
    return {high, fixed64()};
  }
  std::string text() {
    const auto size = number();
    if (size > left_.size())
      fail();
    if (!ok_)
      return {};
    std::string value{left_.substr(0, size)};
    left_.remove_prefix(size);
    return value;
  }
  void raw(void* data, std::size_t size) noexcept {
    if (size > left_.size())
      return fail();
    std::memcpy(data, left_.data(), size);
    left_.remove_prefix(size);
  }

private:
  std::string_view left_;
  bool ok_ = true;
};

} // namespace zlink::placement
