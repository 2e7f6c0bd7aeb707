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

/// Reads the encoded form pair by pair; throws `decode_error` where bytes are missing.
class pair_reader {
public:
  explicit pair_reader(byte_view from) : end_(from.data() + from.size()), in_(from) {
    in_.place = &place_;
    left_ = from.empty() ? 0 : in_.count(3);
  }
  pair_reader(const pair_reader&) = delete;
  pair_reader& operator=(const pair_reader&) = delete;

  std::size_t left() const noexcept { return left_; }
  pair next() {
    --left_;
    const auto key = text();
    return {key, text()};
  }
  [[noreturn]] void fail(const char* why) const { in_.fail(why); }

private:
  std::string_view text() {
    const auto size = in_.count(1);
    const auto* at = end_ - in_.left();
    in_.leave(in_.enter(size));
    return {reinterpret_cast<const char*>(at), size};
  }

  detail::codec_place place_{"metadata"};
  const std::byte* end_;
  detail::binary_reader in_;
  std::size_t left_ = 0;
};

/// Bytes of a length in its shortest form.
constexpr std::size_t width(std::size_t length) { return length < 0x80 ? 1 : 2; }

bool is_text(std::string_view text) noexcept { return text.find('\0') == text.npos && detail::is_utf8(text); }

/// Throws `decode_error` unless a `message_metadata` could have produced these bytes.
void check(byte_view from) {
  if (from.empty())
    return;
  if (from.size() > message_metadata::encoded_bytes_limit)
    throw decode_error{"metadata exceeds 1024 bytes"};
  pair_reader in{from};
  if (in.left() == 0)
    in.fail("an empty set has no bytes");
  std::size_t shortest = width(in.left());
  std::string_view last;
  while (in.left() != 0) {
    const auto [key, value] = in.next();
    if (key <= last) // also: empty
      in.fail("key is empty, occurs twice or is out of order");
    if (!is_text(key) || !is_text(value))
      in.fail("text is not UTF-8 without NUL");
    last = key;
    shortest += width(key.size()) + key.size() + width(value.size()) + value.size();
  }
  if (from.size() != shortest)
    in.fail("bytes behind the last pair, or a length not in its shortest form");
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
  // First, so that a value of many megabytes is neither scanned nor copied.
  if (key.size() > encoded_bytes_limit || value.size() > encoded_bytes_limit)
    throw std::invalid_argument{"metadata exceeds 1024 bytes encoded"};
  if (!is_text(key) || !is_text(value))
    throw std::invalid_argument{"metadata key or value is not UTF-8 without NUL"};
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
  for (pair_reader in{encoded()}; in.left() != 0;)
    if (const auto [name, value] = in.next(); name == key)
      return value;
  return std::nullopt;
}

std::size_t message_metadata::size() const noexcept { return pair_reader{encoded()}.left(); }

std::vector<std::pair<std::string_view, std::string_view>> message_metadata::entries() const {
  std::vector<pair> found;
  pair_reader in{encoded()};
  found.reserve(in.left());
  while (in.left() != 0)
    found.push_back(in.next());
  return found;
}

byte_view message_metadata::encoded() const noexcept {
  return block_ == nullptr ? byte_view{} : byte_view{block_->encoded};
}

message_metadata message_metadata::decode(byte_view from) {
  check(from);
  if (from.empty())
    return {};
  return message_metadata{new block{1, bytes{from.begin(), from.end()}}};
}

bool operator==(const message_metadata& a, const message_metadata& b) noexcept {
  return std::ranges::equal(a.encoded(), b.encoded());
}

} // namespace zlink
