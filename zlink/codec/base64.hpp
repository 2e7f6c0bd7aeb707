// Base64 of RFC 4648 section 4, with padding. Reading is strict: OpenSSL's decoder lets blanks and stray bits pass.
#pragma once

#include "zlink/packet_type.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace zlink::detail {

void append_base64(std::string& to, byte_view from);
/// Nothing unless `text` is what `append_base64` makes of some bytes.
std::optional<bytes> parse_base64(std::string_view text);

} // namespace zlink::detail
