// Clients and managers that a host hands out. Usable from any thread; inside a turn their calls belong to that turn (M-22).
#pragma once

#include "zlink/calls.hpp"
#include "zlink/context.hpp"
#include "zlink/identity.hpp"
#include "zlink/message.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace zlink {

/// How a create call ended (C-62).
enum class spot_create_state : std::uint8_t { existing = 0, created = 1, rejected = 2 };
/// "existing", "created", "rejected".
const char* to_string(spot_create_state state) noexcept;

/// Ref, state and reply together; a rejected attempt's ref names that attempt only.
struct spot_create_result {
  spot_ref spot;
  spot_create_state state = spot_create_state::existing;
  std::optional<message> reply;
};

/// As `spot_create_result`, for an Actor.
struct actor_create_result {
  actor_ref actor;
  spot_create_state state = spot_create_state::existing;
  std::optional<message> reply;
};

namespace detail {

/// What a create call is to make.
enum class created_object : std::uint8_t {
  issued_spot,     ///< under an id of the layer
  spot_if_missing,
  actor,           ///< that must not be there yet
  actor_if_missing,
};

/// What all create calls collect.
class create_call {
public:
  create_call(host_runtime& host, created_object what, std::string id, std::string type) noexcept
    : host_(&host), what_(what), id_(std::move(id)), type_(std::move(type)) {}
  create_call(create_call&&) noexcept = default;
  create_call& operator=(create_call&&) noexcept = default;

  void set_mesh(std::string name);
  void set_request(message request);
  void set_timeout(time_span limit);
  template <class Result>
  task<Result> start(turn_use use, std::stop_token cancel) {
    auto ended = new_counted<operation<Result>>();
    begin(ended, use, std::move(cancel));
    return task<Result>{std::move(ended)};
  }

private:
  friend class creations;
  void begin(counted_ptr<operation_base> ended, turn_use use, std::stop_token cancel);

  host_runtime* host_;
  created_object what_;
  std::string id_;
  std::string type_;
  std::optional<std::string> mesh_;
  std::optional<message> request_;
  std::optional<std::chrono::milliseconds> timeout_;
  bool started_ = false;
  bool twice_ = false; ///< an option was set a second time: told at the terminal
};

template <class Call, class Result>
class create_setters {
public:
  /// The mesh in which a new object is placed; an existing one stays where it is (C-45). Once.
  Call& in_mesh(std::string name) & {
    self().call_.set_mesh(std::move(name));
    return self();
  }
  Call&& in_mesh(std::string name) && { return std::move(in_mesh(std::move(name))); }
  /// What `on_create` or `on_create_actor` is asked; at most 1 MiB encoded (C-68). Once.
  template <packet T>
  Call& request(T value) & {
    self().call_.set_request(message{std::move(value)});
    return self();
  }
  template <packet T>
  Call&& request(T value) && {
    return std::move(request(std::move(value)));
  }
  /// 1 ms to INT_MAX ms, else `std::invalid_argument`; default is the mesh's request timeout. Covers everything up to the
  /// outcome (C-60). Once.
  Call& timeout(time_span limit) & {
    self().call_.set_timeout(limit);
    return self();
  }
  Call&& timeout(time_span limit) && { return std::move(timeout(limit)); }

  /// Ends with an outcome, also a rejection; fails with the kinds of `error_kind`.
  task<Result> submit(std::stop_token cancel = {}) {
    return self().call_.template start<Result>(turn_use::submit, std::move(cancel));
  }
  task<Result> yield(std::stop_token cancel = {}) {
    return self().call_.template start<Result>(turn_use::yield, std::move(cancel));
  }

private:
  Call& self() noexcept { return static_cast<Call&>(*this); }
};

} // namespace detail

/// A new User Spot under an id that the layer issues (C-61).
class spot_create_call : public detail::create_setters<spot_create_call, spot_create_result> {
public:
  explicit spot_create_call(detail::create_call call) noexcept : call_(std::move(call)) {}

private:
  friend class detail::create_setters<spot_create_call, spot_create_result>;
  detail::create_call call_;
};

/// The User Spot of that id, created if it is missing.
class spot_get_or_create_call : public detail::create_setters<spot_get_or_create_call, spot_create_result> {
public:
  explicit spot_get_or_create_call(detail::create_call call) noexcept : call_(std::move(call)) {}

private:
  friend class detail::create_setters<spot_get_or_create_call, spot_create_result>;
  detail::create_call call_;
};

/// A new Actor (C-121, C-122).
class actor_create_call : public detail::create_setters<actor_create_call, actor_create_result> {
public:
  explicit actor_create_call(detail::create_call call) noexcept : call_(std::move(call)) {}

private:
  friend class detail::create_setters<actor_create_call, actor_create_result>;
  detail::create_call call_;
};

