#include "zlink/execution/payload.hpp"

#include "zlink/execution/pooled.hpp"
#include "zlink/message.hpp"

namespace zlink::detail {

dynamic_value::dynamic_value(const packet_type& type)
  : type_(&type), place_(take_pooled(type.size, std::align_val_t{type.alignment})) {
  type.construct(place_);
}

dynamic_value::~dynamic_value() {
  if (place_ == nullptr)
    return;
  type_->destroy(place_);
  give_pooled(place_, type_->size, std::align_val_t{type_->alignment});
}

raw_value::raw_value(const packet_type& type)
  : type_(&type), place_(take_pooled(type.size, std::align_val_t{type.alignment})) {}

raw_value::~raw_value() {
  if (place_ != nullptr)
    give_pooled(place_, type_->size, std::align_val_t{type_->alignment});
}

const packet_type* payload::packet() noexcept {
  switch (kind()) {
    case payload_kind::empty: return nullptr;
    case payload_kind::dynamic: return &get<dynamic_value>()->type();
    default: return ops_->packet();
  }
}

std::size_t payload::shared_size() noexcept { return get<message>()->value_size(); }

std::string packet_name_of(payload& body) {
  if (auto* shared = body.get<zlink::message>())
    return std::string{shared->packet_name()};
  if (auto* encoded = body.get<encoded_value>())
    return std::string{encoded->packet_name()};
  if (auto* packet = body.packet())
    return std::string{packet->name};
  if (auto* message = body.get<caf::message>())
    return "a CAF message of " + std::to_string(message->size()) + (message->size() == 1 ? " value" : " values");
  return "(none)";
}

} // namespace zlink::detail
