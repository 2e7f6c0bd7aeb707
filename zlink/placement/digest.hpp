// SHA-256 of stored payloads.
#pragma once

#include "zlink/placement/records.hpp"

#include <string_view>

namespace zlink::placement {

content_digest sha256(std::string_view bytes);

} // namespace zlink::placement
