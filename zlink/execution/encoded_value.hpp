// A packet as bytes, with what it takes to decode it, in one piece of memory.
#pragma once

#include "zlink/packet.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace zlink::detail {

struct decoding;

/// A packet as it came from another node: not decoded before the turn.
class encoded_value {
public:
  /// `by`: for values that are decoded away from their object (replies); null: the built-in encodings.
  encoded_value(std::string_view packet_name, std::string_view content_type, byte_view data,
                std::shared_ptr<const decoding> by = nullptr);
  encoded_value(const encoded_value& other)
    : encoded_value(other.packet_name(), other.content_type(), other.data(), other.by_) {}
  encoded_value(encoded_value&& other) noexcept
    : block_(std::exchange(other.block_, nullptr)), data_size_(std::exchange(other.data_size_, 0)),
      name_size_(std::exchange(other.name_size_, 0)), type_size_(std::exchange(other.type_size_, 0)),
      by_(std::move(other.by_)) {}
  encoded_value& operator=(encoded_value other) noexcept {
    std::swap(block_, other.block_);
    std::swap(data_size_, other.data_size_);
    std::swap(name_size_, other.name_size_);
    std::swap(type_size_, other.type_size_);
    std::swap(by_, other.by_);
    return *this;
  }
  ~encoded_value() { release(); }

  byte_view data() const noexcept { return {block_, data_size_}; }
  std::string_view packet_name() const noexcept { return text(data_size_, name_size_); }
  std::string_view content_type() const noexcept { return text(data_size_ + name_size_, type_size_); }
  const std::shared_ptr<const decoding>& by() const noexcept { return by_; }
  void decode_by(std::shared_ptr<const decoding> by) noexcept { by_ = std::move(by); }

private:
  std::size_t whole_size() const noexcept { return data_size_ + name_size_ + type_size_; }
  std::string_view text(std::size_t from, std::size_t size) const noexcept {
    return {reinterpret_cast<const char*>(block_) + from, size};
  }
  void release() noexcept;

  std::byte* block_; ///< data, packet name, content type
  std::size_t data_size_;
  std::uint32_t name_size_;
  std::uint32_t type_size_;
  std::shared_ptr<const decoding> by_;
};

} // namespace zlink::detail
