// The records of hosts and nodes, and the small ones.
#include "zlink/placement/record_parts.hpp"

namespace zlink::placement {

using namespace parts;

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

using parts::get;

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
