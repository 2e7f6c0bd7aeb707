#include "tests/links/certificates.hpp"

#include "zlink/clock.hpp"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <stdexcept>

namespace zlink::test {

namespace {

using key_ptr = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using certificate_ptr = std::unique_ptr<X509, decltype(&X509_free)>;
using file_ptr = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

key_ptr new_key() { return {EVP_EC_gen("P-256"), &EVP_PKEY_free}; }

void extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  auto* made = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  if (made == nullptr)
    throw std::runtime_error{"no such extension: " + value};
  X509_add_ext(certificate, made, -1);
  X509_EXTENSION_free(made);
}

certificate_ptr new_certificate(const std::string& name, int serial, EVP_PKEY* key, int from_days, int days) {
  certificate_ptr made{X509_new(), &X509_free};
  constexpr long day = 24L * 60 * 60;
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), from_days * day);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), (from_days + days) * day);
  X509_set_pubkey(made.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return made;
}

file_ptr open_file(const std::string& path) { return {std::fopen(path.c_str(), "w"), &std::fclose}; }

} // namespace

struct test_authority::parts {
  key_ptr key = new_key();
  certificate_ptr certificate = new_certificate("test authority", 1, key.get(), -10, 20);
};

test_authority::test_authority() : parts_(std::make_unique<parts>()) {
  system_random random;
  folder_ = std::filesystem::temp_directory_path() / ("zlink_links_" + std::to_string(random.next()));
  std::filesystem::create_directory(folder_);
  auto* own = parts_->certificate.get();
  X509_set_issuer_name(own, X509_get_subject_name(own));
  extend(own, own, NID_basic_constraints, "critical,CA:TRUE");
  X509_sign(own, parts_->key.get(), EVP_sha256());
  PEM_write_X509(open_file(file("ca.crt")).get(), own);
}

test_authority::~test_authority() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

mesh_tls test_authority::issue(const std::string& name, const certificate_options& options) {
  const auto key = new_key();
  const auto made = new_certificate(name, 2 + issued_++, key.get(), options.valid_from_days, options.valid_days);
  X509_set_issuer_name(made.get(), X509_get_subject_name(parts_->certificate.get()));
  if (!options.names.empty())
    extend(made.get(), parts_->certificate.get(), NID_subject_alt_name, options.names);
  X509_sign(made.get(), parts_->key.get(), EVP_sha256());
  PEM_write_X509(open_file(file(name + ".crt")).get(), made.get());
  PEM_write_PrivateKey(open_file(file(name + ".key")).get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return {file(name + ".crt"), file(name + ".key"), file("ca.crt")};
}

} // namespace zlink::test
