// Bits and codes of the link protocol that its encoder and its decoder share.
#pragma once

#include <cstdint>

namespace zlink::detail {

// First byte of a message frame's body.
inline constexpr std::uint8_t message_request = 0x01;
inline constexpr std::uint8_t message_deadline = 0x02;
inline constexpr std::uint8_t message_metadata_flag = 0x04;

// First byte of an encoded header: the target kind in the low three bits.
inline constexpr std::uint8_t header_kind_mask = 0x07;
// A Spot or an Actor, to a former owner of which the message had been sent: how often stands behind the fence (L-182).
inline constexpr std::uint8_t header_followed_spot = 5;
inline constexpr std::uint8_t header_followed_actor = 6;
// An Actor, and no other incarnation of it than that of the fence (N-83).
inline constexpr std::uint8_t header_bound_actor = 7;
inline constexpr std::uint8_t header_flow = 0x08;
inline constexpr std::uint8_t header_fence = 0x10;
inline constexpr std::uint8_t header_intent = 0x20;
inline constexpr std::uint8_t header_activation = 0x40;
inline constexpr std::uint8_t header_reply_node = 0x80;

// Content types: the two built-in ones take one byte.
inline constexpr std::uint8_t content_text = 0;
inline constexpr std::uint8_t content_binary = 1;
inline constexpr std::uint8_t content_json = 2;

} // namespace zlink::detail
