// The fields of a packet and the C++ types a field may have: what both codecs need to know before they look at a value.
#pragma once

#include "zlink/identity.hpp"
#include "zlink/packet_type.hpp"

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace zlink::detail {

/// Names a type to functions found by argument-dependent lookup, without a value of it.
template <class T>
struct packet_tag {};

/// One member of a packet.
template <class Member>
struct packet_field {
  const char* name;
  Member member; ///< pointer to member
};
template <class Member>
packet_field(const char*, Member) -> packet_field<Member>;

template <class... Members>
struct packet_field_list {
  static constexpr std::size_t size = sizeof...(Members);
  std::tuple<packet_field<Members>...> items;
};

template <class... Members>
constexpr packet_field_list<Members...> make_packet_fields(packet_field<Members>... fields) {
  return {std::tuple<packet_field<Members>...>{fields...}};
}

/// Nested packets a value or message may have, the outermost included. Bounds the stack for types that contain
/// themselves.
inline constexpr int nesting_limit = 64;

// References have fields but no packet name: they travel inside packets only. Names are those of M-36.
constexpr auto zlink_packet_fields(packet_tag<spot_ref>) {
  return make_packet_fields(
    packet_field{"id", &spot_ref::spot_id}, packet_field{"objectGeneration", &spot_ref::object_generation},
    packet_field{"meshName", &spot_ref::mesh_name}, packet_field{"nodeRid", &spot_ref::node_rid});
}
constexpr auto zlink_packet_fields(packet_tag<actor_ref>) {
  return make_packet_fields(
    packet_field{"id", &actor_ref::actor_id}, packet_field{"objectGeneration", &actor_ref::object_generation},
    packet_field{"meshName", &actor_ref::mesh_name}, packet_field{"nodeRid", &actor_ref::node_rid});
}

template <class T>
concept object_reference = std::same_as<T, spot_ref> || std::same_as<T, actor_ref>;

/// Has a field list: a packet, or a reference.
template <class T>
concept has_fields = std::is_class_v<T> && requires { zlink_packet_fields(packet_tag<T>{}); };

template <has_fields T>
inline constexpr auto packet_fields = zlink_packet_fields(packet_tag<T>{});

template <class T>
constexpr std::string_view packet_name() {
  if constexpr (std::same_as<T, spot_ref>)
    return "spot_ref";
  else if constexpr (std::same_as<T, actor_ref>)
    return "actor_ref";
  else
    return zlink_packet_name(packet_tag<T>{});
}

// -- the types a field may have ---------------------------------------------------------------------------------------

template <class T, template <class...> class Template>
inline constexpr bool is_a = false;
template <class... Args, template <class...> class Template>
inline constexpr bool is_a<Template<Args...>, Template> = true;

template <class T>
inline constexpr bool is_std_array = false;
template <class T, std::size_t N>
inline constexpr bool is_std_array<std::array<T, N>> = true;

/// Integers of 8 to 64 bits and characters; not bool.
template <class T>
concept integer_field = std::integral<T> && !std::same_as<T, bool> && sizeof(T) <= 8;

template <class T>
concept float_field = std::same_as<T, float> || std::same_as<T, double>;

/// Only with a fixed underlying type: any number that a peer may send is then a value of the enum.
template <class T>
concept enum_field = std::is_enum_v<T> && requires { T{std::underlying_type_t<T>{}}; };

template <class T>
concept duration_field = is_a<T, std::chrono::duration>;
template <class T>
concept optional_field = is_a<T, std::optional>;
template <class T>
concept array_field = is_std_array<T>;
template <class T>
concept tuple_field = is_a<T, std::tuple> || is_a<T, std::pair>;
template <class T>
concept variant_field = is_a<T, std::variant>;

/// std::vector, std::deque, std::list. std::string is a field of its own.
template <class T>
concept sequence_field = !std::same_as<T, std::string> && requires(T x, typename T::value_type v) {
  x.push_back(std::move(v));
  x.clear();
  x.size();
};

/// Sets with unique elements, ordered or not.
template <class T>
concept set_field = requires(T x, typename T::key_type k) {
  requires std::same_as<typename T::key_type, typename T::value_type>;
  { x.insert(std::move(k)).second } -> std::convertible_to<bool>;
};

/// Maps with unique keys, ordered or not.
template <class T>
concept map_field = requires(T x, typename T::key_type k, typename T::mapped_type v) {
  { x.emplace(std::move(k), std::move(v)).second } -> std::convertible_to<bool>;
};

/// True for one byte of data rather than a number: a sequence or array of them is one run of bytes.
template <class T>
concept blob_field = (is_a<T, std::vector> || is_std_array<T>) && std::same_as<typename T::value_type, std::byte>;

template <class T>
concept packet_field_type
  = std::same_as<T, bool> || integer_field<T> || float_field<T> || enum_field<T> || duration_field<T>
    || std::same_as<T, std::string> || std::same_as<T, std::monostate> || optional_field<T> || array_field<T>
    || tuple_field<T> || variant_field<T> || sequence_field<T> || set_field<T> || map_field<T> || has_fields<T>;

// -- where in a message -----------------------------------------------------------------------------------------------

/// The packet and field being encoded or decoded, linked outwards: so that an error can name them at no cost before.
struct codec_place {
  std::string_view packet;
  const char* field = nullptr;
  const codec_place* outer = nullptr;
};

/// "packet \"cart.view\", field \"items.sku\": why".
std::string describe(const codec_place* place, std::string_view why);

/// Enters a packet for the life of the object. `Coder` is a reader or writer with `place` and `depth`.
template <class Coder>
class codec_scope {
public:
  codec_scope(Coder& coder, std::string_view packet) : coder_(coder), place_{packet, nullptr, coder.place} {
    coder_.place = &place_;
    if (++coder_.depth > nesting_limit) {
      // The destructor will not run: leave the coder as it was, after it has said where it stands.
      --coder_.depth;
      coder_.fail("nested too deep");
    }
  }
  codec_scope(const codec_scope&) = delete;
  codec_scope& operator=(const codec_scope&) = delete;
  ~codec_scope() {
    coder_.place = place_.outer;
    --coder_.depth;
  }
  void at(const char* field) noexcept { place_.field = field; }

private:
  Coder& coder_;
  codec_place place_;
};

} // namespace zlink::detail
