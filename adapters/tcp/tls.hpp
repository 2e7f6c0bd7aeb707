// TLS between nodes as a thing of bytes: what came from the socket goes in, what goes to the socket comes out. Both ends
// always show certificates (O-141). Nothing here knows a socket.
#pragma once

#include "adapters/tcp/handshake.hpp"
#include "zlink/mesh_transport.hpp"
#include "zlink/packet_type.hpp"

#include <memory>
#include <span>
#include <string>

struct ssl_ctx_st;
struct ssl_st;
struct bio_st;

namespace zlink::detail {

/// Certificate, key and authorities of one node. Any thread.
class tls_context {
public:
  /// Throws `configuration_error` that names the file that is missing or wrong.
  explicit tls_context(const mesh_tls& files);
  ~tls_context();
  tls_context(const tls_context&) = delete;
  tls_context& operator=(const tls_context&) = delete;

  /// The subject alternative names of the node's own certificate as one text (O-143).
  const std::string& identity() const noexcept { return identity_; }
  ssl_ctx_st* get() const noexcept { return context_.get(); }

private:
  struct release {
    void operator()(ssl_ctx_st* context) const noexcept;
  };
  std::unique_ptr<ssl_ctx_st, release> context_;
  std::string identity_;
};

/// One protected stream. Not thread-safe.
class tls_session {
public:
  /// `dialled`: the host that this node dialled, which the peer's certificate must name; empty at the listening end, where
  /// every certificate of the authority is good.
  tls_session(const tls_context& context, handshake::side side, const std::string& dialled);
  ~tls_session();
  tls_session(const tls_session&) = delete;
  tls_session& operator=(const tls_session&) = delete;

  enum class status : std::uint8_t {
    done,
    wants_more, ///< nothing goes on until more has been received
    closed,     ///< the peer ended the stream in order
    failed,     ///< see `failure()`
  };
  /// Goes on with the handshake. After `done` the peer's certificate has been verified.
  status shake_hands();
  /// From the socket.
  void receive(byte_view sealed);
  /// Opens what was received; `done` has put 1 byte or more at the beginning of `to`.
  status read(std::span<std::byte> to, std::size_t& count);
  /// Seals all of `plain`.
  status write(byte_view plain);
  /// Tells the peer that nothing more comes.
  void end();

  /// What is to be sent, also after failures and reads; valid until the next call of anything but `sent`.
  byte_view output() const noexcept;
  void sent(std::size_t count) noexcept;

  /// Why it failed, in words that come from here and not from the peer.
  const std::string& failure() const noexcept { return failure_; }
  /// After the handshake: the subject alternative names of the peer's certificate as one text (O-143).
  std::string peer_identity() const;
  /// After the handshake: what both ends and nobody else can derive from it (RFC 9266).
  handshake_mac channel() const;

private:
  status explain(int returned);

  struct release {
    void operator()(ssl_st* session) const noexcept;
  };
  std::unique_ptr<ssl_st, release> session_;
  bio_st* in_ = nullptr;  ///< owned by the session
  bio_st* out_ = nullptr; ///< owned by the session
  std::size_t sent_ = 0;  ///< of what `out_` holds
  std::string failure_;
};

} // namespace zlink::detail
