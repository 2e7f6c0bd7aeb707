// How batches lie in a TCP stream: four bytes of length, little endian, then the batch. Nothing here knows a socket.
#pragma once

#include "zlink/packet_type.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>

namespace zlink::detail {

inline constexpr std::size_t length_bytes = 4;
/// Largest batch that the form can carry.
inline constexpr std::uint64_t largest_frame = 0xffff'ffff;

std::array<std::byte, length_bytes> encode_length(std::uint32_t batch_bytes) noexcept;

/// The stream cannot be read any further: a batch of no bytes, or of more than the limit.
class bad_frame : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Cuts batches off a stream, in a buffer of its own. The buffer grows with what has arrived and never with what a length
/// claims: a length is compared with the limit as soon as it is there. Used by one thread at a time.
class frame_cutter {
public:
  /// Where the next bytes of the stream go, 1 byte or more. Views that `next` gave end here.
  std::span<std::byte> space();
  /// That many bytes have been put at the beginning of `space()`.
  void received(std::size_t count) noexcept {
    end_ += count;
    filled_ = end_ == capacity_;
  }
  /// The next batch if it is there as a whole. Throws `bad_frame`.
  std::optional<byte_view> next(std::uint64_t limit);

  /// Bytes that wait to be cut.
  std::size_t waiting() const noexcept { return end_ - begin_; }
  /// Memory in use.
  std::size_t capacity() const noexcept { return capacity_; }

private:
  void resize(std::size_t capacity);

  std::unique_ptr<std::byte[]> buffer_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0; ///< not cut yet
  std::size_t end_ = 0;   ///< received
  bool filled_ = false;   ///< by the last read
};

} // namespace zlink::detail
