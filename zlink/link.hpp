// What the runtime needs from the network: ordered byte batches to one peer. Implementations stand in adapters/;
// records, credit and liveness are the business of messaging/link_session, so a transport knows nothing of them.
#pragma once

#include "zlink/error.hpp"
#include "zlink/packet_type.hpp"
#include "zlink/unique_function.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace zlink::detail {

/// Where a node can be reached. Text form: `scheme://host:port`, with brackets round an IPv6 address.
struct endpoint {
  std::string scheme; ///< which transport: "caf", "tcp", "sim"
  std::string host;   ///< name or address, never empty
  std::uint16_t port = 0;
  friend bool operator==(const endpoint&, const endpoint&) = default;
};

std::string to_string(const endpoint& where);
/// Nothing if the text is not of the form above: unknown characters in the scheme, no host, port not 1..65535.
std::optional<endpoint> parse_endpoint(std::string_view text);
/// True for 127.0.0.0/8, ::1 and "localhost": the only places where a link may go unprotected.
bool is_loopback(std::string_view host) noexcept;

/// What happens on one connection. Calls come from the transport's thread, one at a time for a connection and never on
/// the stack of a call into it. Receiving must do little.
class link_connection_events {
public:
  virtual ~link_connection_events() = default;
  /// One batch as the peer wrote it, in order; `batch` is valid for the call. True: `on_turn()` is wanted once other
  /// connections have had theirs; further batches may come before it.
  virtual bool on_batch(byte_view batch) = 0;
  /// Goes on with what `on_batch` left. True: call again, as above.
  virtual bool on_turn() = 0;
  /// The batch given to `write` was taken; the next may follow.
  virtual void on_writable() = 0;
  /// `link_connection::remind` was called a moment ago.
  virtual void on_reminder() {}
  /// The last call, exactly once after `start()`, whoever ended the connection. The transport then lets go of the
  /// events.
  virtual void on_closed(std::string reason) = 0;
};

/// One connection to one peer. Open when handed out, at work from `start()` on. Any thread may call.
class link_connection {
public:
  virtual ~link_connection() = default;
  /// Once. Batches that arrived before are delivered now.
  virtual void start(std::shared_ptr<link_connection_events> events) = 0;
  /// Sends `batch`, 1 byte or more, whole and in order. One batch is under way at a time: the next call follows
  /// `on_writable()`. After `close()` and after the loss of the peer the batch is dropped.
  virtual void write(bytes batch) = 0;
  /// The same on the caller's thread, where the transport can: true if the next batch may follow at once, and then
  /// `on_writable()` does not come for this one.
  virtual bool write_at_once(bytes batch) {
    write(std::move(batch));
    return false;
  }
  /// Asks for `on_reminder()` about 100 us from now, or earlier if it was asked for before. False: this transport cannot.
  virtual bool remind() { return false; }
  /// Largest batch that may be received, 64 KiB until the first call; a larger one ends the connection, and memory for
  /// it is never allocated where the transport sees the length first.
  virtual void limit_batches(std::uint64_t largest_bytes) = 0;
  /// Ends the connection. The batch under way is still sent if the peer takes it. Any number of times.
  virtual void close() = 0;
  /// For logs: the other end as the transport knows it.
  virtual std::string peer_address() const = 0;
  /// What the peer has proved of itself: the subject alternative names of its certificate as one text (O-143). Empty where
  /// there is no certificate; else a peer that says another one of itself is refused.
  virtual std::string peer_security_identity() const { return {}; }
};

/// Largest batch received before the handshake said more (see `limit_batches`).
inline constexpr std::uint64_t handshake_batch_bytes = 64 * 1024;

/// Makes connections for one node. Any thread may call; handlers run on the transport's thread, never on the caller's
/// stack.
class link_transport {
public:
  using accept_handler = unique_function<void(std::shared_ptr<link_connection>)>;
  using connect_handler = unique_function<void(result<std::shared_ptr<link_connection>>)>;

  virtual ~link_transport() = default;
  /// Begins to accept, once per transport; port 0 lets the system choose. Returns where. Throws `configuration_error`
  /// for an address that cannot be bound or may not be used unprotected.
  virtual endpoint listen(const std::string& host, std::uint16_t port, accept_handler accepted) = 0;
  /// Calls `done` exactly once, with `unavailable` if there is no connection after about `timeout_ms`.
  virtual void connect(const endpoint& where, std::uint32_t timeout_ms, connect_handler done) = 0;
  /// The same of this node, as its peers will find it proved.
  virtual std::string security_identity() const { return {}; }
  /// Closes the listener and every connection; pending connects end in `unavailable`. Returns when no handler or event
  /// runs any more, except inside one of them. Any number of times.
  virtual void stop() = 0;
};

} // namespace zlink::detail
