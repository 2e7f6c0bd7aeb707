// What a caller makes of a reply's body.
#include "zlink/codec.hpp"
#include "zlink/execution/operation.hpp"

#include <caf/error.hpp>

namespace zlink::detail {

namespace {

/// Replies between nodes use the built-in encodings unless the host added others; those are decoded on receipt.
const codec_registry& built_in_codecs() {
  static const auto* the_registry = new codec_registry;
  return *the_registry;
}

error undecodable(const packet_type& wanted, const char* why) {
  return {error_kind::protocol_error, "packet \"" + std::string{wanted.name} + "\": " + why};
}

} // namespace

std::optional<error> decode_reply(payload& body, const packet_type& wanted, void* into) noexcept {
  try {
    if (auto* encoded = body.get<encoded_value>()) {
      if (encoded->packet_name() != wanted.name)
        return unexpected_reply(body, wanted.name.data());
      built_in_codecs().decode(encoded->content_type(), wanted, encoded->data(), into);
      return std::nullopt;
    }
    if (auto* dynamic = body.get<dynamic_value>(); dynamic != nullptr && &dynamic->type() == &wanted) {
      wanted.destroy(into);
      wanted.copy(into, dynamic->address());
      return std::nullopt;
    }
    if (auto* message = body.get<caf::message>()) {
      const auto* caf_ops = wanted.caf.load(std::memory_order_acquire);
      if (caf_ops != nullptr && caf_ops->matches(*message)) {
        wanted.destroy(into);
        caf_ops->from_message(*message, into);
        return std::nullopt;
      }
    }
    return unexpected_reply(body, wanted.name.data());
  } catch (const std::exception& what) {
    return undecodable(wanted, what.what());
  }
}

std::optional<error> caf_failure(payload& body) {
  auto* message = body.get<caf::message>();
  if (message == nullptr || !message->match_elements<caf::error>())
    return std::nullopt;
  const auto& what = message->get_as<caf::error>(0);
  return error{error_kind::internal_failure, text_of(what), error::platform_code{"caf." + to_string(what.category()), what.code()}};
}

} // namespace zlink::detail
