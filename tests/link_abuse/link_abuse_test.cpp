// What strangers do to a port: refused, counted, told once, nothing kept, and no other link notices (bad input of links).
#include "tests/core/store/manual_clock.hpp"
#include "tests/link_abuse/raw_peer.hpp"

#include <malloc.h>

#include <random>

using namespace zlink;
using namespace zlink::detail;
using namespace zlink::test;

namespace {

std::size_t memory_in_use() { return mallinfo2().uordblks; }

bytes random_bytes(std::mt19937_64& random, std::size_t size) {
  bytes made(size);
  for (auto& one : made)
    one = static_cast<std::byte>(random());
  return made;
}

/// What an honest peer sends until it is admitted, as it lies in the stream, but for the proof's answer to a fresh nonce.
bytes recorded_hello(const handshake_settings& settings) {
  const auto hello = handshake{handshake::side::dialling, settings, handshake_nonce{std::byte{7}}, {}}.begin();
  const auto length = encode_length(static_cast<std::uint32_t>(hello.size()));
  bytes stream{length.begin(), length.end()};
  stream.insert(stream.end(), hello.begin(), hello.end());
  return stream;
}

tcp_link_options with_time(std::shared_ptr<const zlink::clock> time) {
  tcp_link_options options;
  options.time = std::move(time);
  return options;
}

} // namespace

