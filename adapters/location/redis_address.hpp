// Where a Redis server is and how to be let in: what a URL says.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace zlink::adapters {

struct redis_address {
  std::string host; ///< name or number; empty: `socket_path`
  std::uint16_t port = 6379;
  std::string socket_path;
  bool tls = false;
  std::string tls_ca;   ///< file of trusted authorities; empty: the system's
  std::string tls_cert; ///< file of this client's certificate chain, with `tls_key`; empty: none
  std::string tls_key;
  std::string user; ///< empty: the server's default user
  std::string password;
  std::uint32_t database = 0;

  /// For people: where it is, nothing of user and password.
  std::string shown() const;
};

/// Throws `configuration_error` that says what is wrong and shows nothing of user and password (O-152).
redis_address parse_redis_url(std::string_view url);

} // namespace zlink::adapters
