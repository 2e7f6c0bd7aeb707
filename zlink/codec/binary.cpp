#include "zlink/codec/binary.hpp"

namespace zlink::detail {

void binary_writer::finish() {
  if (base_ == local_)
    to_.insert(to_.end(), local_, at_);
  else
    to_.resize(start_ + used());
  base_ = nullptr;
}

void binary_writer::grow(std::size_t more) {
  const auto written = used();
  // Twice what was written rather than the whole capacity: resize fills with zeros, and a batch buffer has much room.
  to_.resize(start_ + std::max(written + more, 2 * written));
  if (base_ == local_)
    std::memcpy(to_.data() + start_, local_, written);
  base_ = to_.data() + start_;
  at_ = base_ + written;
  end_ = to_.data() + to_.size();
}

void binary_writer::prefix_length(std::size_t start) {
  const auto length = used() - start;
  std::size_t width = 1;
  for (auto rest = length >> 7; rest != 0; rest >>= 7)
    ++width;
  need(width);
  std::memmove(base_ + start + width, base_ + start, length);
  const auto end = base_ + start + width + length;
  at_ = base_ + start;
  auto rest = length;
  for (; rest >= 0x80; rest >>= 7)
    *at_++ = static_cast<std::byte>(rest | 0x80);
  *at_ = static_cast<std::byte>(rest);
  at_ = end;
}

std::uint64_t binary_reader::long_varint() {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto b = static_cast<std::uint64_t>(byte());
    if (shift == 63 && b > 1)
      fail("integer longer than 64 bits");
    value |= (b & 0x7f) << shift;
    if (b < 0x80)
      return value;
  }
}

} // namespace zlink::detail
