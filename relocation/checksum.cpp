#include "relocation/checksum.hpp"

#include <array>
#include <cstddef>

namespace zlink::detail {

namespace {

constexpr std::uint32_t polynomial = 0x82f6'3b78; // Castagnoli, reflected

constexpr std::size_t lanes = 8; // bytes at once, each with a table of its own
using tables = std::array<std::array<std::uint32_t, 256>, lanes>;

constexpr tables make_tables() {
  tables made{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    auto value = i;
    for (int bit = 0; bit < 8; ++bit)
      value = (value & 1) != 0 ? (value >> 1) ^ polynomial : value >> 1;
    made[0][i] = value;
  }
  for (std::size_t lane = 1; lane < lanes; ++lane)
    for (std::size_t i = 0; i < 256; ++i)
      made[lane][i] = (made[lane - 1][i] >> 8) ^ made[0][made[lane - 1][i] & 0xff];
  return made;
}

constexpr tables table = make_tables();

std::uint32_t byte_at(byte_view bytes, std::size_t at) noexcept { return std::to_integer<std::uint32_t>(bytes[at]); }

} // namespace

std::uint32_t crc32c(std::uint32_t before, byte_view more) noexcept {
  auto crc = ~before;
  std::size_t at = 0;
  for (; more.size() - at >= lanes; at += lanes) {
    crc ^= byte_at(more, at) | byte_at(more, at + 1) << 8 | byte_at(more, at + 2) << 16 | byte_at(more, at + 3) << 24;
    crc = table[7][crc & 0xff] ^ table[6][crc >> 8 & 0xff] ^ table[5][crc >> 16 & 0xff] ^ table[4][crc >> 24]
          ^ table[3][byte_at(more, at + 4)] ^ table[2][byte_at(more, at + 5)] ^ table[1][byte_at(more, at + 6)]
          ^ table[0][byte_at(more, at + 7)];
  }
  for (; at < more.size(); ++at)
    crc = (crc >> 8) ^ table[0][(crc ^ byte_at(more, at)) & 0xff];
  return ~crc;
}

} // namespace zlink::detail
