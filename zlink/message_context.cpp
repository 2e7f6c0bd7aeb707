#include "zlink/message_context.hpp"

#include "zlink/codec.hpp"
#include "zlink/execution/execution_object.hpp"
#include "zlink/message.hpp"
#include "zlink/metadata.hpp"

#include <atomic>
#include <string>

namespace zlink {

namespace {

const message_metadata no_metadata{};

} // namespace

std::string_view message_context::mesh_name() const noexcept { return object_->mesh_name(); }

std::string_view message_context::channel_name() const noexcept {
  return record_->extra ? std::string_view{record_->extra->channel} : std::string_view{};
}

std::string_view message_context::topic() const noexcept {
  return record_->extra ? std::string_view{record_->extra->topic} : std::string_view{};
}

std::string_view message_context::source_rid() const noexcept {
  return record_->source_rid != nullptr ? std::string_view{*record_->source_rid} : std::string_view{};
}

std::string_view message_context::packet_name() const noexcept {
  if (record_->extra && !record_->extra->packet_name.empty())
    return record_->extra->packet_name;
  if (auto* encoded = record_->body.get<detail::encoded_value>())
    return encoded->packet_name();
  if (auto* shared = record_->body.get<message>())
    return shared->packet_name();
  const auto* packet = record_->body.packet();
  return packet == nullptr ? std::string_view{} : packet->name;
}

std::string_view message_context::content_type() const noexcept {
  if (auto* encoded = record_->body.get<detail::encoded_value>())
    return encoded->content_type();
  const auto* codec = record_->decoded_by;
  return codec == nullptr ? std::string_view{} : object_->domain().codecs->content_type_of(*codec);
}

std::optional<std::string_view> message_context::correlation_id() const noexcept {
  if (record_->kind != detail::record_kind::request)
    return std::nullopt;
  auto& correlation = record_->more().correlation;
  if (correlation.empty()) { // made when somebody asks: most handlers do not
    static std::atomic<std::uint64_t> last{0};
    correlation = record_->from_link ? detail::format_uuid_v4(record_->operation)
                                     : "local-" + std::to_string(last.fetch_add(1, std::memory_order_relaxed) + 1);
  }
  return correlation;
}

std::string_view message_context::metadata(std::string_view key) const noexcept {
  return metadata().get(key).value_or(std::string_view{});
}

const message_metadata& message_context::metadata() const noexcept {
  return record_->extra ? record_->extra->metadata : no_metadata;
}

} // namespace zlink
