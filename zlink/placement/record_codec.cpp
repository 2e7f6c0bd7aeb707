#include "zlink/placement/record_codec.hpp"

#include "zlink/placement/record_bytes.hpp"

#include <limits>

namespace zlink::placement {

namespace {

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
};

constexpr std::uint64_t uint32_limit = std::numeric_limits<std::uint32_t>::max();

byte_writer begin(record_tag tag, std::size_t expected) {
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

// -- parts ---------------------------------------------------------------------------------------------------------------

/// A number of a closed set `first..last`.
template <class Enum>
Enum read_enum(byte_reader& in, Enum first, Enum last) {
  const auto value = in.byte();
  if (value < static_cast<std::uint8_t>(first) || value > static_cast<std::uint8_t>(last))
    in.fail();
  return in.ok() ? static_cast<Enum>(value) : first;
}

void put(byte_writer& out, const owner_token& token) {
  out.id(token.owner);
  out.number(token.lease.value);
}

void get(byte_reader& in, owner_token& token) {
  token.owner = in.id();
  token.lease.value = in.number_up_to(generation_limit);
  if (!token.owner || !token.lease)
    in.fail();
}

void put(byte_writer& out, const node_identity& node) {
  out.text(node.mesh_name);
  out.text(node.node_rid);
  out.fixed64(node.lifecycle.value);
}

void get(byte_reader& in, node_identity& node) {
  node.mesh_name = in.text();
  node.node_rid = in.text();
  node.lifecycle.value = in.fixed64();
  if (!node.lifecycle)
    in.fail();
}

void put(byte_writer& out, const content_digest& digest) { out.raw(digest.data(), digest.size()); }
void get(byte_reader& in, content_digest& digest) { in.raw(digest.data(), digest.size()); }

object_kind get_kind(byte_reader& in) { return read_enum(in, object_kind::actor, object_kind::instance_spot); }

std::uint32_t get_slots(byte_reader& in) { return static_cast<std::uint32_t>(in.number_up_to(slot_limit)); }
std::uint32_t get_uint32(byte_reader& in) { return static_cast<std::uint32_t>(in.number_up_to(uint32_limit)); }

void put(byte_writer& out, const slot_bucket& bucket) {
  out.number(bucket.active);
  out.number(bucket.reserved);
}

void get(byte_reader& in, slot_bucket& bucket) {
  bucket.active = get_slots(in);
  bucket.reserved = get_slots(in);
}

void put(byte_writer& out, const slot_bundle& bundle) {
  out.number(bundle.actors);
  out.number(bundle.spots);
  out.number(bundle.type_slots);
  if (bundle.type_slots != 0) {
    out.byte(static_cast<std::uint8_t>(bundle.type_kind));
    out.text(bundle.type);
  }
}

void get(byte_reader& in, slot_bundle& bundle) {
  bundle.actors = get_slots(in);
  bundle.spots = get_slots(in);
  bundle.type_slots = get_slots(in);
  if (bundle.type_slots != 0) {
    bundle.type_kind = get_kind(in);
    bundle.type = in.text();
  }
}

void put(byte_writer& out, const pending_creation& pending) {
  out.id(pending.reservation);
  out.byte(pending.request.has_value());
  if (pending.request) {
    out.number(pending.request->size);
    put(out, pending.request->digest);
    out.text(pending.request->bytes);
  }
}

void get(byte_reader& in, pending_creation& pending) {
  pending.reservation = in.id();
  if (in.byte() == 0)
    return;
  auto& request = pending.request.emplace();
  request.size = static_cast<std::uint32_t>(in.number_up_to(request_content::size_limit));
  get(in, request.digest);
  request.bytes = in.text();
  if (request.bytes.size() != (request.is_apart() ? 0 : request.size))
    in.fail();
}

void put(byte_writer& out, const recovery_root& root) {
  out.text(root.reference);
  put(out, root.digest);
  out.number(root.size);
  out.number(root.cursor);
}

void get(byte_reader& in, recovery_root& root) {
  root.reference = in.text();
  get(in, root.digest);
  root.size = in.number();
  root.cursor = in.number();
}

void put(byte_writer& out, const spot_membership& membership) {
  out.text(membership.spot_id);
  out.number(membership.spot_generation.value);
}

void get(byte_reader& in, spot_membership& membership) {
  membership.spot_id = in.text();
  membership.spot_generation.value = in.number_up_to(generation_limit);
}

void put(byte_writer& out, const move_progress& move) {
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

void get(byte_reader& in, move_progress& move) {
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

// -- the row ---------------------------------------------------------------------------------------------------------------

// One byte says which of the optional parts are there.
enum row_flag : unsigned {
  row_active = 1,
  row_closing = 2,
  row_pending = 4,
  row_root = 8,
  row_member = 16,
  row_move = 32,
  row_aggregate = 64,
  row_payload_lost = 128,
};

unsigned flags_of(const row_record& r) noexcept {
  return (r.state == allocation_state::active ? row_active : 0U) | (r.closing ? row_closing : 0U)
         | (r.pending ? row_pending : 0U) | (r.root ? row_root : 0U) | (r.member_of ? row_member : 0U)
         | (r.move ? row_move : 0U) | (r.aggregate ? row_aggregate : 0U) | (r.payload_lost ? row_payload_lost : 0U);
}

template <class Part>
void get_if(bool present, byte_reader& in, std::optional<Part>& part) {
  if (present)
    get(in, part.emplace());
}

void get(byte_reader& in, row_record& r) {
  const unsigned flags = in.byte();
  r.state = (flags & row_active) != 0 ? allocation_state::active : allocation_state::reserved;
  r.closing = (flags & row_closing) != 0;
  r.payload_lost = (flags & row_payload_lost) != 0;
  r.kind = get_kind(in);
  get(in, r.owner);
  r.generation.value = in.number_up_to(generation_limit);
  r.authority.value = in.number_up_to(generation_limit);
  r.stable_type = in.text();
  get(in, r.node);
  get(in, r.slots);
  get_if((flags & row_pending) != 0, in, r.pending);
  get_if((flags & row_root) != 0, in, r.root);
  get_if((flags & row_member) != 0, in, r.member_of);
  get_if((flags & row_move) != 0, in, r.move);
  if ((flags & row_aggregate) != 0 && !(r.aggregate = in.id()))
    in.fail();
  // A reserved row is nothing but its reservation, and only a reserved row has one (S-26).
  if (!r.generation || !r.authority || r.slots.empty() || r.pending.has_value() == ((flags & row_active) != 0)
      || ((flags & row_active) == 0 && (r.closing || r.move || r.aggregate)))
    in.fail();
}

} // namespace

std::string encode(const row_record& r) {
  auto out = begin(record_tag::row, 192);
  out.byte(static_cast<std::uint8_t>(flags_of(r)));
  out.byte(static_cast<std::uint8_t>(r.kind));
  put(out, r.owner);
  out.number(r.generation.value);
  out.number(r.authority.value);
  out.text(r.stable_type);
  put(out, r.node);
  put(out, r.slots);
  if (r.pending)
    put(out, *r.pending);
  if (r.root)
    put(out, *r.root);
  if (r.member_of)
    put(out, *r.member_of);
  if (r.move)
    put(out, *r.move);
  if (r.aggregate)
    out.id(r.aggregate);
  return out.take();
}

template <>
decoded<row_record> decode(std::string_view bytes) {
  return decode_record<row_record>(bytes, record_tag::row, [](byte_reader& in, row_record& r) { get(in, r); });
}

std::string encode(const entry_claim& record) {
  auto out = begin(record_tag::claim, 96);
  put(out, record.node);
  put(out, record.owner);
  return out.take();
}

template <>
decoded<entry_claim> decode(std::string_view bytes) {
  return decode_record<entry_claim>(bytes, record_tag::claim, [](byte_reader& in, entry_claim& r) {
    get(in, r.node);
    get(in, r.owner);
  });
}

std::string encode(const object_record& record) {
  return std::visit([](const auto& one) { return encode(one); }, record);
}

template <>
decoded<object_record> decode(std::string_view bytes) {
  decoded<object_record> result{std::in_place_index<0>};
  const auto take = [&result](auto record) {
    if (const auto* fault = std::get_if<record_fault>(&record))
      result = *fault;
    else
      std::get<object_record>(result) = std::move(std::get<0>(record));
  };
  if (!bytes.empty() && bytes.front() == static_cast<char>(record_tag::claim))
    take(decode<entry_claim>(bytes));
  else
    take(decode<row_record>(bytes));
  return result;
}

// -- the others --------------------------------------------------------------------------------------------------------------

std::string encode(const lease_record& record) {
  auto out = begin(record_tag::lease, 32);
  put(out, record.token);
  return out.take();
}

template <>
decoded<lease_record> decode(std::string_view bytes) {
  return decode_record<lease_record>(bytes, record_tag::lease,
                                     [](byte_reader& in, lease_record& r) { get(in, r.token); });
}

std::string encode(const capacity_record& record) {
  auto out = begin(record_tag::capacity, 32 + record.types.size() * 32);
  out.fixed64(record.lifecycle.value);
  put(out, record.actors);
  put(out, record.spots);
  out.number(record.types.size());
  for (const auto& type : record.types) {
    out.byte(static_cast<std::uint8_t>(type.kind));
    out.text(type.type);
    put(out, type.slots);
  }
  return out.take();
}

template <>
decoded<capacity_record> decode(std::string_view bytes) {
  return decode_record<capacity_record>(bytes, record_tag::capacity, [](byte_reader& in, capacity_record& r) {
    r.lifecycle.value = in.fixed64();
    get(in, r.actors);
    get(in, r.spots);
    for (auto n = in.number_up_to(slot_limit); n > 0 && in.ok(); --n) {
      auto& type = r.types.emplace_back();
      type.kind = get_kind(in);
      type.type = in.text();
      get(in, type.slots);
    }
    if (!r.lifecycle)
      in.fail();
  });
}

std::string encode(const creation_terminal& record) {
  auto out = begin(record_tag::terminal, 128 + (record.reply ? record.reply->size() : 0));
  out.byte(static_cast<std::uint8_t>(record.result));
  if (record.result == creation_result::created) {
    out.number(record.generation.value);
    put(out, record.node);
  }
  out.byte(record.reply.has_value());
  if (record.reply) {
    put(out, record.digest);
    out.text(*record.reply);
  }
  return out.take();
}

template <>
decoded<creation_terminal> decode(std::string_view bytes) {
  return decode_record<creation_terminal>(bytes, record_tag::terminal, [](byte_reader& in, creation_terminal& r) {
    r.result = read_enum(in, creation_result::created, creation_result::failed);
    if (in.ok() && r.result == creation_result::created) {
      r.generation.value = in.number_up_to(generation_limit);
      get(in, r.node);
    }
    if (in.byte() != 0) {
      get(in, r.digest);
      r.reply = in.text();
    }
  });
}

std::string encode(const counter_record& record) {
  auto out = begin(record_tag::counter, 12);
  out.number(record.next);
  return out.take();
}

template <>
decoded<counter_record> decode(std::string_view bytes) {
  return decode_record<counter_record>(bytes, record_tag::counter, [](byte_reader& in, counter_record& r) {
    r.next = in.number_up_to(generation_limit);
    if (r.next == 0)
      in.fail();
  });
}

std::string encode(const epoch_record& record) {
  auto out = begin(record_tag::epoch, 18);
  out.id(record.epoch);
  return out.take();
}

template <>
decoded<epoch_record> decode(std::string_view bytes) {
  return decode_record<epoch_record>(bytes, record_tag::epoch, [](byte_reader& in, epoch_record& r) {
    r.epoch = in.id();
    if (!r.epoch)
      in.fail();
  });
}

std::string encode(const descriptor_record& r) {
  auto out = begin(record_tag::descriptor, 256 + r.capabilities.size() * 40 + r.channels.size() * 24);
  put(out, r.node);
  put(out, r.owner);
  out.byte(static_cast<std::uint8_t>(r.state));
  out.byte(static_cast<std::uint8_t>(r.role));
  out.number(r.revision.value);
  out.text(r.endpoint);
  out.text(r.entry_spot_id);
  out.number(r.placement_weight);
  out.number(r.channels.size());
  for (const auto& channel : r.channels) {
    out.text(channel.channel);
    out.number(channel.weight);
  }
  out.number(r.capabilities.size());
  for (const auto& capability : r.capabilities) {
    out.byte(static_cast<std::uint8_t>(capability.kind));
    out.text(capability.stable_type);
    out.byte(static_cast<std::uint8_t>(capability.policy));
    out.byte(capability.has_adapter);
    out.number(capability.limit);
    put(out, capability.slots);
  }
  out.number(r.actor_limit);
  out.number(r.spot_limit);
  put(out, r.actors);
  put(out, r.spots);
  out.number(r.activations);
  out.number(r.activation_limit);
  out.text(r.application_version);
  out.byte(r.maintenance_wave.has_value());
  if (r.maintenance_wave)
    out.number(*r.maintenance_wave);
  out.text(r.security_identity);
  out.number(r.updated_unix_ms);
  return out.take();
}

namespace {

void get(byte_reader& in, channel_weight& channel) {
  channel.channel = in.text();
  channel.weight = static_cast<std::uint32_t>(in.number_up_to(descriptor_record::weight_limit));
}

void get(byte_reader& in, type_capability& capability) {
  capability.kind = get_kind(in);
  capability.stable_type = in.text();
  capability.policy = read_enum(in, relocation_policy::disabled, relocation_policy::preserve_state);
  capability.has_adapter = in.byte() != 0;
  capability.limit = get_slots(in);
  get(in, capability.slots);
}

void get(byte_reader& in, descriptor_record& r) {
  get(in, r.node);
  get(in, r.owner);
  r.state = read_enum(in, node_state::claimed, node_state::error);
  r.role = read_enum(in, object_role::none, object_role::server);
  r.revision.value = in.number_up_to(generation_limit);
  r.endpoint = in.text();
  r.entry_spot_id = in.text();
  r.placement_weight = static_cast<std::uint32_t>(in.number_up_to(descriptor_record::weight_limit));
  for (auto n = in.number(); n > 0 && in.ok(); --n)
    get(in, r.channels.emplace_back());
  for (auto n = in.number_up_to(descriptor_record::capability_limit); n > 0 && in.ok(); --n)
    get(in, r.capabilities.emplace_back());
  r.actor_limit = get_slots(in);
  r.spot_limit = get_slots(in);
  get(in, r.actors);
  get(in, r.spots);
  r.activations = get_uint32(in);
  r.activation_limit = get_uint32(in);
  r.application_version = in.text();
  if (in.byte() != 0)
    r.maintenance_wave = get_uint32(in);
  r.security_identity = in.text();
  r.updated_unix_ms = in.number();
}

} // namespace

template <>
decoded<descriptor_record> decode(std::string_view bytes) {
  return decode_record<descriptor_record>(bytes, record_tag::descriptor,
                                          [](byte_reader& in, descriptor_record& r) { get(in, r); });
}

} // namespace zlink::placement
