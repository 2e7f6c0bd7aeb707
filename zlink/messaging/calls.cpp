#include "zlink/calls.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/call_start.hpp"

namespace zlink::detail {

std::chrono::milliseconds check_timeout(time_span timeout) {
  const auto rounded = timeout.milliseconds();
  if (rounded < std::chrono::milliseconds{1} || rounded > defaults::longest_timeout)
    throw std::invalid_argument{"a timeout of " + std::to_string(rounded.count())
                                + " ms; it must be 1 ms to 2147483647 ms"};
  return rounded;
}

namespace {

const char* verb_of(call_target target, std::string_view address, bool request) noexcept {
  switch (target) {
    case call_target::object:
      if (is_actor_address(address))
        return request ? "request to actor" : "send to actor";
      return request ? "request to spot" : "send to spot";
    case call_target::node: return request ? "request to node" : "send to node";
    case call_target::channel: return request ? "request to channel" : "send to channel";
    case call_target::topic: return "publish to channel";
  }
  return "call";
}

/// Awaiting what cannot begin before the caller's own handler has ended (X-47, J-66).
std::optional<error> refuse_own_wait(std::string_view address) {
  const auto* t = current_turn();
  if (t == nullptr || !is_actor_address(address))
    return std::nullopt;
  if (t->object->is_at(address))
    return error{error_kind::invalid_operation, described(address) + " would wait for its own handler; send, or call the function"};
  if (const auto* scope = known_scope(); scope != nullptr && scope->bars(address))
    return error{error_kind::invalid_operation, described(address) + " waits for the join that this handler has registered; send instead"};
  return std::nullopt;
}

} // namespace

struct message_call::options {
  std::string topic; ///< of a publish
  std::optional<std::chrono::milliseconds> timeout;
  std::optional<instance_intent> intent;
  std::optional<std::string> mesh;
  const char* twice = nullptr; ///< the option that was set a second time: told at the terminal (M-9)
};

message_call::message_call(host_runtime& host, node_runtime* from, std::string mesh_name, std::string node_rid,
                           record* r)
  : host_(&host), target_(call_target::node), from_(from), address_(std::move(node_rid)), record_(r) {
  if (from_ == nullptr)
    set_mesh(std::move(mesh_name));
}

message_call::message_call(host_runtime& host, call_target target, std::string address, record* r) noexcept
  : host_(&host), target_(target), address_(std::move(address)), record_(r) {}

message_call::message_call(message_call&& other) noexcept
  : host_(other.host_), target_(other.target_), started_(other.started_), from_(other.from_), address_(std::move(other.address_)),
    record_(std::exchange(other.record_, nullptr)), caller_(std::move(other.caller_)),
    options_(std::move(other.options_)) {}

message_call& message_call::operator=(message_call&& other) noexcept {
  if (this != &other) {
    drop();
    host_ = other.host_;
    target_ = other.target_;
    started_ = other.started_;
    from_ = other.from_;
    address_ = std::move(other.address_);
    record_ = std::exchange(other.record_, nullptr);
    caller_ = std::move(other.caller_);
    options_ = std::move(other.options_);
  }
  return *this;
}

message_call::~message_call() { drop(); }

void message_call::made_by(counted_ptr<hosted_object> caller) noexcept { caller_ = std::move(caller); }

void message_call::drop() noexcept {
  if (record_ != nullptr)
    free_record(std::exchange(record_, nullptr));
}

message_call::options& message_call::more() {
  if (!options_)
    options_ = std::make_unique<options>();
  return *options_;
}

void message_call::add_metadata(std::string_view key, std::string_view value) {
  if (record_ != nullptr)
    record_->more().metadata.set(key, value);
}

void message_call::add_metadata(const message_metadata& all) {
  for (const auto& [key, value] : all.entries())
    add_metadata(key, value);
}

void message_call::set_timeout(time_span limit) {
  const auto checked = check_timeout(limit);
  auto& o = more();
  if (o.timeout)
    o.twice = "timeout";
  o.timeout = checked;
}

void message_call::set_instance_intent(std::optional<std::string> type) {
  if (type)
    require_valid_id("instance spot type", *type);
  auto& o = more();
  if (o.intent)
    o.twice = "instance_spot";
  o.intent = instance_intent{std::move(type), std::nullopt};
}

void message_call::set_mesh(std::string name) {
  auto& o = more();
  if (o.mesh)
    o.twice = "in_mesh";
  o.mesh = std::move(name);
}

void message_call::set_topic(std::string topic) { more().topic = std::move(topic); }

/// The mesh of a node, or where a missing Spot may come to life; empty: anywhere.
std::string message_call::mesh() const {
  if (from_ != nullptr)
    return from_->mesh_name();
  return options_ && options_->mesh ? *options_->mesh : std::string{};
}

std::optional<error> message_call::find_mistake() const {
  if (record_ != nullptr)
    require_lane_cost(cost_of(*record_));
  if (started_ || record_ == nullptr)
    return error{error_kind::invalid_operation, "this call was started before; make a new one"};
  if (caller_ && caller_->fenced())
    return error{error_kind::unavailable, described(caller_->address()) + " has ended; nothing is sent in its name any more"};
  if (!options_)
    return std::nullopt;
  if (options_->twice != nullptr)
    return error{error_kind::invalid_operation, std::string{options_->twice} + " was set twice on one call"};
  if (options_->intent && host_->lists_entry_spot(address_)) // a Spot that exists, of another kind (M-156)
    return conflict(spot_kind::entry, {}, &*options_->intent, address_);
  if (options_->intent && is_entry_spot_format(address_)) // an id that nobody may make up (C-55)
    return error{error_kind::invalid_operation, '"' + address_ + "\" has the form of an Entry Spot id, which only the layer issues"};
  if (target_ == call_target::object && options_->mesh && !options_->intent)
    return error{error_kind::invalid_operation, "in_mesh needs instance_spot: it says where a missing spot may come to life"};
  return std::nullopt;
}

void message_call::start(counted_ptr<operation_base> operation, turn_use use, std::stop_token cancel) {
  operation->verb = verb_of(target_, address_, true);
  call_start starting{*host_, *operation, use, std::move(cancel)};
  auto mistake = find_mistake();
  if (!mistake)
    mistake = refuse_own_wait(address_);
  started_ = true; // refused or not: there is no second start (M-8)
  if (!starting.allowed(std::move(mistake), target_ == call_target::object))
    return;
  auto* r = std::exchange(record_, nullptr);
  const auto timeout = options_ && options_->timeout ? *options_->timeout : host_->default_request_timeout();
  starting.enter(*r, std::string{id_in(address_)}, timeout);
  const auto room_due = target_ == call_target::object ? r->deadline
                                                     : std::min(r->deadline, host_->time->now() + host_->default_send_timeout());
  starting.launch(submission{r, std::move(address_), take_intent(), counted_ptr<operation_base>::share(operation.get()), room_due},
                  target_, mesh());
}

task<void> message_call::start_send(std::stop_token cancel) {
  auto mistake = find_mistake();
  started_ = true; // refused or not: there is no second start (M-8)
  // The common case: nothing wrong, the target is here and has room. No operation is made.
  if (!mistake && target_ == call_target::object && !cancel.stop_requested() && !host_->refuse_call(true)
      && !host_->operations.has_waiters() // which came before (M-151)
      && !host_->messages.is_resolving(address_)) {
    const auto* intent = intent_with_mesh();
    std::optional<error> why;
    const auto verdict = host_->messages.try_local(record_, address_, intent, nullptr, why);
    if (verdict == local_verdict::admitted
        || (verdict == local_verdict::absent && host_->messages.try_known(record_, address_, intent))) {
      record_ = nullptr;
      return task<void>::done(host_->dispatcher);
    }
  }
  if (!mistake && from_ != nullptr && !cancel.stop_requested() && !host_->refuse_call(false)
      && !host_->operations.has_waiters()
      && host_->messages.try_to_node(record_, *from_, address_)) {
    record_ = nullptr;
    return task<void>::done(host_->dispatcher);
  }
  auto ended = new_counted<operation<void>>();
  ended->verb = verb_of(target_, address_, false);
  call_start starting{*host_, *ended, turn_use::submit, std::move(cancel)};
  if (starting.allowed(std::move(mistake), target_ == call_target::object)) {
    auto* r = std::exchange(record_, nullptr);
    const auto timeout = host_->default_send_timeout();
    const auto room_due = host_->time->now() + timeout;
    // A node that does not become ready is `unavailable` after that time (M-89): whoever holds the message says so.
    starting.enter(*r, std::string{id_in(address_)}, timeout, target_ == call_target::node ? std::chrono::seconds{1} : std::chrono::seconds{0});
    starting.launch(submission{r, std::move(address_), take_intent(), ended, room_due}, target_, mesh());
  }
  return task<void>{std::move(ended)};
}

task<void> message_call::start_publish(std::stop_token cancel) {
  auto mistake = find_mistake();
  started_ = true;
  return host_->events.publish(std::move(mistake), std::exchange(record_, nullptr), address_, more().topic, std::move(cancel));
}

/// Null: none was set.
const instance_intent* message_call::intent_with_mesh() {
  if (!options_ || !options_->intent)
    return nullptr;
  if (options_->mesh)
    options_->intent->mesh = std::exchange(options_->mesh, std::nullopt);
  return &*options_->intent;
}

std::unique_ptr<instance_intent> message_call::take_intent() {
  if (intent_with_mesh() == nullptr)
    return nullptr;
  return std::make_unique<instance_intent>(std::move(*options_->intent));
}

message_call make_spot_call(host_runtime& host, std::string spot_id, record* r) {
  message_call call{host, call_target::object, std::move(spot_id), r};
  require_valid_id("spot id", call.address());
  return call;
}

message_call make_actor_call(host_runtime& host, const std::string& actor_id, record* r) {
  message_call call{host, call_target::object, actor_address(actor_id), r};
  require_valid_id("actor id", actor_id);
  return call;
}

message_call make_channel_call(host_runtime& host, std::string channel, record* r) {
  message_call call{host, call_target::channel, std::move(channel), r};
  require_valid_id("channel name", call.address());
  return call;
}

message_call make_topic_call(host_runtime& host, std::string channel, std::string topic, record* r) {
  message_call call{host, call_target::topic, std::move(channel), r};
  require_valid_id("channel name", call.address());
  if (topic.empty())
    throw std::invalid_argument{"an empty topic; an event is published under a topic"};
  call.set_topic(std::move(topic));
  return call;
}

record* make_message_record(const message& value, bool request) {
  auto* r = make_record(request ? record_kind::request : record_kind::send);
  r->body = value.to_payload();
  return r;
}

} // namespace zlink::detail
