// Requests of creations and Joins, and replies to them, as they are stored and as they travel.
#pragma once

#include "zlink/codec.hpp"
#include "zlink/message.hpp"
#include "zlink/placement/records.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace zlink::detail {

class host_runtime;
struct decoding;

/// Packet name, content type, bytes.
std::string compose_request(std::string_view name, std::string_view content_type, byte_view data);
/// Nothing for bytes that `compose_request` does not make. `by`: with which the message is decoded when it is read.
std::optional<message> split_request(std::string_view joined, std::shared_ptr<const decoding> by);
/// Throws `std::invalid_argument` beyond 1 MiB (C-68, J-56), and what the codec throws.
placement::request_content encode_request(const message& request, host_runtime& host);

} // namespace zlink::detail
