#include "zlink/messaging/body_codec.hpp"

#include "zlink/caf/message_codec.hpp"

namespace zlink::detail {

body_encoder::body_encoder(payload& body, const codec_registry& codecs, caf::actor_system* system)
  : codecs_(codecs), system_(system) {
  if (const auto* encoded = body.get<encoded_value>()) {
    encoded_ = encoded;
    packet_name_ = encoded->packet_name();
    content_type_ = encoded->content_type();
  } else if (const auto* packet = body.packet()) {
    const auto* dynamic = body.get<dynamic_value>();
    plan_packet(*packet, dynamic != nullptr ? dynamic->address() : body.address());
  } else if (const auto* content = body.get<caf::message>()) {
    plan_caf_message(*content);
  } else if (body.empty()) {
    throw encode_error{"a message between nodes needs a packet"};
  } else {
    throw encode_error{std::string{"type "} + body.ops()->type->name()
                       + " has no ZLINK_PACKET line, so it cannot leave this node"};
  }
}

void body_encoder::plan_packet(const packet_type& type, const void* value) {
  type_ = &type;
  value_ = value;
  codec_ = &codecs_.for_sending(type);
  packet_name_ = type.name;
  content_type_ = codecs_.content_type_of(*codec_);
}

void body_encoder::plan_caf_message(const caf::message& content) {
  if (const auto* packet = packet_of(content)) {
    plan_packet(*packet, content.cvals()->get(0)); // to the other side it is that packet (D-11)
    return;
  }
  if (system_ == nullptr)
    throw encode_error{"CAF messages cannot leave a node without an actor system"};
  caf_name_ = caf_packet_name(*system_, content);
  content_ = &content;
  packet_name_ = caf_name_;
  content_type_ = caf_content_type;
}

void body_encoder::encode(bytes& to) {
  if (encoded_ != nullptr)
    to.insert(to.end(), encoded_->data().begin(), encoded_->data().end());
  else if (type_ != nullptr)
    codec_->encode(*type_, value_, to);
  else
    encode_caf_message(*system_, *content_, to);
}

} // namespace zlink::detail
