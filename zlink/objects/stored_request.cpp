#include "zlink/objects/stored_request.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/body_codec.hpp"
#include "zlink/placement/digest.hpp"

namespace zlink::detail {

std::string compose_request(std::string_view name, std::string_view content_type, byte_view data) {
  std::string joined;
  for (auto part : {name, content_type}) {
    joined += static_cast<char>(part.size() & 0xff);
    joined += static_cast<char>(part.size() >> 8);
    joined += part;
  }
  joined.append(reinterpret_cast<const char*>(data.data()), data.size());
  return joined;
}

std::optional<message> split_request(std::string_view joined, std::shared_ptr<const decoding> by) {
  std::string_view name;
  std::string_view content_type;
  for (auto* part : {&name, &content_type}) {
    if (joined.size() < 2)
      return std::nullopt;
    const std::size_t length = static_cast<unsigned char>(joined[0]) | static_cast<unsigned char>(joined[1]) << 8;
    joined.remove_prefix(2);
    if (joined.size() < length)
      return std::nullopt;
    *part = joined.substr(0, length);
    joined.remove_prefix(length);
  }
  if (name.empty())
    return message{};
  payload body;
  body.emplace<encoded_value>(name, content_type,
                              byte_view{reinterpret_cast<const std::byte*>(joined.data()), joined.size()}, std::move(by));
  return message{std::move(body)};
}

placement::request_content encode_request(const message& request, host_runtime& host) {
  auto body = request.to_payload();
  bytes data;
  std::string name;
  std::string type;
  if (!body.empty()) {
    body_encoder encoder{body, host.codecs, &host.system};
    encoder.encode(data);
    name = encoder.packet_name();
    type = encoder.content_type();
  }
  placement::request_content content;
  content.bytes = compose_request(name, type, data);
  if (content.bytes.size() > placement::request_content::size_limit)
    throw std::invalid_argument{"a request of " + std::to_string(content.bytes.size())
                                + " bytes; 1 MiB is the most (encoded)"};
  content.size = static_cast<std::uint32_t>(content.bytes.size());
  content.digest = placement::sha256(content.bytes);
  return content;
}

} // namespace zlink::detail
