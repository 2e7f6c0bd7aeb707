#include "zlink/identity.hpp"

#include <array>
#include <cstring>
#include <stdexcept>

namespace zlink {

const char* to_string(spot_kind kind) noexcept {
  switch (kind) {
    case spot_kind::invalid: return "invalid";
    case spot_kind::entry: return "entry";
    case spot_kind::user: return "user";
    case spot_kind::instance: return "instance";
  }
  return "invalid";
}

std::optional<spot_kind> parse_spot_kind(std::string_view name) noexcept {
  for (auto kind : {spot_kind::invalid, spot_kind::entry, spot_kind::user, spot_kind::instance})
    if (name == to_string(kind))
      return kind;
  return std::nullopt;
}

namespace detail {

namespace {

constexpr std::size_t uuid_length = 36;

bool is_uuid_v4(std::string_view text) noexcept {
  if (text.size() != uuid_length)
    return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      if (c != '-')
        return false;
    } else if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
      return false;
    }
  }
  return text[14] == '4' && (text[19] == '8' || text[19] == '9' || text[19] == 'a' || text[19] == 'b');
}

/// Length of the well-formed sequence at the start of `s`, 0 if there is none.
std::size_t utf8_sequence(std::string_view s) noexcept {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const auto tail = [&](std::size_t i, unsigned char low = 0x80, unsigned char high = 0xbf) {
    return i < s.size() && at(i) >= low && at(i) <= high;
  };
  const unsigned char lead = at(0);
  if (lead < 0x80)
    return 1;
  if (lead >= 0xc2 && lead <= 0xdf)
    return tail(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    const unsigned char low = lead == 0xe0 ? 0xa0 : 0x80;
    const unsigned char high = lead == 0xed ? 0x9f : 0xbf;
    return tail(1, low, high) && tail(2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const unsigned char low = lead == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = lead == 0xf4 ? 0x8f : 0xbf;
    return tail(1, low, high) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

/// Eight bytes at a time, the last ones together with some that were looked at before.
bool is_ascii(std::string_view text) noexcept {
  constexpr std::uint64_t high_bits = 0x8080'8080'8080'8080;
  std::uint64_t eight = 0;
  std::uint64_t seen = 0;
  if (text.size() < sizeof eight) {
    for (const char c : text)
      seen |= static_cast<unsigned char>(c);
    return (seen & high_bits) == 0;
  }
  for (std::size_t at = 0; at + sizeof eight <= text.size(); at += sizeof eight) {
    std::memcpy(&eight, text.data() + at, sizeof eight);
    seen |= eight;
  }
  std::memcpy(&eight, text.data() + text.size() - sizeof eight, sizeof eight);
  return ((seen | eight) & high_bits) == 0;
}

} // namespace

bool is_utf8(std::string_view text) noexcept {
  if (is_ascii(text)) // most text is
    return true;
  while (!text.empty()) {
    const auto length = utf8_sequence(text);
    if (length == 0)
      return false;
    text.remove_prefix(length);
  }
  return true;
}

bool is_valid_id(std::string_view id) noexcept { return !id.empty() && id.size() <= 255 && is_utf8(id); }

bool is_entry_spot_format(std::string_view id) noexcept {
  constexpr std::string_view word = "-entry-";
  if (id.size() < 1 + word.size() + uuid_length || !is_uuid_v4(id.substr(id.size() - uuid_length)))
    return false;
  id.remove_suffix(uuid_length);
  return id.ends_with(word);
}

void require_valid_id(std::string_view what, std::string_view id) {
  std::string reason;
  if (id.empty())
    reason = "is empty";
  else if (id.size() > 255)
    reason = "has " + std::to_string(id.size()) + " bytes";
  else if (!is_utf8(id))
    reason = "is not valid UTF-8";
  else
    return;
  throw std::invalid_argument{std::string{what} + ' ' + reason + "; it must be 1 to 255 bytes of UTF-8"};
}

std::string format_uuid_v4(unique_id random_bits) {
  std::uint64_t high = (random_bits.high & ~0xf000ULL) | 0x4000ULL;
  std::uint64_t low = (random_bits.low & ~0xc000'0000'0000'0000ULL) | 0x8000'0000'0000'0000ULL;
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(uuid_length);
  for (int i = 0; i < 32; ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20)
      text += '-';
    const std::uint64_t half = i < 16 ? high : low;
    text += digits[(half >> (60 - 4 * (i % 16))) & 0xf];
  }
  return text;
}

} // namespace detail
} // namespace zlink
