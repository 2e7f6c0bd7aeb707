#include "adapters/tcp/tls.hpp"

#include "adapters/tcp/certificate_names.hpp"
#include "zlink/error.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <system_error>

namespace zlink::detail {

namespace {

constexpr std::size_t largest_identity = 1024;

/// The first thing that went wrong, and forgets the rest.
std::string take_error() {
  const auto code = ERR_get_error();
  ERR_clear_error();
  if (ERR_SYSTEM_ERROR(code)) // a file that cannot be opened, for instance
    return std::generic_category().message(ERR_GET_REASON(code));
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "unknown error" : reason;
}

void require(bool fine, const char* what, const std::string& file) {
  if (!fine)
    throw configuration_error{std::string{"tls: "} + what + " \"" + file + "\" cannot be used: " + take_error()};
}

/// Of an address, or a name.
void expect_host(SSL* session, const std::string& host) {
  auto* rules = SSL_get0_param(session);
  if (X509_VERIFY_PARAM_set1_ip_asc(rules, host.c_str()) == 1)
    return;
  ERR_clear_error();
  X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  if (X509_VERIFY_PARAM_set1_host(rules, host.c_str(), host.size()) != 1)
    throw std::runtime_error{"TLS cannot expect a certificate for \"" + host + '"'};
  SSL_set_tlsext_host_name(session, host.c_str());
}

} // namespace

// -- the node's own ---------------------------------------------------------------------------------------------------

void tls_context::release::operator()(ssl_ctx_st* context) const noexcept { SSL_CTX_free(context); }

tls_context::tls_context(const mesh_tls& files) : context_(SSL_CTX_new(TLS_method())) {
  auto* context = context_.get();
  if (context == nullptr)
    throw configuration_error{"tls is not available: " + take_error()};
  ERR_clear_error();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20");
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  require(SSL_CTX_use_certificate_chain_file(context, files.cert.c_str()) == 1, "cert", files.cert);
  require(SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) == 1, "key", files.key);
  require(SSL_CTX_check_private_key(context) == 1, "key", files.key);
  require(SSL_CTX_load_verify_locations(context, files.ca.c_str(), nullptr) == 1, "ca", files.ca);
  SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(files.ca.c_str()));
  identity_ = alternative_names(SSL_CTX_get0_certificate(context));
  if (identity_.empty() || identity_.size() > largest_identity)
    throw configuration_error{"tls: cert \"" + files.cert + "\" must have subject alternative names, 1 to "
                              + std::to_string(largest_identity) + " bytes of them: peers look for the host there"};
}

tls_context::~tls_context() = default;

// -- one stream -------------------------------------------------------------------------------------------------------

void tls_session::release::operator()(ssl_st* session) const noexcept { SSL_free(session); }

tls_session::tls_session(const tls_context& context, handshake::side side, const std::string& dialled)
  : session_(SSL_new(context.get())), in_(BIO_new(BIO_s_mem())), out_(BIO_new(BIO_s_mem())) {
  if (!session_ || in_ == nullptr || out_ == nullptr)
    throw std::bad_alloc{};
  BIO_set_mem_eof_return(in_, -1);
  BIO_set_mem_eof_return(out_, -1);
  SSL_set_bio(session_.get(), in_, out_);
  if (side == handshake::side::listening) {
    SSL_set_accept_state(session_.get());
    return;
  }
  SSL_set_connect_state(session_.get());
  expect_host(session_.get(), dialled);
}

tls_session::~tls_session() { ERR_clear_error(); }

tls_session::status tls_session::explain(int returned) {
  switch (SSL_get_error(session_.get(), returned)) {
    case SSL_ERROR_WANT_READ: return status::wants_more;
    case SSL_ERROR_ZERO_RETURN: return status::closed;
    default: break;
  }
  const auto verified = SSL_get_verify_result(session_.get());
  failure_ = take_error();
  if (verified != X509_V_OK)
    failure_ += std::string{" ("} + X509_verify_cert_error_string(verified) + ')';
  return status::failed;
}

tls_session::status tls_session::shake_hands() {
  ERR_clear_error();
  const int returned = SSL_do_handshake(session_.get());
  return returned == 1 ? status::done : explain(returned);
}

void tls_session::receive(byte_view sealed) {
  while (!sealed.empty()) {
    const auto piece = std::min<std::size_t>(sealed.size(), std::numeric_limits<int>::max());
    BIO_write(in_, sealed.data(), static_cast<int>(piece));
    sealed = sealed.subspan(piece);
  }
}

tls_session::status tls_session::read(std::span<std::byte> to, std::size_t& count) {
  ERR_clear_error();
  const int returned = SSL_read_ex(session_.get(), to.data(), to.size(), &count);
  return returned == 1 ? status::done : explain(returned);
}

tls_session::status tls_session::write(byte_view plain) {
  ERR_clear_error();
  std::size_t count = 0;
  const int returned = plain.empty() ? 1 : SSL_write_ex(session_.get(), plain.data(), plain.size(), &count);
  return returned == 1 ? status::done : explain(returned);
}

void tls_session::end() {
  ERR_clear_error();
  if (SSL_is_init_finished(session_.get()) == 1)
    SSL_shutdown(session_.get());
  ERR_clear_error();
}

byte_view tls_session::output() const noexcept {
  char* first = nullptr;
  const auto size = BIO_get_mem_data(out_, &first);
  return byte_view{reinterpret_cast<const std::byte*>(first), static_cast<std::size_t>(size)}.subspan(sent_);
}

void tls_session::sent(std::size_t count) noexcept {
  sent_ += count;
  if (!output().empty())
    return;
  BIO_reset(out_);
  sent_ = 0;
}

std::string tls_session::peer_identity() const { return alternative_names(SSL_get0_peer_certificate(session_.get())); }

handshake_mac tls_session::channel() const {
  constexpr std::string_view label = "EXPORTER-Channel-Binding";
  handshake_mac made{};
  if (SSL_export_keying_material(session_.get(), reinterpret_cast<unsigned char*>(made.data()), made.size(), label.data(),
                                 label.size(), nullptr, 0, 0)
      != 1)
    throw std::runtime_error{"TLS has no channel binding: " + take_error()};
  return made;
}

} // namespace zlink::detail
