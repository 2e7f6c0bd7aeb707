// From what a record carries to the packet name, content type and bytes of a frame, and back.
#pragma once

#include "zlink/codec.hpp"
#include "zlink/execution/payload.hpp"

#include <string>
#include <string_view>

namespace caf {
class actor_system;
}

namespace zlink::detail {

/// How one body is encoded: first the name and type, then the bytes, so that a frame can put the ones before the
/// others.
class body_encoder {
public:
  /// `body` and `codecs` outlive the encoder. `system` is needed for CAF messages only (D-13). Throws `encode_error`
  /// for what cannot travel between nodes: no packet, no codec, types that CAF does not know, and an empty body.
  body_encoder(payload& body, const codec_registry& codecs, caf::actor_system* system);
  body_encoder(const body_encoder&) = delete;
  body_encoder& operator=(const body_encoder&) = delete;

  std::string_view packet_name() const noexcept { return packet_name_; }
  std::string_view content_type() const noexcept { return content_type_; }
  /// Appends the bytes. Once. Throws `encode_error`.
  void encode(bytes& to);

private:
  void plan_packet(const packet_type& type, const void* value);
  void plan_caf_message(const caf::message& content);

  const codec_registry& codecs_;
  caf::actor_system* system_;
  std::string_view packet_name_;
  std::string_view content_type_;
  const encoded_value* encoded_ = nullptr;
  const packet_type* type_ = nullptr;
  const void* value_ = nullptr;
  const codec* codec_ = nullptr;
  const caf::message* content_ = nullptr;
  std::string caf_name_;
};

} // namespace zlink::detail
