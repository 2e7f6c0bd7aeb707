// Calls: single-use builders for messages. Setters chain on values and on names, a terminal starts the call.
#pragma once

#include "zlink/error.hpp"
#include "zlink/execution/operation.hpp"
#include "zlink/message.hpp"
#include "zlink/metadata.hpp"
#include "zlink/task.hpp"
#include "zlink/time_span.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace zlink {

namespace detail {

class host_runtime;
class node_runtime;
class hosted_object;
struct instance_intent;
struct record;

/// Throws `std::invalid_argument` unless the timeout, rounded up to milliseconds, lies in 1..INT_MAX (M-15, X-149).
std::chrono::milliseconds check_timeout(time_span timeout);

/// `object`: the address of a Spot or Actor.
enum class call_target : std::uint8_t { object, node, channel, topic };

/// What a message call has collected. Move-only; owns its record until a terminal takes it.
class message_call {
public:
  message_call(host_runtime& host, call_target target, std::string address, record* r) noexcept;
  /// `from`: this host's node in that mesh, or null: the call ends in `not_found` for the name of the mesh.
  message_call(host_runtime& host, node_runtime* from, std::string mesh_name, std::string node_rid, record* r);
  message_call(message_call&& other) noexcept;
  message_call& operator=(message_call&& other) noexcept;
  ~message_call();

  void add_metadata(std::string_view key, std::string_view value);
  void add_metadata(const message_metadata& all);
  void set_timeout(time_span limit);
  void set_instance_intent(std::optional<std::string> type);
  void set_mesh(std::string name);
  void set_topic(std::string topic);

  /// Starts the call; `operation` ends with its outcome.
  void start(counted_ptr<operation_base> operation, turn_use use, std::stop_token cancel);
  /// One-way: often accepted at once, then there is nothing to wait for and no operation is made.
  task<void> start_send(std::stop_token cancel);
  task<void> start_publish(std::stop_token cancel);

  /// The call is a Spot's, and ends with it (M-24).
  void made_by(counted_ptr<hosted_object> caller) noexcept;

  // Read by the messaging layer.
  host_runtime& host() const noexcept { return *host_; }
  call_target target() const noexcept { return target_; }
  const std::string& address() const noexcept { return address_; }

private:
  struct options;
  options& more();
  void drop() noexcept;
  std::optional<error> find_mistake() const;
  std::string mesh() const;
  const instance_intent* intent_with_mesh();
  std::unique_ptr<instance_intent> take_intent();

  host_runtime* host_;
  call_target target_;
  bool started_ = false;
  node_runtime* from_ = nullptr; ///< node direct: this host's node in the mesh
  std::string address_; ///< of an object, RID of a node, or ChannelName
  record* record_;
  counted_ptr<hosted_object> caller_; ///< null: the host's client
  std::unique_ptr<options> options_;
};

/// These throw `std::invalid_argument` for a malformed id, name or topic, and then free the record.
message_call make_spot_call(host_runtime& host, std::string spot_id, record* r);
message_call make_actor_call(host_runtime& host, const std::string& actor_id, record* r);
message_call make_channel_call(host_runtime& host, std::string channel, record* r);
message_call make_topic_call(host_runtime& host, std::string channel, std::string topic, record* r);

template <class T>
record* make_message_record(T value, bool request) {
  auto* r = make_record(request ? record_kind::request : record_kind::send);
  r->body.emplace<T>(std::move(value));
  return r;
}
record* make_message_record(const message& value, bool request);

/// Setters that every message call has.
template <class Call>
class metadata_setters {
public:
  /// May be repeated; the last value of a key counts. All metadata together: at most 1,024 bytes, else
  /// `std::invalid_argument` (M-38).
  Call& metadata(std::string_view key, std::string_view value) & {
    self().call_.add_metadata(key, value);
    return self();
  }
  Call&& metadata(std::string_view key, std::string_view value) && { return std::move(metadata(key, value)); }
  Call& metadata(const message_metadata& all) & {
    self().call_.add_metadata(all);
    return self();
  }
  Call&& metadata(const message_metadata& all) && { return std::move(metadata(all)); }

private:
  Call& self() noexcept { return static_cast<Call&>(*this); }
};

/// Setters of calls that may wake an Instance Spot.
template <class Call>
class intent_setters {
public:
  /// If the id is missing, prepare an Instance Spot of the one type the mesh offers (C-91). Once.
  Call& instance_spot() & {
    self().call_.set_instance_intent(std::nullopt);
    return self();
  }
  Call&& instance_spot() && { return std::move(instance_spot()); }
  /// If the id is missing, prepare an Instance Spot of this stable type (M-58). Once.
  Call& instance_spot(std::string type) & {
    self().call_.set_instance_intent(std::move(type));
    return self();
  }
  Call&& instance_spot(std::string type) && { return std::move(instance_spot(std::move(type))); }
  /// Where a missing Spot may come to life; needs the marker (M-13). Once.
  Call& in_mesh(std::string name) & {
    self().call_.set_mesh(std::move(name));
    return self();
  }
  Call&& in_mesh(std::string name) && { return std::move(in_mesh(std::move(name))); }

private:
  Call& self() noexcept { return static_cast<Call&>(*this); }
};

/// Setters and terminals of requests.
template <class Call>
class request_terminals {
public:
  /// 1 ms to INT_MAX ms after rounding up, else `std::invalid_argument`; default is the mesh's request timeout. Covers
  /// resolving, activation, handler and reply. Once.
  Call& timeout(time_span limit) & {
    self().call_.set_timeout(limit);
    return self();
  }
  Call&& timeout(time_span limit) && { return std::move(timeout(limit)); }

