// Which member function serves which packet. Tables are shared by all objects that register the same handlers in the same
// order, so an object costs one pointer.
#pragma once

#include "zlink/execution/turn.hpp"
#include "zlink/packet.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace zlink::detail {

class actor_object;
class spot_object;

/// One registered member function.
struct handler_entry {
  const packet_type* packet = nullptr;
  std::string packet_name; ///< the packet's, unless registration gave another (M-29)
  bool replies = false;    ///< serves requests, else sends (M-157)
  /// Runs inside a turn. Null: ended, and for a request the record's body is the reply.
  handler_run* (*invoke)(spot_object& object, record* r) = nullptr;

  friend bool operator==(const handler_entry& a, const handler_entry& b) noexcept {
    return a.invoke == b.invoke && a.packet_name == b.packet_name;
  }
};

/// One registered member function for messages to Actors that belong to the Spot (M-32).
struct actor_handler_entry {
  const packet_type* packet = nullptr;
  std::string packet_name;
  bool replies = false;
  handler_run* (*invoke)(actor_object& who, spot_object& spot, record* r) = nullptr;

  friend bool operator==(const actor_handler_entry& a, const actor_handler_entry& b) noexcept {
    return a.invoke == b.invoke && a.packet_name == b.packet_name;
  }
};

/// One subscription: which events of which packet a member function serves (M-124).
struct event_entry {
  std::string channel;
  std::string topic;
  handler_entry handler;

  friend bool operator==(const event_entry&, const event_entry&) = default;
};

/// What one `configure()` registered.
struct handler_set {
  std::vector<handler_entry> packets;
  std::vector<event_entry> events;
  std::vector<actor_handler_entry> actors;

  bool empty() const noexcept { return packets.empty() && events.empty() && actors.empty(); }
  friend bool operator==(const handler_set&, const handler_set&) = default;
};

class handler_table {
public:
  explicit handler_table(handler_set set) : set_(std::move(set)) {}
  const handler_entry* find_event(std::string_view channel, std::string_view topic, std::string_view packet_name) const noexcept {
    for (const auto& e : set_.events)
      if (e.handler.packet_name == packet_name && e.topic == topic && e.channel == channel)
        return &e.handler;
    return nullptr;
  }
  const handler_set& set() const noexcept { return set_; }

private:
  handler_set set_;
};

/// The tables of one factory; more than one only if `configure()` registers differently from object to object.
class handler_tables {
public:
  const handler_table* intern(handler_set registered);

private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<handler_table>> tables_;
};

/// Collects what `configure()` registers.
class handler_table_builder {
public:
  /// Throws `operation_failed(internal_failure)` for a key that is there already (M-50).
  void add(handler_entry entry);
  void add(event_entry entry);
  void add(actor_handler_entry entry);
  handler_set take() { return std::move(registered_); }

private:
  handler_set registered_;
};

// -- shapes of member functions (M-32) --------------------------------------------------------------------------------

template <class T>
struct task_value {
  static constexpr bool is_task = false;
  using type = T;
};
template <class T>
struct task_value<task<T>> {
  static constexpr bool is_task = true;
  using type = T;
};

template <class F>
struct member_shape {
  static constexpr bool known = false;
};
template <class R, class C, class... A>
struct member_shape<R (C::*)(A...)> {
  static constexpr bool known = true;
  using result = R;
  using owner = C;
  template <class... Wanted>
  static constexpr bool takes = std::is_same_v<std::tuple<A...>, std::tuple<Wanted...>>;
  using first = std::tuple_element_t<0, std::tuple<A..., void>>;
  using third = std::tuple_element_t<2, std::tuple<A..., void, void, void>>;
};
template <class R, class C, class... A>
struct member_shape<R (C::*)(A...) const> : member_shape<R (C::*)(A...)> {};
template <class R, class C, class... A>
struct member_shape<R (C::*)(A...) noexcept> : member_shape<R (C::*)(A...)> {};
template <class R, class C, class... A>
struct member_shape<R (C::*)(A...) const noexcept> : member_shape<R (C::*)(A...)> {};

/// The served packet inside the record, decoded now if it came from another node. Throws
/// `undecodable_record`.
void* decoded_body(record& r, const execution_object& object, const packet_type& wanted);
/// The entry that serves this body, by type or by the packet name it travels under; null if there is none.
const handler_entry* find_handler(const handler_table& table, payload& body, bool request);
const actor_handler_entry* find_actor_handler(const handler_table& table, payload& body, bool request);

template <auto Handler>
struct packet_handler {
  using shape = member_shape<decltype(Handler)>;
  static_assert(shape::known, "a handler is a member function: add_packet<&my_spot::on_something>()");
  using message_type = std::remove_cvref_t<typename shape::first>;
  static_assert(packet<message_type>, "a handler's message needs a ZLINK_PACKET line");
  static_assert(shape::template takes<const message_type&, const message_context&>,
                "a packet handler takes (const message&, const zlink::message_context&)");
  using reply = typename task_value<typename shape::result>::type;
  static_assert(std::is_void_v<reply> || packet<reply>, "a handler returns nothing or a packet, or a task of either");

  static handler_run* invoke(spot_object& object, record* r);
  static handler_entry entry(std::string packet_name) {
    const auto& type = packet_type_of<message_type>();
    if (packet_name.empty())
      packet_name = type.name;
    return {&type, std::move(packet_name), !std::is_void_v<reply>, &invoke};
  }
};

template <auto Handler>
struct actor_handler {
  using shape = member_shape<decltype(Handler)>;
  static_assert(shape::known, "a handler is a member function: add_actor_handler<&my_spot::on_something>()");
  using actor_type = std::remove_cvref_t<typename shape::first>;
  using message_type = std::remove_cvref_t<typename shape::third>;
  static_assert(packet<message_type>, "a handler's message needs a ZLINK_PACKET line");
  static_assert(shape::template takes<actor_type&, const message_context&, const message_type&>,
                "an Actor's handler takes (my_actor&, const zlink::message_context&, const message&)");
  static_assert(std::is_same_v<actor_type, typename shape::owner::actor_type>,
                "the handler takes another Actor class than its Spot is declared with");
  using reply = typename task_value<typename shape::result>::type;
  static_assert(std::is_void_v<reply> || packet<reply>, "a handler returns nothing or a packet, or a task of either");

  static handler_run* invoke(actor_object& who, spot_object& spot, record* r);
  static actor_handler_entry entry(std::string packet_name) {
    const auto& type = packet_type_of<message_type>();
    if (packet_name.empty())
      packet_name = type.name;
    return {&type, std::move(packet_name), !std::is_void_v<reply>, &invoke};
  }
};

} // namespace zlink::detail
