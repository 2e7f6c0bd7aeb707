#include "zlink/placement/digest.hpp"

#include <openssl/evp.h>

#include <stdexcept>

namespace zlink::placement {

content_digest sha256(std::string_view bytes) {
  content_digest digest{};
  static const EVP_MD* algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr); // once: looking it up costs more than hashing
  unsigned int length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, algorithm, nullptr) != 1)
    throw std::runtime_error{"SHA-256 is not available"};
  return digest;
}

} // namespace zlink::placement
