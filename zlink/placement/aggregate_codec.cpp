// The record of an aggregate, and the pages of its list.
#include "zlink/placement/record_parts.hpp"

namespace zlink::placement {

using namespace parts;

namespace {

using parts::get;
using parts::put;

void put(byte_writer& out, const participant& one) {
  out.byte(static_cast<std::uint8_t>(one.kind));
  out.text(one.id);
  out.number(one.generation.value);
  out.number(one.authority.value);
  out.text(one.stable_type);
  if (one.kind == object_kind::actor)
    put(out, one.member_of.value_or(spot_membership{}));
}

void get(byte_reader& in, participant& one) {
  one.kind = get_kind(in);
  one.id = in.text();
  one.generation.value = in.number_up_to(generation_limit);
  one.authority.value = in.number_up_to(generation_limit);
  one.stable_type = in.text();
  if (one.kind == object_kind::actor)
    get(in, one.member_of.emplace());
  if (one.id.empty() || !one.generation || !one.authority)
    in.fail();
}

void get(byte_reader& in, aggregate_record& r) {
  r.authority.value = get_generation(in);
  r.id = in.id();
  r.generation.value = in.fixed64();
  get(in, r.owner);
  get(in, r.node);
  r.authority_before.value = in.number_up_to(generation_limit);
  get(in, r.slots);
  r.participants.pages = get_uint32(in);
  r.participants.count = get_slots(in);
  get(in, r.participants.digest);
  const auto moves = in.byte();
  if (moves > 1)
    in.fail();
  if (in.ok() && moves == 1)
    get(in, r.move.emplace());
  if (!r.id || !r.generation || !r.authority_before || r.slots.empty() || r.participants.count == 0
      || r.participants.pages == 0 || r.participants.pages > r.participants.count)
    in.fail();
}

} // namespace

std::string encode(const aggregate_record& r) {
  auto out = begin(record_tag::aggregate, 256);
  out.fixed64(r.authority.value); // at `authority_at`
  out.id(r.id);
  out.fixed64(r.generation.value);
  put(out, r.owner);
  put(out, r.node);
  out.number(r.authority_before.value);
  put(out, r.slots);
  out.number(r.participants.pages);
  out.number(r.participants.count);
  put(out, r.participants.digest);
  out.byte(r.move.has_value());
  if (r.move)
    put(out, *r.move);
  return out.take();
}

template <>
decoded<aggregate_record> decode(std::string_view bytes) {
  return decode_record<aggregate_record>(bytes, record_tag::aggregate,
                                         [](byte_reader& in, aggregate_record& r) { get(in, r); });
}

std::string encode(const participant_page& record) {
  auto out = begin(record_tag::participants, 64 * record.entries.size());
  out.number(record.entries.size());
  for (const auto& one : record.entries)
    put(out, one);
  return out.take();
}

template <>
decoded<participant_page> decode(std::string_view bytes) {
  return decode_record<participant_page>(bytes, record_tag::participants, [](byte_reader& in, participant_page& r) {
    for (auto left = in.number_up_to(participant_page::most_entries); left > 0 && in.ok(); --left)
      get(in, r.entries.emplace_back());
    if (r.entries.empty())
      in.fail();
  });
}

} // namespace zlink::placement
