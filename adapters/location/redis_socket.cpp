#include "adapters/location/redis_socket.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace zlink::adapters {

namespace {

std::string errno_text(const char* what, int code) {
  return std::string{what} + ": " + std::generic_category().message(code);
}

void free_addresses(addrinfo* list) {
  if (list != nullptr)
    ::freeaddrinfo(list);
}

} // namespace

redis_socket::redis_socket(const redis_address& address, SSL_CTX* context)
  : host_(address.host), context_(address.tls ? context : nullptr), found_(nullptr, &free_addresses) {
  if (address.host.empty())
    connect_to_path(address.socket_path);
  else
    look_up(address);
}

redis_socket::~redis_socket() {
  if (fd_ >= 0)
    ::close(fd_);
}

void redis_socket::look_up(const redis_address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int failed = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  if (failed != 0)
    return close(std::string{"the host name is not resolved: "} + ::gai_strerror(failed));
  found_.reset(list);
  next_ = list;
  reason_ = "the host has no address";
  connect_to_next();
}

/// Leaves `reason_` of the last attempt if there is no further address.
void redis_socket::connect_to_next() {
  for (; next_ != nullptr; next_ = next_->ai_next) {
    if (fd_ >= 0)
      ::close(fd_);
    fd_ = ::socket(next_->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, next_->ai_protocol);
    if (fd_ < 0) {
      reason_ = errno_text("no socket", errno);
      continue;
    }
    const int yes = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    ::setsockopt(fd_, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    if (::connect(fd_, next_->ai_addr, next_->ai_addrlen) == 0 || errno == EINPROGRESS) {
      next_ = next_->ai_next;
      return;
    }
    reason_ = errno_text("no connection", errno);
  }
  close(std::move(reason_));
}

void redis_socket::connect_to_path(const std::string& path) {
  sockaddr_un place{};
  place.sun_family = AF_UNIX;
  if (path.size() >= sizeof place.sun_path)
    return close("the path of the socket is too long");
  std::memcpy(place.sun_path, path.data(), path.size());
  fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0)
    return close_by_errno("no socket");
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0)
    close_by_errno("no connection");
}

redis_socket::state redis_socket::connect() {
  if (state_ != state::connecting)
    return state_;
  if (!tcp_open_) {
    pollfd ready{fd_, POLLOUT, 0};
    if (::poll(&ready, 1, 0) == 0)
      return state_;
    int code = 0;
    socklen_t size = sizeof code;
    ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &code, &size);
    if (code != 0) {
      reason_ = errno_text("no connection", code);
      connect_to_next();
      return state_;
    }
    tcp_open_ = true;
    if (context_ != nullptr)
      tls_ = make_tls_session(*context_, fd_, host_);
  }
  if (tls_) {
    ::ERR_clear_error();
    const int result = ::SSL_do_handshake(tls_.get());
    if (result != 1) {
      settle_tls(result, true);
      return state_;
    }
    tls_wants_write_ = false;
  }
  reason_.clear();
  return state_ = state::open;
}

std::size_t redis_socket::read(char* into, std::size_t room) {
  if (state_ != state::open)
    return 0;
  if (tls_) {
    ::ERR_clear_error();
    std::size_t count = 0;
    const int result = ::SSL_read_ex(tls_.get(), into, room, &count);
    return result == 1 ? count : settle_tls(result, true);
  }
  const auto count = ::recv(fd_, into, room, 0);
  if (count > 0)
    return static_cast<std::size_t>(count);
  if (count == 0)
    close("the server closed the connection");
  else if (errno != EAGAIN && errno != EINTR)
    close_by_errno("the connection broke");
  return 0;
}

std::size_t redis_socket::write(const char* from, std::size_t size) {
  if (state_ != state::open || size == 0)
    return 0;
  if (tls_) {
    ::ERR_clear_error();
    std::size_t count = 0;
    const int result = ::SSL_write_ex(tls_.get(), from, size, &count);
    return result == 1 ? count : settle_tls(result, false);
  }
  const auto count = ::send(fd_, from, size, MSG_NOSIGNAL);
  if (count >= 0)
    return static_cast<std::size_t>(count);
  if (errno != EAGAIN && errno != EINTR)
    close_by_errno("the connection broke");
  return 0;
}

short redis_socket::wanted_events(bool has_output) const noexcept {
  if (state_ == state::connecting && !tcp_open_)
    return POLLOUT;
  if (state_ == state::connecting)
    return tls_wants_write_ ? POLLOUT : POLLIN;
  return static_cast<short>(POLLIN | (has_output || tls_wants_write_ ? POLLOUT : 0));
}

/// What a TLS call that did not succeed means. Always 0, for the caller to return.
std::size_t redis_socket::settle_tls(int result, bool reading) {
  const int code = errno;
  switch (::SSL_get_error(tls_.get(), result)) {
    case SSL_ERROR_WANT_READ: tls_wants_write_ = false; return 0;
    case SSL_ERROR_WANT_WRITE: tls_wants_write_ = reading; return 0;
    case SSL_ERROR_ZERO_RETURN: close("the server closed the connection"); return 0;
    case SSL_ERROR_SYSCALL:
      if (::ERR_peek_error() == 0) {
        close(code == 0 ? "the server closed the connection" : errno_text("the connection broke", code));
        return 0;
      }
      break;
    default: break;
  }
  const auto verified = ::SSL_get_verify_result(tls_.get());
  refused_ = verified != X509_V_OK;
  if (refused_) {
    ::ERR_clear_error();
    close(std::string{"the server's certificate is not accepted: "} + ::X509_verify_cert_error_string(verified));
  } else {
    close("TLS failed: " + tls_error_text("the peer does not speak it"));
  }
  return 0;
}

void redis_socket::close(std::string reason) {
  state_ = state::closed;
  reason_ = std::move(reason);
}

void redis_socket::close_by_errno(const char* what) { close(errno_text(what, errno)); }

} // namespace zlink::adapters
