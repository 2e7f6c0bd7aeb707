// What a handler may know about the message it serves (M-31).
#pragma once

#include <optional>
#include <string_view>

namespace zlink {

class message_metadata;

namespace detail {
class execution_object;
struct record;
} // namespace detail

/// Read-only, valid until the handler's task has ended. Holds no address of the sender, no fence, no lease (M-25, M-31).
class message_context {
public:
  /// The mesh the message came by.
  std::string_view mesh_name() const noexcept;
  /// The channel, empty for messages that name a Spot, an Actor or a node.
  std::string_view channel_name() const noexcept;
  /// The topic of a published message, else empty.
  std::string_view topic() const noexcept;
  /// The RID of the sending node for node-direct messages, else empty.
  std::string_view source_rid() const noexcept;
  /// The name that the message was sent under and that chose its handler (M-29, M-31).
  std::string_view packet_name() const noexcept;
  /// The content type the message travelled with; a message from this node was not encoded and says so by an empty one.
  std::string_view content_type() const noexcept;
  /// Present for requests, absent for sends (M-31).
  std::optional<std::string_view> correlation_id() const noexcept;
  /// The value of that key, empty if it was not set.
  std::string_view metadata(std::string_view key) const noexcept;
  const message_metadata& metadata() const noexcept;

  // -- for the layer ---------------------------------------------------------------------------------------------------
  message_context(const detail::execution_object* object, detail::record* served) noexcept
    : object_(object), record_(served) {}
  message_context(const message_context&) = delete;
  message_context& operator=(const message_context&) = delete;

private:
  const detail::execution_object* object_;
  detail::record* record_;
};

} // namespace zlink
