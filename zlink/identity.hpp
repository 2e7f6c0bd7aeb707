// Names and numbers that tell objects, nodes and their incarnations apart. Includes nothing of CAF.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zlink {

/// The closed set of Spot kinds (C-52).
enum class spot_kind : std::uint8_t { invalid = 0, entry = 1, user = 2, instance = 3 };

/// "invalid", "entry", "user", "instance".
const char* to_string(spot_kind kind) noexcept;
/// The kind of that name, or nothing.
std::optional<spot_kind> parse_spot_kind(std::string_view name) noexcept;

/// Where and which incarnation a Spot was when somebody looked. A snapshot: it does not follow a move, is no message
/// target and no capability (C-56).
struct spot_ref {
  std::string spot_id;
  std::uint64_t object_generation = 0; ///< 1..2^63-1
  std::string mesh_name;
  std::string node_rid;
  friend bool operator==(const spot_ref&, const spot_ref&) = default;
};

/// As `spot_ref`, for an Actor.
struct actor_ref {
  std::string actor_id;
  std::uint64_t object_generation = 0; ///< 1..2^63-1
  std::string mesh_name;
  std::string node_rid;
  friend bool operator==(const actor_ref&, const actor_ref&) = default;
};

/// Largest value of a stored generation; also the mark of an exhausted counter (S-30).
inline constexpr std::uint64_t generation_limit = 0x7fff'ffff'ffff'ffffULL;

namespace detail {

/// Values of different kinds never substitute for each other (S-29).
template <class Tag>
struct strong_number {
  std::uint64_t value = 0;
  explicit operator bool() const noexcept { return value != 0; }
  friend auto operator<=>(const strong_number&, const strong_number&) = default;
};

using object_generation = strong_number<struct object_generation_tag>;          ///< which incarnation of an id
using authority_generation = strong_number<struct authority_generation_tag>;    ///< which owner of that incarnation
using lease_generation = strong_number<struct lease_generation_tag>;            ///< which acquisition of a host lease
using lifecycle_generation = strong_number<struct lifecycle_generation_tag>;    ///< random, which run of a mesh node
using descriptor_revision = strong_number<struct descriptor_revision_tag>;      ///< which publication of a descriptor
using aggregate_generation = strong_number<struct aggregate_generation_tag>;    ///< random, which preparation of an aggregate
using attempt_generation = strong_number<struct attempt_generation_tag>;        ///< which target attempt of a move

/// 128 random bits, never zero: operations, reservations, relocations (M-132).
struct unique_id {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  explicit operator bool() const noexcept { return (high | low) != 0; }
  friend auto operator<=>(const unique_id&, const unique_id&) = default;
};
using operation_id = unique_id;

/// True for well-formed UTF-8 (no overlong forms, no surrogates, at most U+10FFFF).
bool is_utf8(std::string_view text) noexcept;
/// True for 1..255 bytes of UTF-8: Spot ids, Actor ids, stable types (C-25, C-51).
bool is_valid_id(std::string_view id) noexcept;
/// True if `id` has the form `<prefix>-entry-<uuid v4>` that only the layer issues (C-53, C-55).
bool is_entry_spot_format(std::string_view id) noexcept;
/// Throws `std::invalid_argument` naming `what` ("spot id") and why, unless `is_valid_id(id)`.
void require_valid_id(std::string_view what, std::string_view id);

/// A random version 4 uuid in lowercase canonical form from 128 random bits (C-4).
std::string format_uuid_v4(unique_id random_bits);

} // namespace detail
} // namespace zlink
