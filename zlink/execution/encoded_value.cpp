#include "zlink/execution/encoded_value.hpp"

#include "zlink/execution/place_pool.hpp"

#include <cstring>

namespace zlink::detail {

namespace {

constexpr std::size_t small = 256; ///< most packets fit; larger ones are allocated
using small_blocks = place_pool<small, alignof(std::max_align_t)>;

void put(std::byte*& to, const void* from, std::size_t size) noexcept {
  if (size != 0)
    std::memcpy(to, from, size);
  to += size;
}

} // namespace

encoded_value::encoded_value(std::string_view packet_name, std::string_view content_type, byte_view data,
                             std::shared_ptr<const decoding> by)
  : data_size_(data.size()), name_size_(static_cast<std::uint32_t>(packet_name.size())),
    type_size_(static_cast<std::uint32_t>(content_type.size())), by_(std::move(by)) {
  block_ = static_cast<std::byte*>(whole_size() <= small ? small_blocks::take() : ::operator new(whole_size()));
  auto* to = block_;
  put(to, data.data(), data.size());
  put(to, packet_name.data(), packet_name.size());
  put(to, content_type.data(), content_type.size());
}

void encoded_value::release() noexcept {
  if (block_ == nullptr)
    return;
  if (whole_size() <= small)
    small_blocks::give(block_);
  else
    ::operator delete(block_);
}

} // namespace zlink::detail
