// ZLINK_PACKET, the one line that makes a struct a packet: its name on the wire, both codecs, CAF's inspector and its
// entry in the registry. Includes nothing of CAF, so that clients and servers share the header that declares their
// packets.
#pragma once

#include "zlink/codec/binary.hpp"
#include "zlink/codec/fields.hpp"
#include "zlink/codec/json.hpp"
#include "zlink/packet_type.hpp"

#include <concepts>
#include <memory>
#include <new>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace zlink {

/// True for types with a ZLINK_PACKET line.
template <class T>
concept packet = std::is_class_v<T> && requires {
  { zlink_packet_name(detail::packet_tag<T>{}) } -> std::convertible_to<std::string_view>;
};

namespace detail {

/// What the runtime knows about `T`. Constant-initialised: usable before and after any other static object.
template <class T>
inline constinit const packet_type packet_type_instance{
  .name = packet_name<T>(),
  .type = &typeid(T),
  .size = sizeof(T),
  .alignment = alignof(T),
  .construct = [](void* to) { ::new (to) T{}; },
  .copy = [](void* to, const void* from) { ::new (to) T(*static_cast<const T*>(from)); },
  .move =
    [](void* to, void* from) noexcept {
      ::new (to) T(std::move(*static_cast<T*>(from)));
      std::destroy_at(static_cast<T*>(from));
    },
  .destroy = [](void* what) noexcept { std::destroy_at(static_cast<T*>(what)); },
  .encode_binary = [](const void* from, bytes& to) { encode_binary(*static_cast<const T*>(from), to); },
  .decode_binary = [](void* into, byte_view from) { decode_binary(from, *static_cast<T*>(into)); },
  .encode_json = [](const void* from, std::string& to) { encode_json(*static_cast<const T*>(from), to); },
  .decode_json = [](void* into, std::string_view from) { decode_json(from, *static_cast<T*>(into)); },
};

/// Its address; the same for every call in the program, without lock or guard.
template <packet T>
constexpr const packet_type& packet_type_of() noexcept {
  return packet_type_instance<T>;
}

template <class T>
consteval bool field_names_are_distinct() {
  return std::apply(
    [](const auto&... field) {
      const std::string_view names[] = {std::string_view{}, field.name...};
      for (std::size_t i = 1; i < std::size(names); ++i)
        for (std::size_t j = i + 1; j < std::size(names); ++j)
          if (names[i] == names[j])
            return false;
      return true;
    },
    packet_fields<T>.items);
}

/// Registers `T` at static initialisation. `Caf` tells the two forms apart: with and without CAF in sight (then
/// zlink/caf/packet_ops.hpp has set ZLINK_DETAIL_CAF); one program may hold both.
template <class T, int Caf>
struct packet_registrar {
  static_assert(std::is_default_constructible_v<T> && std::is_copy_constructible_v<T>,
                "ZLINK_PACKET: a packet is default constructible and copyable");
  static_assert(std::is_nothrow_destructible_v<T>, "ZLINK_PACKET: the destructor of a packet does not throw");
  static_assert(!packet_name<T>().empty() && packet_name<T>().size() <= 255,
                "ZLINK_PACKET: the name takes 1 to 255 bytes of UTF-8");
  static_assert(decltype(zlink_packet_fields(packet_tag<T>{}))::size <= 64, "ZLINK_PACKET: at most 64 members");
  static_assert(field_names_are_distinct<T>(), "ZLINK_PACKET: a member is listed twice");

  static bool add() {
    register_packet(packet_type_of<T>());
    if constexpr (Caf != 0)
      packet_type_of<T>().caf.store(zlink_caf_packet_ops(packet_tag<T>{}), std::memory_order_release);
    return true;
  }
};

// -- CAF's inspectors -------------------------------------------------------------------------------------------------

/// CAF from 0.18 on: inspectors know objects and fields.
template <class Inspector, class T>
concept names_fields = requires(Inspector& f, T& x) { f.object(x); };

template <class Inspector, class T>
struct inspection {
  using type = bool;
};
template <class Inspector, class T>
  requires(!names_fields<Inspector, T> && requires { typename Inspector::result_type; })
struct inspection<Inspector, T> {
  using type = typename Inspector::result_type; // CAF 0.17; void for the one that prints
};
template <class Inspector, class T>
using inspection_result = typename inspection<Inspector, T>::type;

template <class Inspector, has_fields T>
inspection_result<Inspector, T> inspect_fields(Inspector& f, T& x) {
  return std::apply(
    [&](const auto&... field) {
      if constexpr (names_fields<Inspector, T>)
        return f.object(x).fields(f.field(field.name, x.*field.member)...);
      else
        return f(x.*field.member...);
    },
    packet_fields<T>.items);
}

} // namespace detail

