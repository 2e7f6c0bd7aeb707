// One connected socket, plain or protected: batches go out behind their lengths, bytes come in. Never blocks.
#pragma once

#include "adapters/tcp/frames.hpp"
#include "adapters/tcp/tls.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <memory>
#include <string>

namespace zlink::detail {

/// Not thread-safe, with one exception: a plain stream may be read by one thread while another writes.
class byte_stream {
public:
  enum class status : std::uint8_t {
    done,
    blocked, ///< nothing goes on until the socket is readable or writable
    closed,  ///< ended by the peer in order
    failed,  ///< see `failure()`
  };

  /// `tls` null: plain.
  byte_stream(boost::asio::ip::tcp::socket socket, std::unique_ptr<tls_session> tls);

  boost::asio::ip::tcp::socket& socket() noexcept { return socket_; }
  bool is_protected() const noexcept { return tls_ != nullptr; }
  const tls_session* tls() const noexcept { return tls_.get(); }

  /// Goes on with the handshake of TLS; not for a plain stream.
  status shake_hands();
  /// Sends a batch of 1 byte or more with its length before it, in one piece where the kernel takes it. Not while one is
  /// under way.
  status write(bytes batch);
  /// Goes on with what is under way.
  status write_on();
  bool writing() const noexcept { return written_ < length_.size() + batch_.size() || sealed_waits(); }
  /// Reads once what there is. `done`: 1 byte or more, and perhaps not all.
  status read(frame_cutter& to);
  /// Reads and forgets. Never `done`.
  status discard();
  /// Nothing more will be written; the peer learns it.
  void end_writing();
  void close() noexcept;

  /// Why reading or the handshake failed, in words that come from here and not from the peer; and why writing did.
  const std::string& failure() const noexcept { return failure_; }
  const std::string& write_failure() const noexcept { return write_failure_; }

private:
  bool sealed_waits() const noexcept { return tls_ && !tls_->output().empty(); }
  status write_plain();
  status write_sealed();
  bool seal_next();
  status send_sealed();
  status receive(std::span<std::byte> to, std::size_t& count);
  status explain(tls_session::status what, std::string& why) const;

  boost::asio::ip::tcp::socket socket_;
  std::unique_ptr<tls_session> tls_;
  bytes received_; ///< of a protected stream, not opened yet; its size is what one read takes
  std::array<std::byte, length_bytes> length_{};
  bytes batch_;
  std::size_t written_ = length_bytes; ///< of length and batch: to the kernel, or sealed
  bool ended_ = false;
  std::string failure_;
  std::string write_failure_;
};

} // namespace zlink::detail
