#include "adapters/tcp/frames.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <vector>

using namespace zlink;
using namespace zlink::detail;

namespace {

bytes stream_of(const std::vector<bytes>& batches) {
  bytes stream;
  for (const auto& batch : batches) {
    const auto length = encode_length(static_cast<std::uint32_t>(batch.size()));
    stream.insert(stream.end(), length.begin(), length.end());
    stream.insert(stream.end(), batch.begin(), batch.end());
  }
  return stream;
}

/// Gives `stream` to the cutter in pieces of at most `piece` bytes; what it cuts.
std::vector<bytes> cut(frame_cutter& cutter, byte_view stream, std::size_t piece, std::uint64_t limit) {
  std::vector<bytes> batches;
  while (!stream.empty()) {
    const auto space = cutter.space();
    const auto now = std::min({piece, space.size(), stream.size()});
    std::memcpy(space.data(), stream.data(), now);
    cutter.received(now);
    stream = stream.subspan(now);
    while (const auto batch = cutter.next(limit))
      batches.emplace_back(batch->begin(), batch->end());
  }
  return batches;
}

bytes batch_of(std::size_t size) {
  bytes made(size);
  for (std::size_t i = 0; i < size; ++i)
    made[i] = static_cast<std::byte>(i * 31);
  return made;
}

} // namespace

TEST_CASE("batches come out as they went in, however the stream is broken into pieces") {
  const std::vector<bytes> batches{batch_of(1), batch_of(300), batch_of(5'000), batch_of(2), batch_of(700'000), batch_of(4)};
  const auto stream = stream_of(batches);
  for (const std::size_t piece : {1, 3, 4, 5, 1'000, 65'536, 10'000'000}) {
    CAPTURE(piece);
    frame_cutter cutter;
    CHECK(cut(cutter, stream, piece, 1 << 20) == batches);
    CHECK(cutter.waiting() == 0);
  }
}

TEST_CASE("a length above the limit is refused when it is there, and nothing is allocated for it") {
  for (const std::uint32_t length : {0xffff'ffffu, 0x8000'0000u, 1'001u, 0u}) {
    CAPTURE(length);
    frame_cutter cutter;
    const auto header = encode_length(length);
    CHECK_THROWS_AS(cut(cutter, header, 4, 1'000), bad_frame);
    CHECK(cutter.capacity() <= 4'096);
  }
}

TEST_CASE("memory follows what has arrived, not what a length claims") {
  frame_cutter cutter;
  const auto header = encode_length(64u << 20);
  CHECK(cut(cutter, header, 4, 64u << 20).empty());
  CHECK(cut(cutter, batch_of(100'000), 1'000, 64u << 20).empty());
  CHECK(cutter.capacity() <= 512 * 1024);
}

TEST_CASE("the memory of a large batch is given back behind it") {
  frame_cutter cutter;
  CHECK(cut(cutter, stream_of({batch_of(5'000'000)}), 1 << 20, 1 << 30).size() == 1);
  cutter.space();
  CHECK(cutter.capacity() <= 512 * 1024);
}