/// Messages to Spots, and the life of User Spots (C-58, C-140). Throws `std::invalid_argument` for malformed ids and types.
class spot_manager {
public:
  template <packet T>
  spot_send_call send_to_spot(std::string spot_id, T message) const {
    return spot_send_call{call(std::move(spot_id), detail::make_message_record(std::move(message), false))};
  }
  spot_send_call send_to_spot(std::string spot_id, const message& untyped) const {
    return spot_send_call{call(std::move(spot_id), detail::make_message_record(untyped, false))};
  }
  template <packet T>
  spot_request_call request_to_spot(std::string spot_id, T request) const {
    return spot_request_call{call(std::move(spot_id), detail::make_message_record(std::move(request), true))};
  }
  spot_request_call request_to_spot(std::string spot_id, const message& untyped) const {
    return spot_request_call{call(std::move(spot_id), detail::make_message_record(untyped, true))};
  }

  spot_create_call create(std::string spot_type) const;
  spot_get_or_create_call get_or_create(std::string spot_id, std::string spot_type) const;
  /// The ref of a Ready User or Instance Spot, or nothing; never creates (C-66).
  task<std::optional<spot_ref>> find(std::string spot_id, std::stop_token cancel = {}) const;
  /// Closes exactly this incarnation of a User Spot, or of an Instance Spot whose owner's lease has ended: a live one closes
  /// itself, and this is `invalid_operation` (C-112, C-113, S-79). Before the lease of a dead owner has ended: `unavailable`.
  /// False: it is gone, or Actors are still members (C-114).
  task<bool> close(spot_ref spot, std::stop_token cancel = {}) const;

  explicit spot_manager(detail::host_runtime& host) noexcept : host_(&host) {}

private:
  detail::message_call call(std::string spot_id, detail::record* r) const;
  detail::host_runtime* host_;
};

/// Messages to Actors, and their life (C-121 to C-127). Throws `std::invalid_argument` for malformed ids and types.
class actor_manager {
public:
  template <packet T>
  actor_send_call send_to_actor(std::string actor_id, T message) const {
    return actor_send_call{
      detail::make_actor_call(*host_, actor_id, detail::make_message_record(std::move(message), false))};
  }
  template <packet T>
  actor_request_call request_to_actor(std::string actor_id, T request) const {
    return actor_request_call{
      detail::make_actor_call(*host_, actor_id, detail::make_message_record(std::move(request), true))};
  }
  actor_send_call send_to_actor(std::string actor_id, const message& untyped) const {
    return actor_send_call{detail::make_actor_call(*host_, actor_id, detail::make_message_record(untyped, false))};
  }
  actor_request_call request_to_actor(std::string actor_id, const message& untyped) const {
    return actor_request_call{detail::make_actor_call(*host_, actor_id, detail::make_message_record(untyped, true))};
  }

  /// Fails with `already_exists` if there is an Actor of that id and type, or somebody creates it (C-122).
  actor_create_call create(std::string actor_id, std::string actor_type) const;
  /// The Actor of that id, created if it is missing.
  actor_create_call get_or_create(std::string actor_id, std::string actor_type) const;
  /// The ref of a Ready Actor, or nothing; never creates (C-125).
  task<std::optional<actor_ref>> find(std::string actor_id, std::stop_token cancel = {}) const;
  /// The User Spot that it belongs to; nothing if it is in an Entry Spot, or is not there (C-125).
  task<std::optional<spot_ref>> find_spot(std::string actor_id, std::stop_token cancel = {}) const;
  /// Ends exactly this incarnation, which must be in its Entry Spot (J-133, J-136). False: it is gone. Who asks in a turn that
  /// the end has to wait for, of the Actor itself or in a callback about it, is answered when it takes nothing new (J-134).
  task<bool> destroy(actor_ref who, std::stop_token cancel = {}) const;

  explicit actor_manager(detail::host_runtime& host) noexcept : host_(&host) {}

private:
  detail::host_runtime* host_;
};

/// Messages to exactly one node (M-88 to M-91).
class node_client {
public:
  template <packet T>
  node_send_call send_to_node(std::string mesh_name, std::string node_rid, T message) const {
    return node_send_call{call(std::move(mesh_name), std::move(node_rid),
                               detail::make_message_record(std::move(message), false))};
  }
  template <packet T>
  node_request_call request_to_node(std::string mesh_name, std::string node_rid, T request) const {
    return node_request_call{call(std::move(mesh_name), std::move(node_rid),
                                  detail::make_message_record(std::move(request), true))};
  }

  explicit node_client(detail::host_runtime& host) noexcept : host_(&host) {}

private:
  detail::message_call call(std::string mesh_name, std::string node_rid, detail::record* r) const;
  detail::host_runtime* host_;
};

/// Messages to channels, and events to whoever subscribes (M-92 to M-102, M-113 to M-128).
class channel_client {
public:
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

  explicit channel_client(detail::host_runtime& host) noexcept : host_(&host) {}

private:
  detail::message_call channel_call(std::string channel, detail::record* r) const {
    return detail::make_channel_call(*host_, std::move(channel), r);
  }
  detail::message_call topic_call(std::string channel, std::string topic, detail::record* r) const {
    return detail::make_topic_call(*host_, std::move(channel), std::move(topic), r);
  }
  detail::host_runtime* host_;
};

} // namespace zlink