  /// Sends the request; keeps the caller's turn until the continuation has ended. `R` is `void` for a request
  /// that is answered empty. A reply of another type than `R` is `protocol_error` (M-137).
  template <class R>
  task<R> submit(std::stop_token cancel = {}) {
    return start<R>(turn_use::submit, std::move(cancel));
  }
  /// Sends the request and gives the shared gate away meanwhile; only where X-34 allows.
  template <class R>
  task<R> yield(std::stop_token cancel = {}) {
    return start<R>(turn_use::yield, std::move(cancel));
  }

private:
  template <class R>
  task<R> start(turn_use use, std::stop_token cancel) {
    auto ended = new_counted<operation<R>>();
    self().call_.start(ended, use, std::move(cancel));
    return task<R>{std::move(ended)};
  }
  Call& self() noexcept { return static_cast<Call&>(*this); }
};

} // namespace detail

/// One-way message to a Spot by id. Done when admitted here (M-2); nothing to yield for.
class spot_send_call : public detail::metadata_setters<spot_send_call>, public detail::intent_setters<spot_send_call> {
public:
  /// Ends normally when the source side has accepted the message; what happens later never changes that. Safe to drop.
  task<void> submit(std::stop_token cancel = {}) { return call_.start_send(std::move(cancel)); }

  explicit spot_send_call(detail::message_call call) noexcept : call_(std::move(call)) {}

private:
  friend class detail::metadata_setters<spot_send_call>;
  friend class detail::intent_setters<spot_send_call>;
  detail::message_call call_;
};

/// Request to a Spot by id.
class spot_request_call : public detail::metadata_setters<spot_request_call>,
                          public detail::intent_setters<spot_request_call>,
                          public detail::request_terminals<spot_request_call> {
public:
  explicit spot_request_call(detail::message_call call) noexcept : call_(std::move(call)) {}

private:
  friend class detail::metadata_setters<spot_request_call>;
  friend class detail::intent_setters<spot_request_call>;
  friend class detail::request_terminals<spot_request_call>;
  detail::message_call call_;
};

/// One-way message to exactly one node of a mesh (M-88).
class node_send_call : public detail::metadata_setters<node_send_call> {
public:
  task<void> submit(std::stop_token cancel = {}) { return call_.start_send(std::move(cancel)); }

  explicit node_send_call(detail::message_call call) noexcept : call_(std::move(call)) {}

private:
  friend class detail::metadata_setters<node_send_call>;
  detail::message_call call_;
};

/// Request to exactly one node of a mesh.
class node_request_call : public detail::metadata_setters<node_request_call>,
                          public detail::request_terminals<node_request_call> {
public:
  explicit node_request_call(detail::message_call call) noexcept : call_(std::move(call)) {}

private:
  friend class detail::metadata_setters<node_request_call>;
  friend class detail::request_terminals<node_request_call>;
  detail::message_call call_;
};

/// One-way message to an Actor (M-68). Never creates one.
class actor_send_call : public detail::metadata_setters<actor_send_call> {
public:
  /// As for a Spot: ends when the message is accepted on its way (M-3).
  task<void> submit(std::stop_token cancel = {}) { return call_.start_send(std::move(cancel)); }

  explicit actor_send_call(detail::message_call call) noexcept : call_(std::move(call)) {}

private:
  friend class detail::metadata_setters<actor_send_call>;
  detail::message_call call_;
};

/// Request to an Actor.
class actor_request_call : public detail::metadata_setters<actor_request_call>,
                           public detail::request_terminals<actor_request_call> {
public:
  explicit actor_request_call(detail::message_call call) noexcept : call_(std::move(call)) {}

private:
  friend class detail::metadata_setters<actor_request_call>;
  friend class detail::request_terminals<actor_request_call>;
  detail::message_call call_;
};

/// One-way message to one of the nodes that serve a channel; which one is the layer's choice (M-94).
class channel_send_call : public detail::metadata_setters<channel_send_call> {
public:
  task<void> submit(std::stop_token cancel = {}) { return call_.start_send(std::move(cancel)); }

  explicit channel_send_call(detail::message_call call) noexcept : call_(std::move(call)) {}

private:
  friend class detail::metadata_setters<channel_send_call>;
  detail::message_call call_;
};

/// Request to one of the nodes that serve a channel.
class channel_request_call : public detail::metadata_setters<channel_request_call>,
                             public detail::request_terminals<channel_request_call> {
public:
  explicit channel_request_call(detail::message_call call) noexcept : call_(std::move(call)) {}

private:
  friend class detail::metadata_setters<channel_request_call>;
  friend class detail::request_terminals<channel_request_call>;
  detail::message_call call_;
};

/// One event to everybody who has subscribed to a topic of a channel (M-113).
class publish_call : public detail::metadata_setters<publish_call> {
public:
  /// Ends normally when the publish has started; how its targets fare is not told (M-120, M-122). Fails with
  /// `deadline_exceeded` if it could not start within the send timeout, and with `not_found` if no mesh node of this host
  /// takes part in the channel. Safe to drop.
  task<void> submit(std::stop_token cancel = {}) { return call_.start_publish(std::move(cancel)); }

  explicit publish_call(detail::message_call call) noexcept : call_(std::move(call)) {}

private:
  friend class detail::metadata_setters<publish_call>;
  detail::message_call call_;
};

} // namespace zlink
