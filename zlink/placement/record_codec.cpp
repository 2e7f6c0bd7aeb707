// The record of an object: a row, or the claim of an Entry Spot.
#include "zlink/placement/record_parts.hpp"

namespace zlink::placement {

using namespace parts;

namespace {

using parts::get;
using parts::put;

void put(byte_writer& out, const pending_creation& pending) {
  out.id(pending.reservation);
  out.number(pending.patience_ms);
  out.byte(pending.request.has_value());
  if (pending.request) {
    out.number(pending.request->size);
    put(out, pending.request->digest);
    out.text(pending.request->bytes);
  }
}

void get(byte_reader& in, pending_creation& pending) {
  pending.reservation = in.id();
  pending.patience_ms = in.number();
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

// Tag, version, flags and kind come before the two generations, which have a fixed place and size so that they can be
// stamped into the bytes.
constexpr std::size_t generations_at = 4;

void get(byte_reader& in, row_record& r) {
  const unsigned flags = in.byte();
  r.state = (flags & row_active) != 0 ? allocation_state::active : allocation_state::reserved;
  r.closing = (flags & row_closing) != 0;
  r.payload_lost = (flags & row_payload_lost) != 0;
  r.kind = get_kind(in);
  r.generation.value = get_generation(in);
  r.authority.value = get_generation(in);
  get(in, r.owner);
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
  out.fixed64(r.generation.value);
  out.fixed64(r.authority.value);
  put(out, r.owner);
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

void stamp_generations(store_bytes& encoded, const new_generations& numbers) noexcept {
  byte_writer both{16};
  const bool of_row = encoded.front() == static_cast<char>(record_tag::row);
  if (of_row)
    both.fixed64(numbers.object.value);
  both.fixed64(numbers.authority.value);
  const auto bytes = both.take();
  std::memcpy(encoded.data() + (of_row ? generations_at : authority_at), bytes.data(), bytes.size());
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

} // namespace zlink::placement
