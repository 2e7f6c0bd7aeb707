#include "adapters/location/redis_tls.hpp"

#include "zlink/error.hpp"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <new>

namespace zlink::adapters {

namespace {

[[noreturn]] void unusable(const char* what, const std::string& file) {
  throw configuration_error{"Redis TLS: the " + std::string{what} + " '" + file
                            + "' cannot be used: " + tls_error_text("unknown reason") + "; give a readable PEM file"};
}

bool is_ip_number(const std::string& host) noexcept {
  unsigned char number[sizeof(in6_addr)];
  return ::inet_pton(AF_INET, host.c_str(), number) == 1 || ::inet_pton(AF_INET6, host.c_str(), number) == 1;
}

} // namespace

tls_context make_tls_context(const redis_address& address) {
  ::ERR_clear_error();
  tls_context context{::SSL_CTX_new(::TLS_client_method()), &::SSL_CTX_free};
  if (!context)
    throw std::bad_alloc{};
  ::SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  ::SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  // A write tells after each record how far it came, so that a request which never left is known as such (S-157).
  ::SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (address.tls_ca.empty())
    ::SSL_CTX_set_default_verify_paths(context.get());
  else if (::SSL_CTX_load_verify_locations(context.get(), address.tls_ca.c_str(), nullptr) != 1)
    unusable("file of authorities", address.tls_ca);
  if (!address.tls_cert.empty()) {
    if (::SSL_CTX_use_certificate_chain_file(context.get(), address.tls_cert.c_str()) != 1)
      unusable("certificate", address.tls_cert);
    if (::SSL_CTX_use_PrivateKey_file(context.get(), address.tls_key.c_str(), SSL_FILETYPE_PEM) != 1
        || ::SSL_CTX_check_private_key(context.get()) != 1)
      unusable("key", address.tls_key);
  }
  return context;
}

tls_session make_tls_session(SSL_CTX& context, int socket, const std::string& host) {
  tls_session session{::SSL_new(&context), &::SSL_free};
  if (!session || ::SSL_set_fd(session.get(), socket) != 1)
    throw std::bad_alloc{};
  if (is_ip_number(host)) {
    ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(session.get()), host.c_str());
  } else {
    ::SSL_set1_host(session.get(), host.c_str());
    ::SSL_set_tlsext_host_name(session.get(), host.c_str());
  }
  ::SSL_set_connect_state(session.get());
  return session;
}

std::string tls_error_text(const char* otherwise) {
  const auto code = ::ERR_peek_last_error();
  ::ERR_clear_error();
  if (code == 0)
    return otherwise;
  const char* reason = ::ERR_reason_error_string(code);
  return reason ? reason : otherwise;
}

} // namespace zlink::adapters
