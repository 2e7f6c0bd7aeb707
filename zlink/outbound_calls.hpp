// Messages from inside an object.
#pragma once

#include "zlink/calls.hpp"
#include "zlink/execution/counted.hpp"

#include <string>
#include <utility>

namespace zlink {

namespace detail {
class hosted_object;
}

/// Messages from inside a Spot or Actor; calls made here belong to its turn (M-20). May be kept: once the object has ended,
/// calls end in `unavailable` (M-24).
class spot_outbound {
public:
  /// Throws `std::invalid_argument` for a malformed id (M-15).
  template <packet T>
  spot_send_call send_to_spot(std::string spot_id, T message) const {
    return spot_send_call{spot_call(std::move(spot_id), detail::make_message_record(std::move(message), false))};
  }
  spot_send_call send_to_spot(std::string spot_id, const message& untyped) const {
    return spot_send_call{spot_call(std::move(spot_id), detail::make_message_record(untyped, false))};
  }
  template <packet T>
  spot_request_call request_to_spot(std::string spot_id, T request) const {
    return spot_request_call{spot_call(std::move(spot_id), detail::make_message_record(std::move(request), true))};
  }
  spot_request_call request_to_spot(std::string spot_id, const message& untyped) const {
    return spot_request_call{spot_call(std::move(spot_id), detail::make_message_record(untyped, true))};
  }

  /// To an Actor, whichever Spot it belongs to (M-68, M-69).
  template <packet T>
  actor_send_call send_to_actor(std::string actor_id, T message) const {
    return actor_send_call{actor_call(std::move(actor_id), detail::make_message_record(std::move(message), false))};
  }
  template <packet T>
  actor_request_call request_to_actor(std::string actor_id, T request) const {
    return actor_request_call{actor_call(std::move(actor_id), detail::make_message_record(std::move(request), true))};
  }
  actor_send_call send_to_actor(std::string actor_id, const message& untyped) const {
    return actor_send_call{actor_call(std::move(actor_id), detail::make_message_record(untyped, false))};
  }
  actor_request_call request_to_actor(std::string actor_id, const message& untyped) const {
    return actor_request_call{actor_call(std::move(actor_id), detail::make_message_record(untyped, true))};
  }

  /// To one of the nodes that serve the channel. Throws `std::invalid_argument` for a malformed name (M-15).
  template <packet T>
  channel_send_call send_to_channel(std::string channel, T message) const {
    return channel_send_call{channel_call(std::move(channel), detail::make_message_record(std::move(message), false))};
  }
  template <packet T>
  channel_request_call request_to_channel(std::string channel, T request) const {
    return channel_request_call{channel_call(std::move(channel), detail::make_message_record(std::move(request), true))};
  }
  channel_send_call send_to_channel(std::string channel, const message& untyped) const {
    return channel_send_call{channel_call(std::move(channel), detail::make_message_record(untyped, false))};
  }
  channel_request_call request_to_channel(std::string channel, const message& untyped) const {
    return channel_request_call{channel_call(std::move(channel), detail::make_message_record(untyped, true))};
  }
  /// To every Spot that has subscribed to that topic of the channel (M-113). The topic is any text but the empty one.
  template <packet T>
  publish_call publish(std::string channel, std::string topic, T event) const {
    return publish_call{
      topic_call(std::move(channel), std::move(topic), detail::make_message_record(std::move(event), false))};
  }

  explicit spot_outbound(detail::counted_ptr<detail::hosted_object> object) noexcept;
  spot_outbound(const spot_outbound&);
  spot_outbound(spot_outbound&&) noexcept;
  spot_outbound& operator=(spot_outbound) noexcept;
  ~spot_outbound();

private:
  detail::message_call spot_call(std::string spot_id, detail::record* r) const;
  detail::message_call actor_call(std::string actor_id, detail::record* r) const;
  detail::message_call channel_call(std::string channel, detail::record* r) const;
  detail::message_call topic_call(std::string channel, std::string topic, detail::record* r) const;
  detail::counted_ptr<detail::hosted_object> object_;
};

} // namespace zlink
