// The one name under which an object is found here, in the store's rows and in routes: the id of a Spot, or the id of an Actor
// behind a byte that no id begins with. Spots and Actors have ids of their own (C-51).
#pragma once

#include <string>
#include <string_view>

namespace zlink::detail {

inline constexpr char actor_mark = '\xff'; ///< in no UTF-8 text

inline std::string actor_address(std::string_view actor_id) {
  std::string address{actor_mark};
  address += actor_id;
  return address;
}
constexpr bool is_actor_address(std::string_view address) noexcept { return address.starts_with(actor_mark); }
/// The id in it.
constexpr std::string_view id_in(std::string_view address) noexcept {
  return is_actor_address(address) ? address.substr(1) : address;
}
/// For texts: `spot "x"`, `actor "x"`.
inline std::string described(std::string_view address) {
  std::string text = is_actor_address(address) ? "actor \"" : "spot \"";
  text += id_in(address);
  text += '"';
  return text;
}

} // namespace zlink::detail
