// Links over TCP of our own (design: bounded frames, a handshake that proves a shared secret, mutual TLS).
#pragma once

#include "adapters/tcp/handshake.hpp"
#include "zlink/clock.hpp"
#include "zlink/link.hpp"
#include "zlink/mesh_transport.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace zlink::detail {

struct tcp_link_options {
  std::string mesh;                                ///< 1..255 bytes; both ends must name the same
  std::string secret = {};                         ///< empty, or 16..1024 bytes that both ends must prove to know
  std::optional<mesh_tls> tls = std::nullopt;      ///< nothing: plain, on loopback only
  link_refusal_log on_refused = nullptr;           ///< null: a line on stderr
  std::uint32_t connections = 1024;                ///< accepted and not yet gone; more are refused
  std::uint32_t handshakes = 64;                   ///< accepted and not admitted; the oldest gives way to a further one
  std::chrono::milliseconds handshake_timeout{5'000};
  std::shared_ptr<const clock> time = nullptr;     ///< for the minutes of the log; null: the system's
  std::shared_ptr<random_source> random = nullptr; ///< for nonces; null: the system's
};

/// A transport of scheme "tcp" with a thread of its own, on which events and handlers run. The thread ends with the
/// transport; connections that are held longer do nothing any more.
///
/// Without TLS only loopback is used: for any other address `listen` throws `configuration_error` and `connect` ends in
/// `not_configured`. The node that dials requires that the peer's certificate names the host that it dialled; the node
/// that listens takes every certificate of the configured authorities.
class tcp_link : public link_transport {
public:
  /// Peers that were not let in, or were cut off for breaking the protocol. Any thread.
  virtual std::uint64_t refused(refusal why) const noexcept = 0;
  virtual std::uint64_t refused() const noexcept = 0;
  /// Sockets in use: links, handshakes, and ends of links that wait for their peer. Any thread.
  virtual std::size_t connections() const noexcept = 0;
};

/// Throws `configuration_error` for files of TLS that cannot be used, and for a secret or a mesh of the wrong length.
std::shared_ptr<tcp_link> make_tcp_link(tcp_link_options options);

} // namespace zlink::detail
