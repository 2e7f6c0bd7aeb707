#include "zlink/codec/base64.hpp"

#include <algorithm>
#include <cstdint>

namespace zlink::detail {

namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// 0..63, or -1 for a character outside the alphabet.
int digit(char c) noexcept {
  if (c >= 'A' && c <= 'Z')
    return c - 'A';
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 26;
  if (c >= '0' && c <= '9')
    return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

} // namespace

void append_base64(std::string& to, byte_view from) {
  to.reserve(to.size() + (from.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < from.size(); i += 3) {
    const auto here = std::min<std::size_t>(3, from.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j)
      group = group << 8 | (j < here ? static_cast<std::uint32_t>(from[i + j]) : 0);
    for (std::size_t j = 0; j < 4; ++j)
      to += j <= here ? alphabet[(group >> (18 - 6 * j)) & 0x3f] : '=';
  }
}

std::optional<bytes> parse_base64(std::string_view text) {
  if (text.size() % 4 != 0)
    return std::nullopt;
  bytes found;
  found.reserve(text.size() / 4 * 3);
  while (!text.empty()) {
    const std::size_t pads = text.size() > 4 ? 0 : text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      const int value = j < 4 - pads ? digit(text[j]) : 0;
      if (value < 0)
        return std::nullopt;
      group = group << 6 | static_cast<std::uint32_t>(value);
    }
    if ((group & ((1U << (8 * pads)) - 1)) != 0)
      return std::nullopt; // bits that no encoder sets: one value would have several texts
    for (std::size_t j = 0; j < 3 - pads; ++j)
      found.push_back(static_cast<std::byte>(group >> (16 - 8 * j)));
    text.remove_prefix(4);
  }
  return found;
}

} // namespace zlink::detail
