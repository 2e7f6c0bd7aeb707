#include "zlink/metadata.hpp"

#include "zlink/codec/binary.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace zlink {

/// The encoded form is what is kept: sending and sharing copy nothing, and at this size a search through it is short.
struct message_metadata::block {
  std::atomic<std::size_t> owners{1};
  bytes encoded;
};

namespace {

using pair = std::pair<std::string_view, std::string_view>;

/// Throws `decode_error` at the first byte that does not belong.
std::vector<pair> parse(byte_view from) {
  std::vector<pair> found;
  if (from.empty())
    return found;
  if (from.size() > message_metadata::encoded_bytes_limit)
    throw decode_error{"metadata exceeds 1024 bytes"};
  detail::binary_reader in{from};
  const detail::codec_place place{"metadata"};
  in.place = &place;
  const auto text = [&] {
    const auto size = in.count(1);
    const std::string_view view{reinterpret_cast<const char*>(from.data() + (from.size() - in.left())), size};
    if (view.find('\0') != view.npos || !detail::is_utf8(view))
      in.fail("text is not UTF-8 without NUL");
    in.leave(in.enter(size));
    return view;
  };
  const auto n = in.count(3);
  if (n == 0)
    in.fail("empty set with a count");
  found.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto key = text();
    if (key.empty() || (!found.empty() && found.back().first >= key))
      in.fail("key is empty, occurs twice or is out of order");
    const auto value = text();
    found.emplace_back(key, value);
  }
  if (!in.at_end())
    in.fail("bytes behind the last pair");
  return found;
}

void require_text(const char* what, std::string_view text) {
  if (text.find('\0') != text.npos || !detail::is_utf8(text))
    throw std::invalid_argument{std::string{"metadata "} + what + " is not UTF-8 without NUL"};
}

bytes encode_pairs(const std::vector<pair>& pairs) {
  bytes to;
  detail::binary_writer out{to};
  out.varint(pairs.size());
  for (const auto& [key, value] : pairs) {
    out.varint(key.size());
    out.raw(key.data(), key.size());
    out.varint(value.size());
    out.raw(value.data(), value.size());
  }
  out.finish();
  return to;
}

} // namespace

message_metadata::message_metadata(const message_metadata& other) noexcept : block_(other.block_) {
  if (block_ != nullptr)
    block_->owners.fetch_add(1, std::memory_order_relaxed);
}

void message_metadata::release() noexcept {
  if (block_ != nullptr && block_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1)
    delete block_;
  block_ = nullptr;
}

void message_metadata::set(std::string_view key, std::string_view value) {
  if (key.empty())
    throw std::invalid_argument{"metadata key is empty"};
  require_text("key", key);
  require_text("value", value);
  // Before anything is copied: a value of many megabytes is refused at once.
  if (key.size() > encoded_bytes_limit || value.size() > encoded_bytes_limit)
    throw std::invalid_argument{"metadata exceeds 1024 bytes encoded"};
  auto pairs = entries();
  const auto at = std::lower_bound(pairs.begin(), pairs.end(), key, [](const pair& p, auto k) { return p.first < k; });
  if (at != pairs.end() && at->first == key)
    at->second = value;
  else
    pairs.emplace(at, key, value);
  auto encoded = encode_pairs(pairs);
  if (encoded.size() > encoded_bytes_limit)
    throw std::invalid_argument{"metadata would take " + std::to_string(encoded.size())
                                + " bytes encoded; at most 1024 are allowed"};
  *this = message_metadata{new block{1, std::move(encoded)}};
}

std::optional<std::string_view> message_metadata::get(std::string_view key) const noexcept {
  for (const auto& [name, value] : entries())
    if (name == key)
      return value;
  return std::nullopt;
}

std::size_t message_metadata::size() const noexcept { return entries().size(); }

std::vector<std::pair<std::string_view, std::string_view>> message_metadata::entries() const {
  return parse(encoded());
}

byte_view message_metadata::encoded() const noexcept { return block_ == nullptr ? byte_view{} : byte_view{block_->encoded}; }

message_metadata message_metadata::decode(byte_view from) {
  if (parse(from).empty())
    return {};
  return message_metadata{new block{1, bytes{from.begin(), from.end()}}};
}

bool operator==(const message_metadata& a, const message_metadata& b) noexcept {
  return std::ranges::equal(a.encoded(), b.encoded());
}

} // namespace zlink
