// CRC-32C of what travels in a move (L-91, L-134).
#pragma once

#include "zlink/packet_type.hpp"

#include <cstdint>

namespace zlink::detail {

/// Of `more` behind what gave `before`; 0 begins.
std::uint32_t crc32c(std::uint32_t before, byte_view more) noexcept;

} // namespace zlink::detail
