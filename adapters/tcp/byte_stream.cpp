#include "adapters/tcp/byte_stream.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace zlink::detail {

namespace {

constexpr std::size_t first_read_bytes = 4 * 1024;
constexpr std::size_t usual_read_bytes = 64 * 1024;
/// Of a batch, sealed and sent before the next piece: what a protected batch costs beyond itself.
constexpr std::size_t sealed_piece_bytes = 64 * 1024;
/// One record of TLS takes so much.
constexpr std::size_t tls_record_bytes = 16 * 1024;

byte_stream::status fail(int code, std::string& why) {
  why = std::generic_category().message(code);
  return byte_stream::status::failed;
}

bool would_block(int code) noexcept { return code == EAGAIN || code == EWOULDBLOCK; }

} // namespace

byte_stream::byte_stream(boost::asio::ip::tcp::socket socket, std::unique_ptr<tls_session> tls)
  : socket_(std::move(socket)), tls_(std::move(tls)) {
  if (tls_)
    received_.resize(first_read_bytes);
}

byte_stream::status byte_stream::explain(tls_session::status what, std::string& why) const {
  switch (what) {
    case tls_session::status::done: return status::done;
    case tls_session::status::wants_more: return status::blocked;
    case tls_session::status::closed: return status::closed;
    case tls_session::status::failed: break;
  }
  why = "TLS: " + tls_->failure();
  return status::failed;
}

// -- out --------------------------------------------------------------------------------------------------------------

byte_stream::status byte_stream::write(bytes batch) {
  batch_ = std::move(batch);
  length_ = encode_length(static_cast<std::uint32_t>(batch_.size()));
  written_ = 0;
  return write_on();
}

byte_stream::status byte_stream::write_on() {
  const auto ended = tls_ ? write_sealed() : write_plain();
  if (ended == status::done) {
    batch_ = {};
    written_ = length_.size();
  }
  return ended;
}

byte_stream::status byte_stream::write_plain() {
  const auto all = length_.size() + batch_.size();
  while (written_ < all) {
    const auto of_length = std::min(written_, length_.size());
    const auto of_batch = written_ - of_length;
    iovec parts[2] = {{length_.data() + of_length, length_.size() - of_length},
                      {batch_.data() + of_batch, batch_.size() - of_batch}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const auto sent = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0)
      written_ += static_cast<std::size_t>(sent);
    else if (would_block(errno))
      return status::blocked;
    else if (errno != EINTR)
      return fail(errno, write_failure_);
  }
  return status::done;
}

/// False if TLS refuses.
bool byte_stream::seal_next() {
  if (written_ == 0) { // the length goes into the record of what follows it
    const auto with_length = std::min(batch_.size(), tls_record_bytes - length_.size());
    bytes first{length_.begin(), length_.end()};
    first.insert(first.end(), batch_.begin(), batch_.begin() + static_cast<std::ptrdiff_t>(with_length));
    written_ = first.size();
    return tls_->write(first) == tls_session::status::done;
  }
  const auto piece = byte_view{batch_}.subspan(written_ - length_.size());
  const auto now = piece.first(std::min(piece.size(), sealed_piece_bytes));
  written_ += now.size();
  return tls_->write(now) == tls_session::status::done;
}

byte_stream::status byte_stream::write_sealed() {
  for (;;) {
    if (const auto sent = send_sealed(); sent != status::done)
      return sent;
    if (written_ == length_.size() + batch_.size())
      return status::done;
    if (!seal_next())
      return explain(tls_session::status::failed, write_failure_);
  }
}

byte_stream::status byte_stream::send_sealed() {
  for (auto rest = tls_->output(); !rest.empty(); rest = tls_->output()) {
    const auto sent = ::send(socket_.native_handle(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0)
      tls_->sent(static_cast<std::size_t>(sent));
    else if (would_block(errno))
      return status::blocked;
    else if (errno != EINTR)
      return fail(errno, write_failure_);
  }
  return status::done;
}

void byte_stream::end_writing() {
  if (std::exchange(ended_, true))
    return;
  if (tls_) {
    tls_->end();
    send_sealed();
  }
  boost::system::error_code ignored;
  socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
}

void byte_stream::close() noexcept {
  boost::system::error_code ignored;
  socket_.close(ignored);
}

// -- in ---------------------------------------------------------------------------------------------------------------

byte_stream::status byte_stream::receive(std::span<std::byte> to, std::size_t& count) {
  for (;;) {
    const auto got = ::recv(socket_.native_handle(), to.data(), to.size(), MSG_DONTWAIT);
    if (got > 0) {
      count = static_cast<std::size_t>(got);
      return status::done;
    }
    if (got == 0)
      return status::closed;
    if (would_block(errno))
      return status::blocked;
    if (errno != EINTR)
      return fail(errno, failure_);
  }
}

byte_stream::status byte_stream::shake_hands() {
  for (;;) {
    const auto got = explain(tls_->shake_hands(), failure_);
    send_sealed(); // a socket that fails says so to the read below
    if (got == status::done)
      received_.resize(usual_read_bytes);
    if (got != status::blocked)
      return got;
    std::size_t count = 0;
    if (const auto more = receive(received_, count); more != status::done)
      return more;
    tls_->receive(byte_view{received_}.first(count));
  }
}

byte_stream::status byte_stream::read(frame_cutter& to) {
  const auto space = to.space();
  std::size_t count = 0;
  if (!tls_) {
    const auto got = receive(space, count);
    if (got == status::done)
      to.received(count);
    return got;
  }
  for (;;) {
    const auto opened = explain(tls_->read(space, count), failure_);
    if (opened == status::done)
      to.received(count);
    send_sealed(); // an alert or a change of keys, if there is one
    if (opened != status::blocked)
      return opened;
    const auto more = receive(received_, count);
    if (more == status::closed) {
      failure_ = "cut off without the end of TLS";
      return status::failed;
    }
    if (more != status::done)
      return more;
    tls_->receive(byte_view{received_}.first(count));
  }
}

byte_stream::status byte_stream::discard() {
  std::array<std::byte, first_read_bytes> nobody;
  std::size_t count = 0;
  for (int rounds = 0; rounds < 64; ++rounds)
    if (const auto got = receive(nobody, count); got != status::done)
      return got;
  return status::blocked;
}

} // namespace zlink::detail
