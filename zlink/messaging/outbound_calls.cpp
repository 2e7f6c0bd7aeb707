#include "zlink/outbound_calls.hpp"

#include "zlink/host/host_runtime.hpp"

namespace zlink {

spot_outbound::spot_outbound(detail::counted_ptr<detail::hosted_object> object) noexcept : object_(std::move(object)) {}
spot_outbound::spot_outbound(const spot_outbound&) = default;
spot_outbound::spot_outbound(spot_outbound&&) noexcept = default;
spot_outbound& spot_outbound::operator=(spot_outbound other) noexcept {
  object_ = std::move(other.object_);
  return *this;
}
spot_outbound::~spot_outbound() = default;

detail::message_call spot_outbound::spot_call(std::string spot_id, detail::record* r) const {
  auto call = detail::make_spot_call(*object_->home_node().host, std::move(spot_id), r);
  call.made_by(object_);
  return call;
}

detail::message_call spot_outbound::actor_call(std::string actor_id, detail::record* r) const {
  auto call = detail::make_actor_call(*object_->home_node().host, actor_id, r);
  call.made_by(object_);
  return call;
}

detail::message_call spot_outbound::channel_call(std::string channel, detail::record* r) const {
  auto call = detail::make_channel_call(*object_->home_node().host, std::move(channel), r);
  call.made_by(object_);
  return call;
}

detail::message_call spot_outbound::topic_call(std::string channel, std::string topic, detail::record* r) const {
  auto call = detail::make_topic_call(*object_->home_node().host, std::move(channel), std::move(topic), r);
  call.made_by(object_);
  return call;
}

} // namespace zlink
