// What a caller makes of a reply's body.
#include "zlink/caf/message_codec.hpp"
#include "zlink/execution/decoding.hpp"
#include "zlink/execution/faults.hpp"
#include "zlink/execution/operation.hpp"

#include <caf/error.hpp>

namespace zlink::detail {

namespace {

error undecodable(const packet_type& wanted, const std::string& why) {
  return {error_kind::protocol_error, "packet \"" + std::string{wanted.name} + "\": " + why};
}

} // namespace

const codec_registry& codecs_of(const encoded_value& value) noexcept {
  static const auto* built_in = new codec_registry;
  return value.by() ? value.by()->codecs : *built_in;
}

void unpack_caf_message(payload& body, caf::actor_system* system) {
  const auto* encoded = body.get<encoded_value>();
  if (encoded == nullptr || encoded->content_type() != caf_content_type)
    return;
  if (system == nullptr)
    throw decode_error{"CAF message \"" + std::string{encoded->packet_name()} + "\": there is no actor system to decode it"};
  auto content = decode_caf_message(*system, encoded->packet_name(), encoded->data());
  body.emplace<caf::message>(std::move(content));
}

std::optional<error> decode_reply(payload& body, const packet_type& wanted, void* into) noexcept {
  try {
    if (auto* encoded = body.get<encoded_value>()) {
      if (encoded->packet_name() != wanted.name)
        return unexpected_reply(body, wanted.name.data());
      codecs_of(*encoded).decode(encoded->content_type(), wanted, encoded->data(), into);
      return std::nullopt;
    }
    if (auto* dynamic = body.get<dynamic_value>(); dynamic != nullptr && &dynamic->type() == &wanted) {
      wanted.destroy(into);
      wanted.copy(into, dynamic->address());
      return std::nullopt;
    }
    if (auto* message = body.get<caf::message>()) {
      const auto* caf_ops = wanted.caf.load(std::memory_order_acquire);
      if (caf_ops != nullptr && matches(*caf_ops, *message)) {
        wanted.destroy(into);
        take_from(*message, *caf_ops, into);
        return std::nullopt;
      }
    }
    return unexpected_reply(body, wanted.name.data());
  } catch (...) {
    return undecodable(wanted, text_of_current_exception());
  }
}

std::optional<error> caf_failure(payload& body) noexcept {
  try {
    if (const auto* encoded = body.get<encoded_value>())
      unpack_caf_message(body, encoded->by() ? encoded->by()->system : nullptr);
  } catch (...) {
    return error{error_kind::protocol_error, text_of_current_exception()};
  }
  auto* message = body.get<caf::message>();
  if (message == nullptr || !message->match_elements<caf::error>())
    return std::nullopt;
  const auto& what = message->get_as<caf::error>(0);
  return error{error_kind::internal_failure, text_of(what),
               error::platform_code{"caf." + to_string(what.category()), what.code()}};
}

} // namespace zlink::detail
