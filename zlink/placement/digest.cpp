#include "zlink/placement/digest.hpp"

#include <openssl/evp.h>

#include <memory>
#include <stdexcept>

namespace zlink::placement {

namespace {

struct context_free {
  void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};

} // namespace

content_digest sha256(std::string_view bytes) {
  // Both once, the context for each thread: looking them up and making them costs more than hashing a message.
  static const EVP_MD* algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  thread_local const std::unique_ptr<EVP_MD_CTX, context_free> context{EVP_MD_CTX_new()};
  content_digest digest{};
  unsigned int length = 0;
  if (EVP_DigestInit_ex2(context.get(), algorithm, nullptr) != 1
      || EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) != 1
      || EVP_DigestFinal_ex(context.get(), digest.data(), &length) != 1)
    throw std::runtime_error{"SHA-256 is not available"};
  return digest;
}

} // namespace zlink::placement
