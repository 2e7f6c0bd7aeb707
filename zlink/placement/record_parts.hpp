// What records are encoded from; internal to the codec of zlink/placement.
#pragma once

#include "zlink/placement/record_bytes.hpp"
#include "zlink/placement/record_codec.hpp"

#include <limits>

namespace zlink::placement::parts {

// The first byte of every record; the second is `record_version`.
enum class record_tag : std::uint8_t {
  row = 'R',
  claim = 'E',
  lease = 'L',
  descriptor = 'D',
  capacity = 'C',
  terminal = 'T',
  counter = 'N',
  epoch = 'S',
  payload = 'P', ///< in the Relocation Store
  aggregate = 'A',
  participants = 'M',
};

/// Where an aggregate record has its authority number: behind tag and version.
inline constexpr std::size_t authority_at = 2;

inline constexpr std::uint64_t uint32_limit = std::numeric_limits<std::uint32_t>::max();

inline byte_writer begin(record_tag tag, std::size_t expected) {
  byte_writer out{expected};
  out.byte(static_cast<std::uint8_t>(tag));
  out.byte(record_version);
  return out;
}

/// Decodes with `read` what stands behind tag and version.
template <class Record, class Read>
decoded<Record> decode_record(std::string_view bytes, record_tag tag, Read read) {
  byte_reader in{bytes};
  if (in.byte() != static_cast<std::uint8_t>(tag))
    return record_fault::corrupt;
  if (const auto version = in.byte(); version != record_version)
    return in.ok() ? record_fault::unknown_version : record_fault::corrupt;
  Record record;
  read(in, record);
  if (!in.at_end())
    return record_fault::corrupt;
  return record;
}

// -- parts ----------------------------------------------------------------------------------------------------------

/// A number of a closed set `first..last`.
template <class Enum>
Enum read_enum(byte_reader& in, Enum first, Enum last) {
  const auto value = in.byte();
  if (value < static_cast<std::uint8_t>(first) || value > static_cast<std::uint8_t>(last))
    in.fail();
  return in.ok() ? static_cast<Enum>(value) : first;
}

inline void put(byte_writer& out, const owner_token& token) {
  out.id(token.owner);
  out.number(token.lease.value);
}

inline void get(byte_reader& in, owner_token& token) {
  token.owner = in.id();
  token.lease.value = in.number_up_to(generation_limit);
  if (!token.owner || !token.lease)
    in.fail();
}

inline void put(byte_writer& out, const node_identity& node) {
  out.text(node.mesh_name);
  out.text(node.node_rid);
  out.fixed64(node.lifecycle.value);
}

inline void get(byte_reader& in, node_identity& node) {
  node.mesh_name = in.text();
  node.node_rid = in.text();
  node.lifecycle.value = in.fixed64();
  if (!node.lifecycle)
    in.fail();
}

inline void put(byte_writer& out, const content_digest& digest) { out.raw(digest.data(), digest.size()); }
inline void get(byte_reader& in, content_digest& digest) { in.raw(digest.data(), digest.size()); }

inline object_kind get_kind(byte_reader& in) { return read_enum(in, object_kind::actor, object_kind::instance_spot); }

inline std::uint32_t get_slots(byte_reader& in) { return static_cast<std::uint32_t>(in.number_up_to(slot_limit)); }
inline std::uint32_t get_uint32(byte_reader& in) { return static_cast<std::uint32_t>(in.number_up_to(uint32_limit)); }

inline void put(byte_writer& out, const slot_bucket& bucket) {
  out.number(bucket.active);
  out.number(bucket.reserved);
}

inline void get(byte_reader& in, slot_bucket& bucket) {
  bucket.active = get_slots(in);
  bucket.reserved = get_slots(in);
}

inline void put(byte_writer& out, const slot_bundle& bundle) {
  out.number(bundle.actors);
  out.number(bundle.spots);
  out.number(bundle.type_slots);
  if (bundle.type_slots != 0) {
    out.byte(static_cast<std::uint8_t>(bundle.type_kind));
    out.text(bundle.type);
  }
}

inline void get(byte_reader& in, slot_bundle& bundle) {
  bundle.actors = get_slots(in);
  bundle.spots = get_slots(in);
  bundle.type_slots = get_slots(in);
  if (bundle.type_slots != 0) {
    bundle.type_kind = get_kind(in);
    bundle.type = in.text();
  }
}

inline void put(byte_writer& out, const spot_membership& membership) {
  out.text(membership.spot_id);
  out.number(membership.spot_generation.value);
}

inline void get(byte_reader& in, spot_membership& membership) {
  membership.spot_id = in.text();
  membership.spot_generation.value = in.number_up_to(generation_limit);
}

inline void put(byte_writer& out, const move_progress& move) {
  out.id(move.relocation);
  out.byte(static_cast<std::uint8_t>(move.stage));
  put(out, move.list_digest);
  if (move.stage < move_stage::prepared)
    return;
  out.fixed64(move.attempt.value);
  out.id(move.reservation);
  put(out, move.target_owner);
  put(out, move.target);
  put(out, move.slots);
}

inline void get(byte_reader& in, move_progress& move) {
  move.relocation = in.id();
  move.stage = read_enum(in, move_stage::preparing, move_stage::completed);
  get(in, move.list_digest);
  if (!in.ok() || move.stage < move_stage::prepared)
    return;
  move.attempt.value = in.fixed64();
  move.reservation = in.id();
  get(in, move.target_owner);
  get(in, move.target);
  get(in, move.slots);
}

/// A number of a counter with a fixed place and size, so that it can be stamped into the bytes.
inline std::uint64_t get_generation(byte_reader& in) noexcept {
  const auto value = in.fixed64();
  if (value > generation_limit)
    in.fail();
  return in.ok() ? value : 0;
}

} // namespace zlink::placement::parts
