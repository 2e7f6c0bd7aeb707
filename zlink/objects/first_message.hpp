// The stored form of the message that wakes an Instance Spot (C-92, C-94).
#pragma once

#include "zlink/packet.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace zlink::detail {

struct first_message {
  std::string spot_id;
  std::string stable_type;
  std::uint64_t operation_high = 0;
  std::uint64_t operation_low = 0;
  bool request = false;
  std::string packet_name;
  std::string content_type;
  std::vector<std::byte> metadata;
  std::vector<std::byte> data;
};
ZLINK_PACKET(first_message, "zlink.first_message", spot_id, stable_type, operation_high, operation_low, request,
             packet_name, content_type, metadata, data)

} // namespace zlink::detail
