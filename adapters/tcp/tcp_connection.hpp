// One link over one socket: the handshake first, then batches both ways, then an end that loses nothing under way.
#pragma once

#include "adapters/tcp/byte_stream.hpp"
#include "adapters/tcp/handshake.hpp"
#include "adapters/tcp/io_thread.hpp"
#include "zlink/link.hpp"

#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace zlink::detail {

class tcp_connection;

/// Who made a connection. On the transport's thread.
class connection_home {
public:
  virtual ~connection_home() = default;
  /// Was not let in, or broke the protocol later. `detail` may be empty.
  virtual void refused(tcp_connection& connection, refusal why, const std::string& detail) = 0;
  /// The last call: the socket is closed.
  virtual void gone(tcp_connection& connection) = 0;
};

class tcp_connection final : public link_connection, public std::enable_shared_from_this<tcp_connection> {
public:
  using time_point = boost::asio::steady_timer::time_point;
  /// Nothing: open. Else why not.
  using greeted = unique_function<void(std::optional<error>)>;

  struct origin {
    std::shared_ptr<io_thread> io;
    std::shared_ptr<connection_home> home; ///< held until `gone`
    std::string address;                   ///< for logs: with port
    std::string peer;                      ///< whom refusals are counted for
    handshake::side side = handshake::side::listening;
    const handshake_settings* settings = nullptr; ///< lives as long as `home`
    handshake_nonce nonce{};
  };
  tcp_connection(origin from, byte_stream stream);

  // -- for its home, on the transport's thread ------------------------------------------------------------------------

  /// Begins the handshake, which ends at `deadline` at the latest; `done` is called once.
  void greet(time_point deadline, greeted done);
  /// Not let in, for a reason of the home's.
  void refuse(refusal why, const std::string& detail = {});
  /// The end. Orderly: what is under way is still sent, for a moment, and the peer learns that nothing follows.
  void finish(const std::string& why, bool orderly);
  bool greeting() const noexcept { return phase_ == phase::greeting; }
  bool dialled() const noexcept { return from_.side == handshake::side::dialling; }
  const std::string& peer() const noexcept { return from_.peer; }

  /// For who uses the link: it is closed when nobody holds what this returns, for nobody could close it any more.
  std::shared_ptr<link_connection> hand_out();

  // -- link_connection: any thread --------------------------------------------------------------------------------------

  void start(std::shared_ptr<link_connection_events> events) override;
  void write(bytes batch) override;
  bool write_at_once(bytes batch) override;
  bool remind() override;
  void limit_batches(std::uint64_t largest) override { limit_.store(largest, std::memory_order_relaxed); }
  void close() override;
  std::string peer_address() const override { return from_.address; }
  std::string peer_security_identity() const override { return peer_identity_; }

private:
  enum class phase : std::uint8_t { greeting, open, lingering, gone };
  using status = byte_stream::status;

  // The transport's thread. The handshake:
  void shake_hands();
  void on_message(byte_view message);
  bool send_message(bytes message);
  void end_greeting(std::optional<error> failed);
  // In:
  void pump();
  bool cut();
  bool deliver(byte_view batch);
  void want_turn();
  void lost(status how);
  void breach(const std::string& what);
  status read();
  void wait_readable();
  // Out:
  std::optional<status> send(bytes batch);
  void wait_writable();
  void write_on();
  void written(status how);
  // The end:
  void linger();
  void close_now();
  void tell_closed();
  void guard_until(time_point deadline, void (tcp_connection::*late)());
  void too_late();

  const origin from_;
  std::shared_ptr<connection_home> home_;
  std::atomic<std::uint64_t> limit_{handshake_batch_bytes};
  std::string peer_identity_; ///< written before the connection is handed out

  std::mutex mutex_;          ///< over writing, and over all of a protected stream
  byte_stream stream_;
  bool shut_ = false;         ///< inside the lock: no further batch
  std::atomic<bool> reminded_{false};

  // The transport's thread only.
  boost::asio::steady_timer timer_;
  frame_cutter cutter_;
  std::optional<handshake> handshake_;
  greeted greeted_;
  std::shared_ptr<link_connection_events> events_;
  std::string closed_;
  phase phase_ = phase::greeting;
  bool turn_wanted_ = false;
  bool waits_readable_ = false;
  bool waits_writable_ = false;
};

} // namespace zlink::detail
