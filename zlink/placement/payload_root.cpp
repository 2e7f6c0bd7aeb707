#include "zlink/placement/payload_root.hpp"

#include "zlink/placement/digest.hpp"
#include "zlink/placement/record_parts.hpp"

#include <stdexcept>

namespace zlink::placement {

using namespace parts;

namespace {

constexpr std::uint64_t chunk_bytes = relocation_store::chunk_bytes;

std::uint64_t chunks_of(std::uint64_t size) noexcept {
  return size <= chunk_bytes ? 0 : (size + chunk_bytes - 1) / chunk_bytes;
}

std::string chunk_reference(const std::string& reference, std::uint64_t number) {
  return reference + '/' + std::to_string(number);
}

} // namespace

std::string encode(const payload_root& root) {
  auto out = begin(record_tag::payload, 64 + root.whole.size() + root.chunks.size() * 96);
  out.number(root.size);
  parts::put(out, root.digest);
  out.number(root.chunks.size());
  for (const auto& chunk : root.chunks) {
    out.text(chunk.reference);
    out.number(chunk.size);
    parts::put(out, chunk.digest);
  }
  if (root.chunks.empty())
    out.text(root.whole);
  return out.take();
}

std::optional<payload_root> decode_payload_root(std::string_view bytes) {
  auto decoded_root = decode_record<payload_root>(bytes, record_tag::payload, [](byte_reader& in, payload_root& root) {
    root.size = in.number();
    parts::get(in, root.digest);
    std::uint64_t offset = 0;
    const auto count = in.number_up_to(payload_root::chunk_limit);
    for (auto n = count; n > 0 && in.ok(); --n) {
      auto& chunk = root.chunks.emplace_back();
      chunk.reference = in.text();
      chunk.offset = offset;
      chunk.size = in.number_up_to(chunk_bytes);
      parts::get(in, chunk.digest);
      offset += chunk.size;
    }
    if (count == 0) {
      root.whole = in.text();
      offset = root.whole.size();
    }
    if (offset != root.size)
      in.fail();
  });
  auto* root = std::get_if<payload_root>(&decoded_root);
  return root ? std::optional{std::move(*root)} : std::nullopt;
}

std::vector<payload_chunk> cut_payload(const std::string& reference, std::string_view bytes) {
  const auto count = chunks_of(bytes.size());
  if (count > payload_root::chunk_limit)
    throw std::invalid_argument{"a payload of " + std::to_string(bytes.size()) + " bytes; 256 GiB is the most"};
  std::vector<payload_chunk> chunks;
  chunks.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto part = bytes.substr(i * chunk_bytes, chunk_bytes);
    chunks.push_back({chunk_reference(reference, i), i * chunk_bytes, part.size(), sha256(part)});
  }
  return chunks;
}

std::vector<std::string> chunk_references(const std::string& reference, std::uint64_t size) {
  std::vector<std::string> all;
  for (std::uint64_t i = 0, count = chunks_of(size); i < count; ++i)
    all.push_back(chunk_reference(reference, i));
  return all;
}

} // namespace zlink::placement
