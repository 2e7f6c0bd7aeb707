#include "adapters/tcp/handshake.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace zlink::detail {

namespace {

// hello: mark, version, whether there is a secret, nonce, length of the mesh's name, name. The mark, the version's place and
// the form of a verdict stay the same in every version, so that each can refuse every other in words it understands.
constexpr std::array<std::byte, 4> mark{std::byte{'Z'}, std::byte{'L'}, std::byte{'N'}, std::byte{'K'}};
constexpr std::byte proof_word{2};
constexpr std::byte verdict_word{3};
constexpr std::size_t version_at = mark.size();
constexpr std::size_t flags_at = version_at + 1;
constexpr std::size_t nonce_at = flags_at + 1;
constexpr std::size_t name_length_at = nonce_at + sizeof(handshake_nonce);
constexpr std::size_t name_at = name_length_at + 1;
constexpr std::byte with_secret{1};

bool is_hello(byte_view message) noexcept {
  return message.size() > version_at && std::ranges::equal(message.first(mark.size()), mark);
}

void append(bytes& to, byte_view what) { to.insert(to.end(), what.begin(), what.end()); }

byte_view view(std::string_view text) noexcept { return std::as_bytes(std::span{text.data(), text.size()}); }

bytes verdict(refusal why, byte_view proof) {
  bytes to{verdict_word, static_cast<std::byte>(why)};
  append(to, proof);
  return to;
}

} // namespace

const char* to_string(refusal why) noexcept {
  switch (why) {
    case refusal::none: return "none";
    case refusal::not_a_peer: return "what it sends is no handshake of a link";
    case refusal::version: return "another version of the link's protocol";
    case refusal::mesh: return "another mesh";
    case refusal::secret: return "the shared secret is not proved";
    case refusal::certificate: return "TLS failed";
    case refusal::late: return "the handshake took too long";
    case refusal::crowded: return "too many connections";
    case refusal::broken_off: return "closed before the end of the handshake";
    case refusal::frame: return "a batch outside of the limits";
    case refusal::refused_here: return "the peer refuses";
  }
  return "unknown";
}

handshake_mac hmac_sha256(std::string_view key, byte_view text) {
  handshake_mac mac{};
  unsigned size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
           text.size(), reinterpret_cast<unsigned char*>(mac.data()), &size)
        == nullptr
      || size != mac.size())
    throw std::runtime_error{"HMAC-SHA256 is not available"};
  return mac;
}

bool same_mac(const handshake_mac& a, byte_view b) noexcept {
  return b.size() == a.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

handshake::handshake(side which, const handshake_settings& settings, const handshake_nonce& nonce,
                     const handshake_mac& channel)
  : side_(which), settings_(settings), own_nonce_(nonce), channel_(channel) {}

bytes handshake::hello() const {
  bytes to;
  append(to, mark);
  to.push_back(std::byte{tcp_protocol_version});
  to.push_back(settings_.secret.empty() ? std::byte{} : with_secret);
  append(to, own_nonce_);
  to.push_back(static_cast<std::byte>(settings_.mesh.size()));
  append(to, view(settings_.mesh));
  return to;
}

bytes handshake::begin() const { return side_ == side::dialling ? hello() : bytes{}; }

/// The proofs of the two ends differ, so that neither can be sent back to the other.
handshake_mac handshake::proof_of(side prover) const {
  if (settings_.secret.empty())
    return {};
  const bool own_first = side_ == side::dialling;
  bytes text;
  append(text, view(prover == side::dialling ? "zlink tcp 1 dialling " : "zlink tcp 1 listening"));
  append(text, own_first ? own_nonce_ : peer_nonce_);
  append(text, own_first ? peer_nonce_ : own_nonce_);
  append(text, channel_);
  append(text, view(settings_.mesh));
  return hmac_sha256(settings_.secret, text);
}

handshake::step handshake::refuse(refusal why) const {
  step made;
  made.refused = why;
  if (why <= refusal::secret && side_ == side::listening)
    made.answer = verdict(why, {});
  return made;
}

refusal handshake::read_hello(byte_view message) {
  if (!is_hello(message))
    return refusal::not_a_peer;
  if (message[version_at] != std::byte{tcp_protocol_version})
    return refusal::version;
  if (message.size() <= name_at || message.size() != name_at + std::to_integer<std::size_t>(message[name_length_at])
      || (message[flags_at] & ~with_secret) != std::byte{})
    return refusal::not_a_peer;
  if (!std::ranges::equal(message.subspan(name_at), view(settings_.mesh)))
    return refusal::mesh;
  if ((message[flags_at] == with_secret) == settings_.secret.empty())
    return refusal::secret;
  std::ranges::copy(message.subspan(nonce_at, peer_nonce_.size()), peer_nonce_.begin());
  if (side_ == side::dialling && peer_nonce_ == own_nonce_)
    return refusal::secret; // an echo of what was sent
  hello_seen_ = true;
  return refusal::none;
}

handshake::step handshake::on_hello(byte_view message) {
  if (const auto why = read_hello(message); why != refusal::none)
    return refuse(why);
  step made;
  if (side_ == side::listening) {
    made.answer = hello();
  } else {
    made.answer.push_back(proof_word);
    append(made.answer, proof_of(side::dialling));
  }
  return made;
}

handshake::step handshake::on_proof(byte_view message) {
  if (message.size() != 1 + sizeof(handshake_mac) || message.front() != proof_word)
    return refuse(refusal::not_a_peer);
  if (!same_mac(proof_of(side::dialling), message.subspan(1)))
    return refuse(refusal::secret);
  step made;
  made.answer = verdict(refusal::none, proof_of(side::listening));
  made.admitted = true;
  return made;
}

handshake::step handshake::on_verdict(byte_view message) {
  if (message.size() < 2)
    return refuse(refusal::not_a_peer);
  const auto said = std::to_integer<std::uint8_t>(message[1]);
  step made;
  if (said != 0) {
    made.refused = refusal::refused_here;
    made.told = said <= static_cast<std::uint8_t>(refusal::secret) ? static_cast<refusal>(said) : refusal::not_a_peer;
  } else if (!hello_seen_ || message.size() != 2 + sizeof(handshake_mac)) {
    return refuse(refusal::not_a_peer);
  } else if (!same_mac(proof_of(side::listening), message.subspan(2))) {
    return refuse(refusal::secret);
  } else {
    made.admitted = true;
  }
  return made;
}

handshake::step handshake::on_message(byte_view message) {
  if (side_ == side::dialling && !message.empty() && message.front() == verdict_word)
    return on_verdict(message);
  if (!hello_seen_)
    return on_hello(message);
  if (side_ == side::listening)
    return on_proof(message);
  return refuse(refusal::not_a_peer);
}

} // namespace zlink::detail