/// References travel inside packets through CAF as well.
template <class Inspector, detail::object_reference T>
detail::inspection_result<Inspector, T> inspect(Inspector& f, T& x) {
  return detail::inspect_fields(f, x);
}

} // namespace zlink

/// `ZLINK_PACKET(type, "name", members…)` makes `type` a packet called `name` (M-29, 1..255 bytes of UTF-8) with 0..64
/// members. Stands once per type at namespace scope, in the namespace of the type, after its definition; a header may
/// hold it. `type` is default constructible, copyable and lets the line name its members; where the type itself has a
/// comma, give an alias. The line declares CAF's `inspect` for the type: remove an own one. Member types: see
/// zlink/codec/binary.hpp. Add members at the end only: peers of another version then skip or default them (D-10).
#define ZLINK_PACKET(type, ...)                                                                                        \
  constexpr ::std::string_view zlink_packet_name(::zlink::detail::packet_tag<type>) {                                  \
    return ZLINK_DETAIL_FIRST(__VA_ARGS__, );                                                                          \
  }                                                                                                                    \
  constexpr auto zlink_packet_fields(::zlink::detail::packet_tag<type>) {                                              \
    return ::zlink::detail::make_packet_fields(ZLINK_DETAIL_FIELDS(type, __VA_ARGS__, ));                              \
  }                                                                                                                    \
  template <class Inspector>                                                                                           \
  ::zlink::detail::inspection_result<Inspector, type> inspect(Inspector& f, type& x) {                                 \
    return ::zlink::detail::inspect_fields(f, x);                                                                      \
  }                                                                                                                    \
  [[maybe_unused]] static const bool ZLINK_DETAIL_JOIN(zlink_packet_registered_, __COUNTER__)                          \
    = ::zlink::detail::packet_registrar<type, ZLINK_DETAIL_CAF>::add();

#ifndef ZLINK_DETAIL_CAF
#define ZLINK_DETAIL_CAF 0
#endif

#define ZLINK_DETAIL_JOIN(a, b) ZLINK_DETAIL_JOIN_EXPANDED(a, b)
#define ZLINK_DETAIL_JOIN_EXPANDED(a, b) a##b
#define ZLINK_DETAIL_FIRST(first, ...) first

// A macro does not expand itself, but a step that ends in the unexpanded name of the next is taken up again by the next
// rescan; 4^4 rescans are more than the 64 members need. Every list carries an empty last argument, because `...` must
// not be left out entirely.
#define ZLINK_DETAIL_FIELDS(type, name, ...)                                                                           \
  __VA_OPT__(ZLINK_DETAIL_SCAN(ZLINK_DETAIL_FIELD(type, __VA_ARGS__)))
#define ZLINK_DETAIL_FIELD(type, member, ...)                                                                          \
  ::zlink::detail::packet_field{#member, &type::member} __VA_OPT__(, ZLINK_DETAIL_NEXT ZLINK_DETAIL_PARENS(            \
    type, __VA_ARGS__))
#define ZLINK_DETAIL_NEXT() ZLINK_DETAIL_FIELD
#define ZLINK_DETAIL_PARENS ()
#define ZLINK_DETAIL_SCAN(...)                                                                                         \
  ZLINK_DETAIL_SCAN3(ZLINK_DETAIL_SCAN3(ZLINK_DETAIL_SCAN3(ZLINK_DETAIL_SCAN3(__VA_ARGS__))))
#define ZLINK_DETAIL_SCAN3(...)                                                                                        \
  ZLINK_DETAIL_SCAN2(ZLINK_DETAIL_SCAN2(ZLINK_DETAIL_SCAN2(ZLINK_DETAIL_SCAN2(__VA_ARGS__))))
#define ZLINK_DETAIL_SCAN2(...)                                                                                        \
  ZLINK_DETAIL_SCAN1(ZLINK_DETAIL_SCAN1(ZLINK_DETAIL_SCAN1(ZLINK_DETAIL_SCAN1(__VA_ARGS__))))
#define ZLINK_DETAIL_SCAN1(...)                                                                                        \
  ZLINK_DETAIL_SCAN0(ZLINK_DETAIL_SCAN0(ZLINK_DETAIL_SCAN0(ZLINK_DETAIL_SCAN0(__VA_ARGS__))))
#define ZLINK_DETAIL_SCAN0(...) __VA_ARGS__
