// What source and target of a move say to each other: control records of one link, which keep their order; the operation id
// of each is the RelocationId (L-8, L-14).
#pragma once

#include "zlink/codec.hpp"
#include "zlink/identity.hpp"
#include "zlink/messaging/control_frames.hpp"
#include "zlink/packet.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace zlink::detail {

/// One object of the unit. Later records name it by its place in the list.
struct moving_part {
  bool actor = false;
  std::string id;
  std::uint64_t generation = 0;
  std::uint64_t authority = 0;
};

/// `restore`: opens the lane. The payload follows in chunks (L-91).
struct restore_request {
  std::uint64_t attempt = 0;
  std::uint8_t kind = 0; ///< `unit_kind`
  std::uint64_t source_lifecycle = 0;
  std::uint64_t target_lifecycle = 0;
  std::vector<moving_part> parts;
  std::uint64_t total_bytes = 0;
  std::uint32_t chunks = 0;
  std::uint32_t sum = 0;     ///< CRC-32C over the whole payload
  std::int64_t left_ms = 0;  ///< of its validity: clocks differ (L-16)
  std::uint64_t aggregate_high = 0; ///< of an aggregate, else zero (L-17)
  std::uint64_t aggregate_low = 0;
};

/// `restore_chunk` is no packet: its content shall be copied once on either side (L-98). The move, the attempt and the ordinal as
/// fixed numbers, least byte first, then the content.
struct chunk_view {
  unique_id move;
  std::uint64_t attempt = 0;
  std::uint32_t ordinal = 0;
  byte_view content;
};
inline constexpr std::size_t chunk_header_bytes = 8 + 8 + 8 + 4;

inline bytes encode_chunk(const chunk_view& chunk) {
  bytes to(chunk_header_bytes + chunk.content.size());
  auto* at = to.data();
  const auto put = [&at](std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i)
      *at++ = static_cast<std::byte>(value >> (8 * i));
  };
  put(chunk.move.high, 8);
  put(chunk.move.low, 8);
  put(chunk.attempt, 8);
  put(chunk.ordinal, 4);
  std::ranges::copy(chunk.content, at);
  return to;
}

/// Throws `decode_error`. The content is a part of `from`.
inline chunk_view decode_chunk(byte_view from) {
  if (from.size() < chunk_header_bytes)
    throw decode_error{"a piece of a move that ends within its head"};
  std::size_t at = 0;
  const auto get = [&](int width) {
    std::uint64_t value = 0;
    for (int i = 0; i < width; ++i)
      value |= std::to_integer<std::uint64_t>(from[at++]) << (8 * i);
    return value;
  };
  chunk_view chunk;
  chunk.move.high = get(8);
  chunk.move.low = get(8);
  chunk.attempt = get(8);
  chunk.ordinal = static_cast<std::uint32_t>(get(4));
  chunk.content = from.subspan(at);
  return chunk;
}

/// `chunks_taken`: frees budget, and says nothing else (L-94).
struct chunks_taken {
  std::uint64_t attempt = 0;
  std::uint64_t bytes = 0; ///< since the attempt began
};

/// `restore_refused`: nothing of this attempt is left here, and it can never commit (S-99).
struct restore_refused {
  std::uint64_t attempt = 0;
  std::uint8_t reason = 0; ///< `relocate_reason`
  std::uint8_t kind = 0;   ///< `error_kind`
  std::string text;
};

/// `relay_ready` (L-127).
struct ready_note {
  std::uint64_t attempt = 0;
  bool crowded = false; ///< the target's application has to share its processors: others need not hurry
};

/// `move_abandoned`: the source goes on with the unit, whatever was sent is void.
struct attempt_note {
  std::uint64_t attempt = 0;
};

/// `relay`: a message that the source has held, or that came to it behind the cutover (L-133, L-134).
struct relayed_message {
  std::uint64_t attempt = 0;
  std::uint32_t batch = 0; ///< each sending of the whole; a newer one replaces what came before (L-137). 0: behind the cutover
  std::uint32_t part = 0;
  std::vector<std::byte> frame;
};

/// `cutover` (L-134).
struct cutover_mark {
  std::uint64_t attempt = 0;
  std::uint32_t batch = 0;
  std::uint64_t records = 0;
  std::uint32_t sum = 0; ///< CRC-32C over their frames
};

/// `route_moved`: told to a sender whose message was followed; he drops the route that he used (M-85).
struct route_moved {
  bool actor = false;
  std::string id;
  std::uint64_t generation = 0;
  std::uint64_t authority = 0;
};

ZLINK_PACKET(moving_part, "zlink.move.part", actor, id, generation, authority)
ZLINK_PACKET(restore_request, "zlink.move.restore", attempt, kind, source_lifecycle, target_lifecycle, parts, total_bytes, chunks,
             sum, left_ms, aggregate_high, aggregate_low)
ZLINK_PACKET(chunks_taken, "zlink.move.taken", attempt, bytes)
ZLINK_PACKET(restore_refused, "zlink.move.refused", attempt, reason, kind, text)
ZLINK_PACKET(ready_note, "zlink.move.ready", attempt, crowded)
ZLINK_PACKET(attempt_note, "zlink.move.note", attempt)
ZLINK_PACKET(relayed_message, "zlink.move.relay", attempt, batch, part, frame)
ZLINK_PACKET(cutover_mark, "zlink.move.cutover", attempt, batch, records, sum)
ZLINK_PACKET(route_moved, "zlink.move.route", actor, id, generation, authority)

inline constexpr std::uint64_t control_head_room = 16; ///< what a frame has besides what it carries

/// Ready to be sent as `relay`. Throws `encode_error` where the peer takes no frame of that size: it would end the link, and
/// everything on it. A message that was held has met no limit so far: nothing is encoded inside a host (L-64).
inline bytes encode_relay(unique_id move, const relayed_message& what, std::uint64_t frame_limit) {
  auto made = encode(control_envelope{move.high, move.low, encode(what)});
  if (made.size() + control_head_room > frame_limit)
    throw encode_error{"a message on its way to another node takes " + std::to_string(made.size()) + " bytes; that node accepts "
                       + std::to_string(frame_limit)};
  return made;
}

} // namespace zlink::detail
