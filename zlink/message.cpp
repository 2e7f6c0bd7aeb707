#include "zlink/message.hpp"

#include "zlink/codec.hpp"
#include "zlink/execution/operation.hpp"

namespace zlink {

std::string_view message::packet_name() const noexcept {
  if (state_ == nullptr)
    return {};
  std::lock_guard guard{state_->mutex};
  if (auto* encoded = state_->body.get<detail::encoded_value>())
    return encoded->packet_name();
  const auto* packet = state_->body.packet();
  return packet == nullptr ? std::string_view{} : packet->name;
}

std::string_view message::content_type() const noexcept {
  if (state_ == nullptr)
    return {};
  std::lock_guard guard{state_->mutex};
  auto* encoded = state_->body.get<detail::encoded_value>();
  return encoded == nullptr ? std::string_view{} : encoded->content_type();
}

const void* message::decoded(const detail::packet_type& wanted) const {
  if (state_ == nullptr)
    throw operation_failed{error{error_kind::type_mismatch,
                                 "an empty message is no packet \"" + std::string{wanted.name} + '"'}};
  std::lock_guard guard{state_->mutex};
  auto& body = state_->body;
  if (body.kind() != detail::payload_kind::value && !state_->failure && body.packet() == nullptr) {
    // Decoded in a place of its own: what is held changes once, from bytes to value.
    detail::dynamic_value value{wanted};
    if (auto failed = detail::decode_reply(body, wanted, value.address()))
      state_->failure = std::move(failed);
    else
      body.emplace<detail::dynamic_value>(std::move(value));
  }
  if (body.packet() == &wanted)
    return body.kind() == detail::payload_kind::dynamic ? body.get<detail::dynamic_value>()->address() : body.address();
  if (state_->failure)
    throw operation_failed{error{*state_->failure}};
  throw operation_failed{error{error_kind::type_mismatch,
                               "the message is packet \"" + std::string{body.packet()->name} + "\", not \""
                                 + std::string{wanted.name} + '"'}};
}

const void* message::value_if(const detail::packet_type& wanted) const {
  if (state_ == nullptr)
    return nullptr;
  std::lock_guard guard{state_->mutex};
  auto& body = state_->body;
  if (auto* encoded = body.get<detail::encoded_value>(); encoded != nullptr && encoded->packet_name() == wanted.name) {
    detail::dynamic_value value{wanted};
    if (!detail::decode_reply(body, wanted, value.address()))
      body.emplace<detail::dynamic_value>(std::move(value));
  }
  if (body.packet() != &wanted)
    return nullptr;
  return body.kind() == detail::payload_kind::dynamic ? body.get<detail::dynamic_value>()->address() : body.address();
}

std::size_t message::value_size() const noexcept {
  if (state_ == nullptr)
    return 0;
  std::lock_guard guard{state_->mutex};
  return state_->body.size();
}

detail::payload message::to_payload() const {
  detail::payload copy;
  if (state_ == nullptr)
    return copy;
  std::lock_guard guard{state_->mutex};
  auto& body = state_->body;
  if (auto* encoded = body.get<detail::encoded_value>()) {
    copy.emplace<detail::encoded_value>(*encoded);
  } else if (const auto* packet = body.packet()) {
    detail::raw_value value{*packet};
    packet->copy(value.place(), body.kind() == detail::payload_kind::dynamic
                                  ? body.get<detail::dynamic_value>()->address()
                                  : body.address());
    copy.emplace<detail::dynamic_value>(std::move(value).constructed());
  }
  return copy;
}

} // namespace zlink
