#include "adapters/tcp/frames.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace zlink::detail {

namespace {

/// Enough for a handshake: a peer that has not proved anything costs no more.
constexpr std::size_t first_capacity = 2 * 1024;
/// Room for the largest batch that a session makes of small messages, and for the one behind it.
constexpr std::size_t usual_capacity = 512 * 1024;

std::uint32_t decode_length(const std::byte* from) noexcept {
  std::uint32_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;)
    length = length << 8 | std::to_integer<std::uint32_t>(from[i]);
  return length;
}

} // namespace

std::array<std::byte, length_bytes> encode_length(std::uint32_t batch_bytes) noexcept {
  std::array<std::byte, length_bytes> to;
  for (auto& one : to) {
    one = static_cast<std::byte>(batch_bytes);
    batch_bytes >>= 8;
  }
  return to;
}

void frame_cutter::resize(std::size_t capacity) {
  auto larger = std::make_unique_for_overwrite<std::byte[]>(capacity);
  if (waiting() != 0)
    std::memcpy(larger.get(), buffer_.get() + begin_, waiting());
  end_ = waiting();
  begin_ = 0;
  buffer_ = std::move(larger);
  capacity_ = capacity;
}

std::span<std::byte> frame_cutter::space() {
  if (waiting() == 0)
    begin_ = end_ = 0;
  // What a read has filled, the next one fills again: a busy peer gets more room. A batch beyond the usual gets twice what
  // has arrived of it, and its memory is given back behind it.
  if (waiting() == capacity_)
    resize(std::max(first_capacity, capacity_ * 2));
  else if (filled_ && capacity_ < usual_capacity)
    resize(capacity_ * 4);
  else if (waiting() == 0 && capacity_ > usual_capacity)
    resize(usual_capacity);
  else if (begin_ != 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, waiting());
    end_ = waiting();
    begin_ = 0;
  }
  filled_ = false;
  return {buffer_.get() + end_, capacity_ - end_};
}

std::optional<byte_view> frame_cutter::next(std::uint64_t limit) {
  if (waiting() < length_bytes)
    return std::nullopt;
  const std::uint64_t length = decode_length(buffer_.get() + begin_);
  if (length == 0)
    throw bad_frame{"a batch without a byte"};
  if (length > limit)
    throw bad_frame{"a batch of " + std::to_string(length) + " bytes exceeds the limit of " + std::to_string(limit)};
  if (waiting() - length_bytes < length)
    return std::nullopt;
  const byte_view batch{buffer_.get() + begin_ + length_bytes, static_cast<std::size_t>(length)};
  begin_ += length_bytes + batch.size();
  return batch;
}

} // namespace zlink::detail
