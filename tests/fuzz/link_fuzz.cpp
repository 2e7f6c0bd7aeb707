// What a stranger can send, in any order and form: the stream's frames, both ends of the handshake, and the frames of a batch.
// Built with libFuzzer; `tests/run --long` runs it for a minute.
#include "adapters/tcp/frames.hpp"
#include "adapters/tcp/handshake.hpp"
#include "zlink/codec_error.hpp"
#include "tests/core/link/decode_frame.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

using namespace zlink;
using namespace zlink::detail;

namespace {

constexpr std::uint64_t limit = 64 * 1024;

void require(bool holds) {
  if (!holds)
    std::abort();
}

void read_batch(byte_view batch) {
  try {
    frame_reader in{batch};
    while (!in.at_end()) {
      const auto one = in.next(limit);
      try {
        test::decode_frame(one);
      } catch (const decode_error&) {
        continue; // the frame is dropped, the next one may be good
      }
    }
  } catch (const decode_error&) {
    return; // the rest cannot be trusted
  }
}

/// One end hears whatever came; nobody without the secret is admitted.
class end_of_handshake {
public:
  explicit end_of_handshake(handshake::side which) : end_(which, settings(), handshake_nonce{}, handshake_mac{}) { end_.begin(); }
  void hear(byte_view message) {
    if (over_)
      return;
    const auto step = end_.on_message(message);
    require(!step.admitted);
    require(step.answer.size() <= handshake_message_limit);
    over_ = step.refused != refusal::none;
  }

private:
  static const handshake_settings& settings() {
    static const handshake_settings all{"mesh", "a secret that no input knows"};
    return all;
  }
  handshake end_;
  bool over_ = false;
};

/// The pieces in which the stream arrives are part of the input.
class pieces {
public:
  explicit pieces(byte_view input) : input_(input) {}
  byte_view next(std::size_t most) {
    const auto wanted = input_.empty() ? 0 : 1 + std::to_integer<std::size_t>(input_.front());
    const auto piece = input_.first(std::min({wanted, most, input_.size()}));
    input_ = input_.subspan(piece.size());
    return piece;
  }
  bool empty() const { return input_.empty(); }

private:
  byte_view input_;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span{data, size});
  read_batch(input);
  end_of_handshake listening{handshake::side::listening};
  end_of_handshake dialling{handshake::side::dialling};
  frame_cutter cutter;
  pieces stream{input};
  try {
    while (!stream.empty()) {
      const auto space = cutter.space();
      const auto piece = stream.next(space.size());
      std::memcpy(space.data(), piece.data(), piece.size());
      cutter.received(piece.size());
      while (const auto batch = cutter.next(limit)) {
        require(!batch->empty() && batch->size() <= limit);
        listening.hear(*batch);
        dialling.hear(*batch);
        read_batch(*batch);
      }
      require(cutter.capacity() <= 512 * 1024);
    }
  } catch (const bad_frame&) {
    return 0;
  }
  return 0;
}
