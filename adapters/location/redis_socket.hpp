// A non-blocking stream to a Redis server: TCP, TLS over TCP, or a socket of this machine. For one thread.
#pragma once

#include "adapters/location/redis_address.hpp"
#include "adapters/location/redis_tls.hpp"

#include <cstddef>
#include <memory>
#include <string>

struct addrinfo;

namespace zlink::adapters {

class redis_socket {
public:
  enum class state { connecting, open, closed };

  /// Looks the host up, which may take as long as the system's resolver does, and begins to connect. `context` is used
  /// for TLS addresses and outlives this.
  redis_socket(const redis_address& address, SSL_CTX* context);
  redis_socket(const redis_socket&) = delete;
  redis_socket& operator=(const redis_socket&) = delete;
  ~redis_socket();

  /// Goes on connecting; to be called when `poll` reports one of `wanted_events`.
  state connect();
  /// How many bytes came or went; 0: none now, or closed.
  std::size_t read(char* into, std::size_t room);
  std::size_t write(const char* from, std::size_t size);

  /// Connected, and at the beginning of TLS.
  bool shakes_hands() const noexcept { return state_ == state::connecting && tcp_open_; }
  state now() const noexcept { return state_; }
  int descriptor() const noexcept { return fd_; }
  /// What to `poll` for.
  short wanted_events(bool has_output) const noexcept;
  /// Why it is closed.
  const std::string& reason() const noexcept { return reason_; }
  /// Closed by a certificate that is not accepted: no later attempt will go better.
  bool refused() const noexcept { return refused_; }

private:
  void look_up(const redis_address& address);
  void connect_to_next();
  void connect_to_path(const std::string& path);
  void close(std::string reason);
  void close_by_errno(const char* what);
  std::size_t settle_tls(int result, bool reading);

  const std::string host_;
  SSL_CTX* const context_;
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> found_;
  addrinfo* next_ = nullptr;
  int fd_ = -1;
  tls_session tls_{nullptr, &::SSL_free};
  bool tcp_open_ = false;
  bool tls_wants_write_ = false; // to go on reading or shaking hands
  state state_ = state::connecting;
  std::string reason_;
  bool refused_ = false;
};

} // namespace zlink::adapters
