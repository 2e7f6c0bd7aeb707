// What two ends of a TCP link say before the first batch: form, version, mesh, and a proof of the shared secret. Messages
// in, messages out; nothing here knows a socket, so that everything hostile can be tried without one.
//
//   dialling end                         listening end
//   hello(version, mesh, nonce)    ->
//                                  <-    hello(version, mesh, nonce), or a verdict that refuses
//   proof(HMAC over both)          ->
//                                  <-    verdict(admitted, HMAC over both), or one that refuses
//
// The dialling end proves first, so that nobody who merely connects gets anything made with the secret.
#pragma once

#include "zlink/packet_type.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace zlink::detail {

inline constexpr std::uint8_t tcp_protocol_version = 1;
/// No message of the handshake is longer.
inline constexpr std::uint64_t handshake_message_limit = 512;

/// Why a link was refused; counted each, and told to the peer where the form allows. Values on the wire up to `secret`.
enum class refusal : std::uint8_t {
  none = 0,
  not_a_peer = 1,   ///< bytes that are no handshake of this protocol
  version = 2,
  mesh = 3,
  secret = 4,       ///< not proved, or only one end has one
  certificate = 5,  ///< TLS failed: no certificate, of another authority, expired, for another host, or no TLS at all
  late = 6,         ///< the handshake took too long
  crowded = 7,      ///< others waited too, or too many links are open
  broken_off = 8,   ///< closed by the peer before the end of the handshake
  frame = 9,        ///< a batch of no bytes or above the limit, on an open link
  refused_here = 10, ///< the peer that was dialled says no
};
inline constexpr std::size_t refusal_kinds = 11;
/// For logs: a few words.
const char* to_string(refusal why) noexcept;

using handshake_nonce = std::array<std::byte, 32>;
using handshake_mac = std::array<std::byte, 32>;

struct handshake_settings {
  std::string mesh;       ///< 1..255 bytes
  std::string secret = {}; ///< empty: nothing is proved
};

/// One end's part. Not thread-safe.
class handshake {
public:
  enum class side : std::uint8_t { dialling, listening };

  /// `channel` names the protected channel below, the same at both ends and on no other channel; all zero: none. `settings`
  /// outlives the handshake.
  handshake(side which, const handshake_settings& settings, const handshake_nonce& nonce, const handshake_mac& channel);

  /// What to send first; empty: nothing, the peer begins.
  bytes begin() const;

  struct step {
    bytes answer = {};     ///< to be sent, also with a refusal; empty: nothing
    bool admitted = false; ///< the handshake has ended well, once `answer` is on its way
    refusal refused = refusal::none;
    /// What the peer said, where it is the peer that refuses.
    refusal told = refusal::none;
  };
  /// The next message of the peer. After `admitted` or a refusal there is no next.
  step on_message(byte_view message);

private:
  step on_hello(byte_view message);
  step on_proof(byte_view message);
  step on_verdict(byte_view message);
  bytes hello() const;
  refusal read_hello(byte_view message);
  handshake_mac proof_of(side prover) const;
  step refuse(refusal why) const;

  const side side_;
  const handshake_settings& settings_;
  const handshake_nonce own_nonce_;
  handshake_nonce peer_nonce_{};
  const handshake_mac channel_;
  bool hello_seen_ = false;
};

/// HMAC-SHA256 (RFC 2104).
handshake_mac hmac_sha256(std::string_view key, byte_view text);
/// In a time that does not depend on where they differ.
bool same_mac(const handshake_mac& a, byte_view b) noexcept;

} // namespace zlink::detail
