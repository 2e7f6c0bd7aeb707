// What waits to be written to one peer, in three paths that do not hold each other up: the link's own frames, replies and
// control, and data.
#pragma once

#include "zlink/packet_type.hpp"

#include <cstdint>
#include <deque>

namespace zlink::detail {

/// Frames in order, gathered into chunks that are written whole.
class frame_queue {
public:
  explicit frame_queue(std::size_t chunk_bytes) noexcept : chunk_bytes_(chunk_bytes) {}
  bool empty() const noexcept { return chunks_.empty(); }
  void append(byte_view frames);
  /// Of the chunk that `take` returns next; 0 if there is none.
  std::size_t front_bytes() const noexcept { return chunks_.empty() ? 0 : chunks_.front().size(); }
  bytes take();
  void clear() noexcept { chunks_.clear(); }

private:
  std::size_t chunk_bytes_;
  std::deque<bytes> chunks_;
};

} // namespace zlink::detail
