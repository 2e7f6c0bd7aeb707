// `message`: a request or reply whose type the receiver names; and the answer of callbacks that accept or reject.
#pragma once

#include "zlink/execution/payload.hpp"
#include "zlink/message_context.hpp"
#include "zlink/metadata.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include <caf/message.hpp>

namespace zlink {

/// Immutable and cheap to copy: packet name, content type, and a value or its encoding. Decoded at most once, on first
/// access (M-45). Thread-safe.
class message {
public:
  message() = default;
  template <packet T>
  explicit message(T value) : state_(std::make_shared<state>()) {
    state_->body.template emplace<T>(std::move(value));
  }

  /// True for a message without a packet.
  bool empty() const noexcept { return state_ == nullptr || state_->body.empty(); }
  std::string_view packet_name() const noexcept;
  /// Empty for a value that was never encoded.
  std::string_view content_type() const noexcept;

  /// The packet. Throws `operation_failed`: `type_mismatch` if it is another packet, `protocol_error` if the bytes are no
  /// such packet. The reference lives as long as this message or a copy of it.
  template <packet T>
  const T& as() const {
    return *static_cast<const T*>(decoded(detail::packet_type_of<T>()));
  }

  // -- for the layer ---------------------------------------------------------------------------------------------------
  explicit message(detail::payload body) : state_(std::make_shared<state>()) { state_->body = std::move(body); }
  /// The value if it is of this type, decoded now if that was not done before and can be; else null.
  const void* value_if(const detail::packet_type& wanted) const;
  /// Bytes of the value or of its encoding.
  std::size_t value_size() const noexcept;
  /// A copy of the value or the bytes, to travel in a record.
  detail::payload to_payload() const;

private:
  struct state {
    std::mutex mutex;
    detail::payload body;
    std::optional<error> failure;
  };
  const void* decoded(const detail::packet_type& wanted) const;

  std::shared_ptr<state> state_;
};

/// Whether a callback accepts, and an optional reply; independent of each other (C-143).
struct accept_reject_response {
  bool accepted = true;
  std::optional<message> reply;
};
using spot_create_response = accept_reject_response;
using actor_create_response = accept_reject_response;
using actor_join_response = accept_reject_response;

inline accept_reject_response accept() { return {true, std::nullopt}; }
inline accept_reject_response reject() { return {false, std::nullopt}; }
template <packet T>
accept_reject_response accept(T reply) {
  return {true, message{std::move(reply)}};
}
template <packet T>
accept_reject_response reject(T reply) {
  return {false, message{std::move(reply)}};
}

} // namespace zlink
