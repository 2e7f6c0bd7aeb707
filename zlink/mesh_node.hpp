// A host's presence in one mesh, and what is registered there before start.
#pragma once

#include "zlink/filter.hpp"
#include "zlink/mesh_transport.hpp"
#include "zlink/messaging/node_handlers.hpp"
#include "zlink/objects/handler_invoke.hpp"
#include "zlink/objects/spot_factory.hpp"
#include "zlink/relocation_policy.hpp"
#include "zlink/spot.hpp"
#include "zlink/task.hpp"

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace zlink {

namespace detail {

class node_runtime;

/// What a registration callback fills in. Dead once the callback has returned (C-26).
class factory_settings {
public:
  explicit factory_settings(spot_factory& target) noexcept : target_(&target) {}
  /// Throws `configuration_error` after the callback has returned.
  spot_factory& use() const;
  void end() noexcept { target_ = nullptr; }

private:
  spot_factory* target_;
};

void set_policy(factory_settings& settings, relocation_policy policy);
/// Throws `configuration_error` for null: the registration callback has returned.
actor_factory& in_use(actor_factory* target);
void set_policy(actor_factory& factory, relocation_policy policy);
void add_node_handler(node_runtime& node, function_handler handler);
void add_filter(node_runtime& node, filter_maker make);
void add_channel_handler(node_runtime& node, const std::string& channel, function_handler handler);
void set_channel_weight(node_runtime& node, const std::string& channel, std::uint32_t weight);

template <class TSpot>
concept instance_spot_class = std::derived_from<TSpot, instance_spot>;
template <class TSpot>
concept user_spot_class = std::derived_from<TSpot, user_spot_application>;
template <class TSpot>
concept entry_spot_class = std::derived_from<TSpot, entry_spot_base>;
template <class TActor>
concept actor_class = std::derived_from<TActor, actor>;

/// What the class of a Spot says about its Actors.
template <class TSpot>
void note_actors(spot_factory& factory) {
  if constexpr (std::derived_from<TSpot, actor_callbacks>) {
    static_assert(actor_class<typename TSpot::actor_type>, "members of a Spot derive from zlink::actor");
    factory.actor_class = typeid(typename TSpot::actor_type);
    factory.about_actors = [](spot_application& instance) -> actor_callbacks* { return static_cast<TSpot*>(&instance); };
  }
}

template <class TSpot, class TContext>
struct construct_by {
  template <class F>
  static auto with(F make, TContext (spot_object::*context)()) {
    return [make = std::move(make), context](spot_object& object) mutable -> std::unique_ptr<spot_application> {
      return make((object.*context)());
    };
  }
};

} // namespace detail

/// Settings of one factory; lives as long as its registration callback. `TContext` is the context its Spots get.
template <class TSpot, class TContext>
class spot_factory_builder {
public:
  /// Instead of `TSpot{context}`: `make(context)` returns `std::unique_ptr<TSpot>` or one convertible to it. Called from
  /// many threads at once.
  template <class F>
    requires std::is_invocable_v<F&, TContext>
  spot_factory_builder& construct_with(F make) {
    settings_.use().make = detail::construct_by<TSpot, TContext>::with(std::move(make), context_);
    return *this;
  }
  /// Exactly one of the three policies is required (C-24).
  spot_factory_builder& disable_relocation() {
    detail::set_policy(settings_, detail::relocation_policy::disable);
    return *this;
  }
  spot_factory_builder& recreate_on_relocation() {
    detail::set_policy(settings_, detail::relocation_policy::recreate);
    return *this;
  }
  /// The adapter is made for this very class (C-28).
  template <class TAdapter>
    requires std::derived_from<TAdapter, spot_adapter<TSpot>>
  spot_factory_builder& preserve_state_with(TAdapter adapter) {
    detail::set_policy(settings_, detail::relocation_policy::preserve_state);
    auto& to = settings_.use();
    to.adapter = std::make_shared<TAdapter>(std::move(adapter));
    to.capture = [](const void* by, detail::spot_application& from, std::stop_token cancel) {
      return static_cast<const TAdapter*>(by)->capture(static_cast<TSpot&>(from), std::move(cancel));
    };
    to.restore = [](const void* by, detail::spot_application& into, byte_view state, std::stop_token cancel) {
      return static_cast<const TAdapter*>(by)->restore(static_cast<TSpot&>(into), state, std::move(cancel));
    };
    return *this;
  }
  /// At most so many objects of this type on this node; 0: no limit (C-36).
  spot_factory_builder& limit(std::uint32_t objects) {
    settings_.use().limit = objects;
    return *this;
  }
  /// Every Actor and every timer gets a gate of its own; User Spots only (C-29).
  spot_factory_builder& per_actor()
    requires detail::user_spot_class<TSpot>
  {
    settings_.use().mode = detail::execution_mode::per_actor;
    return *this;
  }
  /// The Spot says when it may move; SpotWide User Spots only (C-29).
  spot_factory_builder& application_signaled()
    requires detail::user_spot_class<TSpot>
  {
    settings_.use().application_signaled = true;
    return *this;
  }

  spot_factory_builder(const spot_factory_builder&) = delete;
  spot_factory_builder& operator=(const spot_factory_builder&) = delete;

  // -- for the layer ---------------------------------------------------------------------------------------------------
  spot_factory_builder(detail::spot_factory& target, TContext (detail::spot_object::*context)())
    : settings_(target), context_(context) {
    if constexpr (std::is_constructible_v<TSpot, TContext>)
      construct_with([](TContext made) { return std::make_unique<TSpot>(std::move(made)); });
  }
  void end() noexcept { settings_.end(); }

private:
  detail::factory_settings settings_;
  TContext (detail::spot_object::*context_)();
};

/// Settings of one Actor factory; lives as long as its registration callback.
template <class TActor>
class actor_factory_builder {
public:
  /// Instead of `TActor{context}`: `make(context)` returns `std::unique_ptr<TActor>` or one convertible to it. Called from
  /// many threads at once.
  template <class F>
    requires std::is_invocable_v<F&, actor_context>
  actor_factory_builder& construct_with(F make) {
    use().make = [make = std::move(make)](detail::actor_object& object) mutable -> std::unique_ptr<actor> {
      return make(actor_context{detail::counted_ptr<detail::actor_object>::share(&object)});
    };
    return *this;
  }
  /// Exactly one of the three policies is required (C-24).
  actor_factory_builder& disable_relocation() {
    set_policy(detail::relocation_policy::disable);
    return *this;
  }
  actor_factory_builder& recreate_on_relocation() {
    set_policy(detail::relocation_policy::recreate);
    return *this;
  }
  /// The adapter is made for this very class (C-28).
  template <class TAdapter>
    requires std::derived_from<TAdapter, actor_adapter<TActor>>
  actor_factory_builder& preserve_state_with(TAdapter adapter) {
    set_policy(detail::relocation_policy::preserve_state);
    auto& to = use();
    to.adapter = std::make_shared<TAdapter>(std::move(adapter));
    to.capture = [](const void* by, actor& from, std::stop_token cancel) {
      return static_cast<const TAdapter*>(by)->capture(static_cast<TActor&>(from), std::move(cancel));
    };
    to.restore = [](const void* by, actor& into, byte_view state, std::stop_token cancel) {
      return static_cast<const TAdapter*>(by)->restore(static_cast<TActor&>(into), state, std::move(cancel));
    };
    return *this;
  }

  actor_factory_builder(const actor_factory_builder&) = delete;
  actor_factory_builder& operator=(const actor_factory_builder&) = delete;

  // -- for the layer ---------------------------------------------------------------------------------------------------
  explicit actor_factory_builder(detail::actor_factory& target) : target_(&target) {
    if constexpr (std::is_constructible_v<TActor, actor_context>)
      construct_with([](actor_context made) { return std::make_unique<TActor>(std::move(made)); });
  }
  void end() noexcept { target_ = nullptr; }

private:
  detail::actor_factory& use() const { return detail::in_use(target_); }
  void set_policy(detail::relocation_policy policy) { detail::set_policy(use(), policy); }

  detail::actor_factory* target_;
};

/// Registrations of a node with object role Server (C-145). Copies stand for the same node.
class object_server_builder {
public:
  /// At most one per node; it takes no type, no id and no options (C-30).
  template <detail::entry_spot_class TEntrySpot>
  object_server_builder& add_entry_spot() {
    static_assert(std::is_constructible_v<TEntrySpot, entry_spot_context>,
                  "construct it from its context, or give add_entry_spot a function");
    return add_entry_spot<TEntrySpot>([](entry_spot_context made) { return std::make_unique<TEntrySpot>(std::move(made)); });
  }
  template <detail::entry_spot_class TEntrySpot, class F>
    requires std::is_invocable_v<F&, entry_spot_context>
  object_server_builder& add_entry_spot(F make) {
    auto factory = std::make_unique<detail::spot_factory>();
    factory->kind = spot_kind::entry;
    factory->instance_type = typeid(TEntrySpot);
    detail::note_actors<TEntrySpot>(*factory);
    factory->policy = detail::relocation_policy::disable;
    factory->make = detail::construct_by<TEntrySpot, entry_spot_context>::with(std::move(make),
                                                                               &detail::spot_object::make_entry_context);
    add(std::move(factory));
    return *this;
  }
  /// User Spots of this stable type (1..255 bytes of UTF-8). `configure(auto& factory)` runs once, at once; what it throws
  /// reaches the caller and nothing is registered (C-26). Throws `configuration_error` for a bad or doubled registration.
  template <detail::user_spot_class TSpot, class F>
  object_server_builder& add_spot_factory(std::string spot_type, F configure) {
    return add_factory<TSpot, spot_context>(spot_kind::user, std::move(spot_type), std::move(configure),
                                            &detail::spot_object::make_spot_context);
  }
  /// Instance Spots of this stable type.
  template <detail::instance_spot_class TSpot, class F>
  object_server_builder& add_instance_spot_factory(std::string instance_spot_type, F configure) {
    return add_factory<TSpot, instance_spot_context>(spot_kind::instance, std::move(instance_spot_type),
                                                     std::move(configure), &detail::spot_object::make_instance_context);
  }

  /// Actors of this stable type (1..255 bytes of UTF-8). The node's Entry Spot must be declared with that class, else the
  /// node takes none of them (C-136).
  template <detail::actor_class TActor, class F>
  object_server_builder& add_actor_factory(std::string actor_type, F configure) {
    auto factory = std::make_unique<detail::actor_factory>();
    factory->type = std::move(actor_type);
    factory->instance_type = typeid(TActor);
    auto settings = std::make_shared<actor_factory_builder<TActor>>(*factory);
    factory->builder = settings; // one that is kept and used too late says so
    configure(*settings);
    settings->end();
    add(std::move(factory));
    return *this;
  }

  explicit object_server_builder(detail::node_runtime& node) noexcept : node_(&node) {}

private:
  template <class TSpot, class TContext, class F>
  object_server_builder& add_factory(spot_kind kind, std::string type, F configure,
                                     TContext (detail::spot_object::*context)()) {
    auto factory = std::make_unique<detail::spot_factory>();
    factory->kind = kind;
    factory->type = std::move(type);
    factory->instance_type = typeid(TSpot);
    detail::note_actors<TSpot>(*factory);
    auto settings = std::make_shared<spot_factory_builder<TSpot, TContext>>(*factory, context);
    factory->builder = settings; // one that is kept and used too late says so
    configure(*settings);
    settings->end();
    add(std::move(factory));
    return *this;
  }
  void add(std::unique_ptr<detail::spot_factory> factory);
  void add(std::unique_ptr<detail::actor_factory> factory);

  detail::node_runtime* node_;
};

/// Registrations of a channel that a node serves. Copies stand for the same one.
class channel_server_builder {
public:
  /// As `mesh_node::add_node_handler`, for messages to the channel. A node that only receives events needs none.
  template <class F>
  channel_server_builder& add_handler(F handler, std::string packet_name = {}) {
    detail::add_channel_handler(*node_, channel_, detail::make_function_handler(std::move(handler), std::move(packet_name)));
    return *this;
  }
  /// 0..10000, default 100; its share of the messages. 0 takes the node out of new selections and publishes (M-96, O-134).
  channel_server_builder& weight(std::uint32_t weight) {
    detail::set_channel_weight(*node_, channel_, weight);
    return *this;
  }

  channel_server_builder(detail::node_runtime& node, std::string channel) : node_(&node), channel_(std::move(channel)) {}

private:
  detail::node_runtime* node_;
  std::string channel_;
};

/// One node of a host. References stay valid as long as the host. Setters throw `configuration_error` once the host has
/// started, except for weights (C-2).
class mesh_node {
public:
  explicit mesh_node(std::unique_ptr<detail::node_runtime> runtime) noexcept;
  ~mesh_node();
  mesh_node(const mesh_node&) = delete;
  mesh_node& operator=(const mesh_node&) = delete;

  const std::string& name() const noexcept;
  /// The routing id; empty before start (C-4).
  std::string rid() const;
  /// The id of this node's Entry Spot; empty without one, or before it is published (C-48).
  std::string entry_spot_id() const;

  /// This node hosts objects, and starts calls to objects (C-19).
  object_server_builder object_server();
  /// This node starts calls to objects but hosts none.
  mesh_node& object_client();

  /// 1..64 of `[A-Za-z0-9._-]` (C-4).
  mesh_node& rid_prefix(std::string prefix);
  /// A routing id of one's own choice, 1..255 bytes of UTF-8, for a node without object role in a host without stores
  /// (C-9). No two nodes of a mesh may have the same.
  mesh_node& fixed_rid(std::string rid);
  /// An address of this machine to listen on, or 0.0.0.0 or :: for all of them. Default: `host_options::bind_host`.
  mesh_node& bind_host(std::string host);
  /// Where peers reach this node: a name or an address without port, no wildcard. Default: `bind_host` if it is set here,
  /// else `host_options::advertise_host`, else where it listens.
  mesh_node& advertise_host(std::string host);
  /// 0: the system picks one (C-14).
  mesh_node& listen_port(std::uint16_t port);
  /// Default: caf.
  mesh_node& transport(mesh_transport kind);
  /// Mutual TLS for transport tcp; needed wherever it listens or dials beyond loopback (O-141). The certificate's subject
  /// alternative names are this node's security identity (O-143).
  mesh_node& tls(mesh_tls files);
  /// 16 to 1,024 bytes that all nodes of the mesh know, for transport tcp: both ends of a link prove that they know it
  /// before anything else is read. Never logged (O-151).
  mesh_node& secret(std::string shared);
  /// A peer by hand, as "caf://host:port" or "tcp://host:port", for a node without object role in a host without stores: there is no discovery
  /// then (C-9, S-62). Dialled again whenever the link is lost.
  mesh_node& peer(const std::string& where);
  /// Where this node listens, as peers are told; empty before start (C-17).
  std::string endpoint() const;
  /// 0..10000; 0 takes the node out of new placements only. May be changed at run time (C-38, C-39, O-133).
  mesh_node& placement_weight(std::uint32_t weight);
  /// Actors on this node; 0: no limit (C-35).
  mesh_node& actor_limit(std::uint32_t actors);
  /// User and Instance Spots together on this node; 0: no limit (C-35).
  mesh_node& spot_limit(std::uint32_t spots);
  /// Factory and initialise sequences at once; at least 1 (C-42).
  mesh_node& activation_concurrency(std::uint32_t sequences);
  /// 0: Instance Spots are never evicted (C-107).
  mesh_node& instance_spot_idle_timeout(time_span timeout);
  /// Default for calls from this node's objects, and from outside where this is the only mesh.
  mesh_node& request_timeout(time_span timeout);
  mesh_node& send_timeout(time_span timeout);

  /// Serves node-direct messages: `handler(const T&, const message_context&)` returns nothing for sends, a packet for
  /// requests, or a task of either. Runs beside everything else.
  template <class F>
  mesh_node& add_node_handler(F handler, std::string packet_name = {}) {
    detail::add_node_handler(*runtime_, detail::make_function_handler(std::move(handler), std::move(packet_name)));
    return *this;
  }

  /// Stands around this node's handlers, behind those added before (M-53, M-54). A filter is made for each dispatch.
  template <std::derived_from<message_filter> TFilter>
  mesh_node& add_filter() {
    return add_filter([] { return std::make_unique<TFilter>(); });
  }
  /// `make()` returns a `std::unique_ptr` to a filter. Called from many threads at once.
  template <class F>
    requires std::is_invocable_r_v<std::unique_ptr<message_filter>, F&>
  mesh_node& add_filter(F make) {
    detail::add_filter(*runtime_, std::move(make));
    return *this;
  }

  /// This node calls the channel and publishes to it, but is no target (M-92). Throws `std::invalid_argument` for a
  /// malformed name, `configuration_error` if it takes part already.
  mesh_node& add_channel_client(std::string channel);
  /// This node is a target too: of messages to the channel, and of what is published there.
  channel_server_builder add_channel_server(std::string channel);
  /// As `channel_server_builder::weight`; may be changed at run time, peers are told at once (M-101).
  mesh_node& channel_weight(const std::string& channel, std::uint32_t weight);
  /// Ends when there is another ready node that serves the channel and takes new work. Fails with `not_found` if this node
  /// does not take part in it.
  task<void> until_channel_ready(std::string channel, std::stop_token cancel = {});

  /// Ends when at least `count` peers are ready (S-59).
  task<void> until_peers_ready(std::size_t count, std::stop_token cancel = {});

  // -- for the layer ---------------------------------------------------------------------------------------------------
  detail::node_runtime& runtime() const noexcept { return *runtime_; }

private:
  std::unique_ptr<detail::node_runtime> runtime_;
};

} // namespace zlink
