#include "zlink/codec.hpp"
#include "zlink/messaging/wire.hpp"
#include "zlink/messaging/refused_nodes.hpp"
#include "zlink/messaging/wire_format.hpp"

#include <bit>
#include <cstring>

namespace zlink::detail {

namespace {

/// Reads views of a body; throws `decode_error` naming the frame.
class view_reader : public binary_reader {
public:
  view_reader(byte_view body, const codec_place& what) noexcept : binary_reader(body) { place = &what; }
  byte_view rest() { return view(left()); }
  std::string_view text() {
    const auto found = view(count(1));
    return {reinterpret_cast<const char*>(found.data()), found.size()};
  }
  std::string_view utf8() {
    const auto found = text();
    if (!is_utf8(found))
      fail("text is not UTF-8");
    return found;
  }
  std::string_view id() {
    const auto found = text();
    if (!is_valid_id(found))
      fail("id is not 1 to 255 bytes of UTF-8");
    return found;
  }
  std::uint8_t code(std::uint8_t largest) {
    const auto b = static_cast<std::uint8_t>(byte());
    if (b > largest)
      fail("unknown code");
    return b;
  }
  template <class T>
  T fixed() {
    T value = 0;
    const auto from = view(sizeof value);
    if constexpr (std::endian::native == std::endian::little)
      std::memcpy(&value, from.data(), sizeof value);
    else
      for (std::size_t i = 0; i < sizeof value; ++i)
        value |= static_cast<T>(static_cast<T>(from[i]) << (8 * i));
    return value;
  }
  template <class T>
  T number(std::uint64_t largest) {
    const auto v = varint();
    if (v > largest)
      fail("number out of range");
    return T{static_cast<decltype(T::value)>(v)};
  }
  std::string_view content_type() {
    switch (code(content_json)) {
      case content_binary: return binary_content_type;
      case content_json: return json_content_type;
      default: return text();
    }
  }
  void end() {
    if (!at_end())
      fail("bytes behind the end");
  }
};

constexpr codec_place hello_place{"hello frame"};
constexpr codec_place answer_place{"hello answer frame"};
constexpr codec_place message_place{"message frame"};
constexpr codec_place reply_place{"reply frame"};
constexpr codec_place link_place{"link frame"};
constexpr codec_place batch_place{"batch"};

link_channel decode_channel(view_reader& in) {
  link_channel channel;
  channel.name = in.id();
  channel.server = in.code(1) == 1;
  const auto weight = in.varint();
  if (weight > 10'000)
    in.fail("channel weight out of range");
  channel.weight = static_cast<std::uint32_t>(weight);
  return channel;
}

link_identity decode_identity(view_reader& in) {
  link_identity who;
  who.mesh = in.id();
  who.rid = in.id();
  who.lifecycle = {in.fixed<std::uint64_t>()};
  who.revision = in.number<descriptor_revision>(generation_limit);
  who.role = static_cast<object_role>(in.code(2));
  const auto channels = in.count(4); // name length, a byte of name, role, weight
  who.channels.reserve(channels);
  for (std::size_t i = 0; i < channels; ++i)
    who.channels.push_back(decode_channel(in));
  who.frame_limit = in.varint();
  who.window_bytes = in.varint();
  who.security_identity = in.utf8();
  who.entry_spot_id = in.utf8();
  in.end();
  return who;
}

message_header decode_header(view_reader& in) {
  message_header h;
  const auto first = static_cast<std::uint8_t>(in.byte());
  const auto kind = first & header_kind_mask;
  const bool followed = kind == header_followed_spot || kind == header_followed_actor;
  const bool exact = kind == header_bound_actor;
  if (exact || kind == header_followed_actor)
    h.target = target_kind::actor;
  else
    h.target = followed ? target_kind::spot : static_cast<target_kind>(kind); // there is no other
  h.target_id = in.id();
  if (h.target == target_kind::publish) {
    h.topic = in.utf8();
    if (h.topic.empty())
      in.fail("empty topic");
  }
  h.operation.high = in.fixed<std::uint64_t>();
  h.operation.low = in.fixed<std::uint64_t>();
  if (!h.operation)
    in.fail("operation id is zero");
  if ((first & header_flow) != 0 && (h.flow = in.utf8()).empty())
    in.fail("empty flow");
  if ((first & header_fence) != 0) {
    auto& fence = h.fence.emplace();
    fence.object = in.number<object_generation>(generation_limit);
    fence.authority = in.number<authority_generation>(generation_limit);
    fence.exact = exact;
    if (followed && (fence.hops = static_cast<std::uint8_t>(in.byte())) == 0)
      in.fail("a followed message without hops");
  }
  if ((followed || exact) && !h.fence)
    in.fail("a message to an owner that it does not name");
  h.instance_intent = (first & header_intent) != 0;
  if ((first & header_activation) != 0) {
    auto& activation = h.activation.emplace();
    activation.stable_type = in.id();
    activation.mesh = in.id();
    activation.descriptor = in.number<descriptor_revision>(generation_limit);
    activation.lifecycle = {in.fixed<std::uint64_t>()};
    activation.refused = in.text();
    if (!refused_nodes::well_formed(activation.refused))
      in.fail("malformed list of nodes");
  }
  if ((first & header_reply_node) != 0)
    h.reply_node = in.id();
  return h;
}

error decode_failure(view_reader& in, failure_cause& cause) {
  const auto kind = static_cast<error_kind>(in.code(static_cast<std::uint8_t>(error_kind::invalid_configuration)));
  const auto number = in.varint();
  if (number > 0xffff)
    in.fail("cause out of range");
  cause = static_cast<failure_cause>(number);
  std::string text{in.utf8()};
  if (in.code(1) == 0)
    return {kind, std::move(text)};
  error::platform_code code;
  code.category = in.utf8();
  code.value = static_cast<std::int32_t>(in.fixed<std::uint32_t>());
  return {kind, std::move(text), std::move(code)};
}

} // namespace

frame frame_reader::next(std::uint64_t frame_limit) {
  view_reader in{rest_, batch_place};
  const auto length = in.varint();
  if (length == 0)
    in.fail("frame without type");
  if (length > frame_limit)
    in.fail("frame exceeds the limit");
  const auto header = rest_.size() - in.left();
  const auto body = in.view(static_cast<std::size_t>(length));
  rest_ = rest_.subspan(header + body.size());
  return {static_cast<frame_type>(body[0]), body.subspan(1), header + body.size()};
}

hello_frame decode_hello(byte_view body) {
  view_reader in{body, hello_place};
  hello_frame what;
  const auto protocol = in.varint();
  if (protocol > 0xffff'ffff)
    in.fail("protocol version out of range");
  what.protocol = static_cast<std::uint32_t>(protocol);
  if (what.protocol == link_protocol_version)
    what.identity = decode_identity(in);
  return what;
}

hello_answer_frame decode_hello_answer(byte_view body) {
  view_reader in{body, answer_place};
  hello_answer_frame what;
  what.admitted = in.code(1) == 1;
  what.pressure.sequence = in.varint();
  what.pressure.paused = in.code(1) == 1;
  what.reason = in.utf8();
  in.end();
  return what;
}

message_frame decode_message(byte_view body) {
  view_reader in{body, message_place};
  message_frame what;
  const auto flags = in.code(message_request | message_deadline | message_metadata_flag);
  what.request = (flags & message_request) != 0;
  if (what.request && (what.reply_route = in.fixed<std::uint64_t>()) == 0)
    in.fail("reply route is zero");
  if ((flags & message_deadline) != 0)
    what.remaining_ms = in.fixed<std::uint32_t>();
  what.header = decode_header(in);
  what.body.content_type = in.content_type();
  what.body.packet_name = in.text();
  if ((flags & message_metadata_flag) != 0)
    what.body.metadata = in.view(in.count(1));
  what.payload = in.rest();
  return what;
}

reply_frame decode_reply_frame(byte_view body) {
  view_reader in{body, reply_place};
  reply_frame what;
  what.reply_route = in.fixed<std::uint64_t>();
  what.kind = static_cast<reply_kind>(in.code(static_cast<std::uint8_t>(reply_kind::cancelled)));
  if (what.kind == reply_kind::packet) {
    what.content_type = in.content_type();
    what.packet_name = in.text();
    what.payload = in.rest();
  } else if (what.kind == reply_kind::error) {
    what.failure = decode_failure(in, what.cause);
  }
  in.end();
  return what;
}

control_frame decode_control(byte_view body) {
  view_reader in{body, link_place};
  control_frame what;
  what.command = in.fixed<std::uint16_t>();
  what.payload = in.rest();
  return what;
}

std::uint64_t decode_probe(byte_view body) {
  view_reader in{body, link_place};
  const auto id = in.fixed<std::uint64_t>();
  in.end();
  if (id == 0)
    in.fail("probe id is zero");
  return id;
}

credit_frame decode_credit(byte_view body) {
  view_reader in{body, link_place};
  credit_frame what;
  what.data = in.varint();
  what.replies = in.varint();
  in.end();
  return what;
}

pressure_frame decode_pressure(byte_view body) {
  view_reader in{body, link_place};
  pressure_frame what;
  what.sequence = in.varint();
  what.paused = in.code(1) == 1;
  in.end();
  return what;
}

std::string decode_goodbye(byte_view body) {
  view_reader in{body, link_place};
  std::string reason{in.utf8()};
  in.end();
  return reason;
}

} // namespace zlink::detail
