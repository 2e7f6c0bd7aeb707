// How CAF holds a packet type. Including this header (message.hpp does) makes ZLINK_PACKET lines that follow register
// their types for CAF as well (D-11, D-12).
#pragma once

#include "zlink/caf/compat.hpp"
#include "zlink/codec/fields.hpp"
#include "zlink/packet_type.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/make_type_erased_tuple_view.hpp>
#include <caf/message.hpp>

#include <string>
#include <utility>

#undef ZLINK_DETAIL_CAF
#define ZLINK_DETAIL_CAF 1

namespace zlink::detail {

/// Filled in once per type; found through packet_type::caf.
struct caf_packet_ops {
  using view_user = void (*)(void* context, caf::type_erased_tuple& view);

  /// Moves the value into a message of one element.
  caf::message (*to_message)(void* value);
  /// Shows the value as a tuple of one element, without copying or allocating.
  void (*view)(void* value, view_user use, void* context);
  /// Move-constructs (or copies, if shared) element 0 of `from` at `to`; false if the message is not one such value.
  bool (*from_message)(caf::message& from, void* to);
  /// True if the message is one such value.
  bool (*matches)(const caf::message& what);
  /// Makes the type known to CAF's own serialization (caf_link does not need it, D-13's multi-value messages do).
  void (*announce)(caf::actor_system_config& config, const std::string& name);
};

template <class T>
inline constexpr caf_packet_ops caf_packet_ops_of{
  [](void* value) { return caf::make_message(std::move(*static_cast<T*>(value))); },
  [](void* value, caf_packet_ops::view_user use, void* context) {
    auto view = caf::make_type_erased_tuple_view(*static_cast<T*>(value));
    use(context, view);
  },
  [](caf::message& from, void* to) {
    if (from.size() != 1 || !from.match_elements<T>())
      return false;
    if (from.cvals()->unique())
      ::new (to) T(std::move(from.get_mutable_as<T>(0)));
    else
      ::new (to) T(from.get_as<T>(0));
    return true;
  },
  [](const caf::message& what) { return what.size() == 1 && what.match_elements<T>(); },
  [](caf::actor_system_config& config, const std::string& name) { config.add_message_type<T>(name); },
};

/// Found by ADL where ZLINK_PACKET is expanded after this header.
template <class T>
const caf_packet_ops* zlink_caf_packet_ops(packet_tag<T>) {
  return &caf_packet_ops_of<T>;
}

} // namespace zlink::detail