TEST_CASE("500 random connections are refused and counted, told of once, and leave nothing behind") {
  honest_pair nodes{with_time(std::make_shared<manual_clock>())};
  std::mt19937_64 random{1};
  const auto noise = [&] {
    raw_peer peer{nodes.port()};
    peer.send(random_bytes(random, 1 + random() % 300));
    if (random() % 2 == 0)
      return;
    peer.send(random_bytes(random, 5'000));
    CHECK(peer.closed_by_the_other());
  };
  const auto many = [&](std::uint64_t count) {
    const auto before = nodes.listening().refused();
    for (std::uint64_t i = 0; i < count; ++i)
      noise();
    CHECK(poll_until([&] { return nodes.listening().refused() == before + count; }));
    CHECK(nodes.alone());
  };
  many(100);
  const auto before = memory_in_use();
  many(500);
  CHECK(memory_in_use() < before + 256 * 1024);
  CHECK(nodes.told().size() == 1);
  CHECK(nodes.works());
}

TEST_CASE("500 connections at once that say nothing cost little, give way to others, and go when their time is over") {
  auto options = with_time(std::make_shared<manual_clock>());
  options.handshake_timeout = std::chrono::milliseconds{500};
  honest_pair nodes{options};
  std::vector<raw_peer> silent;
  for (int i = 0; i < 500; ++i) {
    silent.emplace_back(nodes.port());
    if (i % 2 == 0)
      silent.back().send(recorded_hello(nodes.settings())); // half of them begin, and never finish
  }
  CHECK(poll_until([&] { return nodes.listening().refused(refusal::crowded) >= 436; }));
  CHECK(raw_peer{nodes.port()}.greet(nodes.settings())); // somebody honest comes through meanwhile
  CHECK(nodes.works());
  CHECK(poll_until([&] { return nodes.listening().refused(refusal::late) + nodes.listening().refused(refusal::crowded) == 500; }));
  CHECK(nodes.alone());
  CHECK(nodes.told().size() == 1);
}

TEST_CASE("every truncation of a hello ends when its peer goes, and every changed byte is answered by a refusal or not believed") {
  honest_pair nodes;
  const auto hello = recorded_hello(nodes.settings());
  for (std::size_t length = 1; length < hello.size(); ++length)
    raw_peer{nodes.port()}.send(byte_view{hello}.first(length));
  CHECK(poll_until([&] { return nodes.listening().refused() == hello.size() - 1; }));
  std::mt19937_64 random{2};
  for (std::size_t at = 0; at < hello.size(); ++at) {
    auto other = hello;
    other[at] ^= static_cast<std::byte>(1 + random() % 255);
    raw_peer peer{nodes.port()};
    peer.send(other);
    peer.send(random_bytes(random, 600));
    CHECK(peer.closed_by_the_other());
  }
  CHECK(nodes.alone());
  CHECK(nodes.listening().refused() == 2 * hello.size() - 1);
  CHECK(nodes.works());
}

TEST_CASE("a proof that was recorded is worth nothing on the next connection") {
  honest_pair nodes;
  handshake own{handshake::side::dialling, nodes.settings(), handshake_nonce{std::byte{7}}, {}};
  raw_peer first{nodes.port()};
  first.send_batch(own.begin());
  const auto proof = own.on_message(first.receive_batch()).answer;
  first.send_batch(proof);
  CHECK(own.on_message(first.receive_batch()).admitted);
  raw_peer second{nodes.port()};
  second.send_batch(handshake{handshake::side::dialling, nodes.settings(), handshake_nonce{std::byte{7}}, {}}.begin());
  second.receive_batch();
  second.send_batch(proof);
  CHECK(second.closed_by_the_other());
  CHECK(nodes.listening().refused(refusal::secret) == 1);
}

TEST_CASE("another mesh, another version, another secret: refused by name") {
  honest_pair nodes;
  CHECK_FALSE(raw_peer{nodes.port()}.greet({"another", honest_pair::secret}));
  CHECK_FALSE(raw_peer{nodes.port()}.greet({"mesh", "what somebody guesses"}));
  CHECK_FALSE(raw_peer{nodes.port()}.greet({"mesh", ""}));
  auto newer = recorded_hello(nodes.settings());
  newer[length_bytes + 4] = std::byte{2};
  raw_peer peer{nodes.port()};
  peer.send(newer);
  CHECK(peer.closed_by_the_other());
  CHECK(nodes.listening().refused(refusal::mesh) == 1);
  CHECK(nodes.listening().refused(refusal::secret) == 2);
  CHECK(nodes.listening().refused(refusal::version) == 1);
  CHECK(nodes.alone());
  CHECK(nodes.works());
}

TEST_CASE("a length of 4 GiB, in the handshake or later, ends the connection and allocates nothing") {
  honest_pair nodes;
  const auto lengths = {0xffff'ffffu, 0x8000'0000u, 0x7fff'ffffu, static_cast<std::uint32_t>(handshake_batch_bytes) + 1, 0u};
  const auto before = memory_in_use();
  for (const auto length : lengths) {
    CAPTURE(length);
    raw_peer early{nodes.port()};
    early.send(encode_length(length));
    CHECK(early.closed_by_the_other());
    raw_peer late{nodes.port()};
    REQUIRE(late.greet(nodes.settings()));
    late.send(encode_length(length));
    CHECK(late.closed_by_the_other());
  }
  CHECK(nodes.alone());
  CHECK(memory_in_use() < before + 256 * 1024);
  CHECK(nodes.listening().refused(refusal::not_a_peer) == lengths.size());
  CHECK(nodes.listening().refused(refusal::frame) == lengths.size());
  CHECK(nodes.works());
}

TEST_CASE("batches behind a handshake are cut wherever the stream is broken, and a part of one is never delivered") {
  honest_pair nodes;
  const bytes batch(100, std::byte{5});
  bytes stream;
  for (int i = 0; i < 3; ++i) {
    const auto length = encode_length(static_cast<std::uint32_t>(batch.size()));
    stream.insert(stream.end(), length.begin(), length.end());
    stream.insert(stream.end(), batch.begin(), batch.end());
  }
  for (std::size_t length = 0; length <= stream.size(); length += 13) {
    {
      raw_peer peer{nodes.port()};
      REQUIRE(peer.greet(nodes.settings()));
      peer.send(byte_view{stream}.first(length));
    }
    REQUIRE(nodes.alone());
    const auto heard = nodes.last_events();
    REQUIRE(poll_until([&] { return heard->closed == 1; }));
    CHECK(heard->batches == static_cast<int>(length / (batch.size() + length_bytes)));
  }
  CHECK(nodes.works());
}

TEST_CASE("a peer that never reads holds up nobody else, and goes when its link is closed") {
  honest_pair nodes;
  raw_peer peer{nodes.port()};
  REQUIRE(peer.greet(nodes.settings()));
  REQUIRE(poll_until([&] { return nodes.accepted() == 2; }));
  const auto link = nodes.last_accepted();
  const auto heard = nodes.last_events();
  for (int written = 0; heard->writable == written && written < 1'000; ++written) { // one batch under way at a time
    link->write(bytes(256 * 1024));
    if (!poll_until([&] { return heard->writable == written + 1; }, std::chrono::seconds{1}))
      break;
  }
  CHECK(heard->writable < 1'000);
  CHECK(nodes.works());
  link->close();
  CHECK(poll_until([&] { return heard->closed == 1; }));
  CHECK(nodes.alone());
  CHECK(nodes.works());
}

TEST_CASE("beyond the limit of links nobody is let in, until somebody goes") {
  auto options = with_time(std::make_shared<manual_clock>());
  options.connections = 3;
  honest_pair nodes{options};
  raw_peer second{nodes.port()};
  REQUIRE(second.greet(nodes.settings()));
  {
    raw_peer third{nodes.port()};
    REQUIRE(third.greet(nodes.settings()));
    CHECK_FALSE(raw_peer{nodes.port()}.greet(nodes.settings()));
    CHECK(nodes.listening().refused(refusal::crowded) == 1);
    CHECK(nodes.works());
  }
  REQUIRE(poll_until([&] { return nodes.listening().connections() == 2; }));
  CHECK(raw_peer{nodes.port()}.greet(nodes.settings()));
}
