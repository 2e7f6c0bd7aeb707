// What TLS connections to a Redis server share: trusted authorities and this client's certificate.
#pragma once

#include "adapters/location/redis_address.hpp"

#include <openssl/ssl.h>

#include <memory>
#include <string>

namespace zlink::adapters {

using tls_context = std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)>;
using tls_session = std::unique_ptr<SSL, decltype(&::SSL_free)>;

/// Throws `configuration_error` if a file cannot be used. TLS 1.2 or newer; the server must prove its name.
tls_context make_tls_context(const redis_address& address);
/// A client session over the connected, non-blocking `socket`, which checks that the server is `host`.
tls_session make_tls_session(SSL_CTX& context, int socket, const std::string& host);
/// What OpenSSL noted last on this thread, or `otherwise`.
std::string tls_error_text(const char* otherwise);

} // namespace zlink::adapters
