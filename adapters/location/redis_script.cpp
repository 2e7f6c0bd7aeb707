#include "adapters/location/redis_script.hpp"

#include <openssl/sha.h>

namespace zlink::adapters {

namespace {

std::string sha1_digits(std::string_view text) {
  unsigned char digest[SHA_DIGEST_LENGTH];
  ::SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  std::string digits;
  for (const auto byte : digest) {
    digits += "0123456789abcdef"[byte >> 4];
    digits += "0123456789abcdef"[byte & 15];
  }
  return digits;
}

} // namespace

void append_element(std::string& command, std::string_view element) {
  command.append(1, '$').append(std::to_string(element.size())).append("\r\n").append(element).append("\r\n");
}

redis_script::redis_script(std::initializer_list<std::string_view> parts) {
  for (const auto part : parts)
    text_.append(part);
  digest_ = sha1_digits(text_);
}

void redis_arguments::append_call(std::string& out, const redis_script& script, bool whole) const {
  out.append(1, '*').append(std::to_string(count_ + 2)).append("\r\n");
  append_element(out, whole ? "EVAL" : "EVALSHA");
  append_element(out, whole ? script.text() : script.digest());
  out.append(bytes_);
}

} // namespace zlink::adapters
