#include "zlink/messaging/wire.hpp"

#include "zlink/codec.hpp"
#include "zlink/messaging/wire_format.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace zlink::detail {

namespace {

constexpr std::size_t longest_varint = 10;
constexpr std::size_t reason_limit = 1024;
constexpr std::size_t error_text_limit = 64 * 1024;

constexpr std::size_t bound(std::string_view text) noexcept { return longest_varint + text.size(); }

/// Writes into room that the caller has made: every `put` is covered by a bound computed before.
class span_writer {
public:
  explicit span_writer(std::byte* at) noexcept : at_(at) {}
  std::byte* at() const noexcept { return at_; }

  void byte(std::uint8_t b) noexcept { *at_++ = std::byte{b}; }
  void varint(std::uint64_t v) noexcept {
    for (; v >= 0x80; v >>= 7)
      *at_++ = static_cast<std::byte>(v | 0x80);
    *at_++ = static_cast<std::byte>(v);
  }
  template <class T>
  void fixed(T v) noexcept {
    if constexpr (std::endian::native == std::endian::little) {
      std::memcpy(at_, &v, sizeof v);
      at_ += sizeof v;
    } else {
      for (std::size_t i = 0; i < sizeof v; ++i)
        *at_++ = static_cast<std::byte>(v >> (8 * i));
    }
  }
  void raw(const void* from, std::size_t size) noexcept {
    if (size != 0)
      std::memcpy(at_, from, size);
    at_ += size;
  }
  void text(std::string_view t) noexcept {
    varint(t.size());
    raw(t.data(), t.size());
  }
  void content_type(std::string_view t) noexcept {
    if (t == binary_content_type) {
      byte(content_binary);
    } else if (t == json_content_type) {
      byte(content_json);
    } else {
      byte(content_text);
      text(t);
    }
  }

private:
  std::byte* at_;
};

std::size_t varint_width(std::uint64_t v) noexcept {
  std::size_t width = 1;
  for (; v >= 0x80; v >>= 7)
    ++width;
  return width;
}

/// Appends a frame of `type` whose body takes at most `most` bytes as written by `put`, and `tail` behind it.
template <class Put>
void append_frame(bytes& to, frame_type type, std::size_t most, Put put, byte_view tail = {}) {
  const auto start = to.size();
  to.resize(start + longest_varint + 1 + most);
  auto* body = to.data() + start + longest_varint;
  span_writer out{body};
  out.byte(static_cast<std::uint8_t>(type));
  put(out);
  const auto size = static_cast<std::size_t>(out.at() - body);
  assert(size <= most + 1);
  const auto length = size + tail.size();
  const auto width = varint_width(length);
  span_writer{to.data() + start}.varint(length);
  std::memmove(to.data() + start + width, body, size);
  to.resize(start + width + size);
  to.insert(to.end(), tail.begin(), tail.end());
}

std::size_t header_bound(const message_header& h) noexcept {
  std::size_t size =
    1 + bound(h.target_id) + bound(h.topic) + 16 + bound(h.flow) + 2 * longest_varint + 1 + bound(h.reply_node);
  if (h.activation)
    size += bound(h.activation->stable_type) + bound(h.activation->mesh) + longest_varint + 8 + bound(h.activation->refused);
  return size;
}

void put_header(span_writer& out, const message_header& h) noexcept {
  const bool followed = h.fence && h.fence->hops != 0;
  const bool actor = h.target == target_kind::actor;
  std::uint8_t first = followed                              ? (actor ? header_followed_actor : header_followed_spot)
                       : actor && h.fence && h.fence->exact ? header_bound_actor
                                                             : static_cast<std::uint8_t>(h.target);
  first |= h.flow.empty() ? 0 : header_flow;
  first |= h.fence ? header_fence : 0;
  first |= h.instance_intent ? header_intent : 0;
  first |= h.activation ? header_activation : 0;
  first |= h.reply_node.empty() ? 0 : header_reply_node;
  out.byte(first);
  out.text(h.target_id);
  if (h.target == target_kind::publish)
    out.text(h.topic);
  out.fixed(h.operation.high);
  out.fixed(h.operation.low);
  if (!h.flow.empty())
    out.text(h.flow);
  if (h.fence) {
    out.varint(h.fence->object.value);
    out.varint(h.fence->authority.value);
    if (followed)
      out.byte(h.fence->hops);
  }
  if (h.activation) {
    out.text(h.activation->stable_type);
    out.text(h.activation->mesh);
    out.varint(h.activation->descriptor.value);
    out.fixed(h.activation->lifecycle.value);
    out.text(h.activation->refused);
  }
  if (!h.reply_node.empty())
    out.text(h.reply_node);
}

/// Begins a frame in `buffer`, behind a gap for its length.
template <class Put>
void begin_frame(bytes& buffer, frame_type type, std::size_t most, Put put) {
  buffer.resize(longest_varint + 1 + most);
  span_writer out{buffer.data() + longest_varint};
  out.byte(static_cast<std::uint8_t>(type));
  put(out);
  const auto used = static_cast<std::size_t>(out.at() - buffer.data());
  assert(used <= buffer.size());
  buffer.resize(used);
}

template <class Header>
void begin_message_frame(bytes& buffer, std::size_t header_most, Header header, const message_body& body, bool request,
                         bool deadline) {
  const auto most = 1 + 8 + 4 + header_most + 1 + bound(body.content_type) + bound(body.packet_name) + longest_varint
                    + body.metadata.size();
  begin_frame(buffer, frame_type::message, most, [&](span_writer& out) {
    std::uint8_t flags = request ? message_request : 0;
    flags |= deadline ? message_deadline : 0;
    flags |= body.metadata.empty() ? 0 : message_metadata_flag;
    out.byte(flags);
    if (request)
      out.fixed(std::uint64_t{0});
    if (deadline)
      out.fixed(std::uint32_t{0});
    header(out);
    out.content_type(body.content_type);
    out.text(body.packet_name);
    if (!body.metadata.empty()) {
      out.varint(body.metadata.size());
      out.raw(body.metadata.data(), body.metadata.size());
    }
  });
}

std::string_view cut(std::string_view text, std::size_t limit) noexcept {
  if (text.size() <= limit)
    return text;
  while (limit != 0 && (static_cast<unsigned char>(text[limit]) & 0xc0) == 0x80)
    --limit; // not inside a character
  return text.substr(0, limit);
}

/// Texts of errors come from anywhere; what is no UTF-8 would make the peer drop the frame, and the error with it.
std::string readable(std::string_view text, std::size_t limit) {
  std::string made{cut(text, limit)};
  if (!is_utf8(made))
    std::ranges::replace_if(made, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
  return made;
}

} // namespace

// -- messages and replies ---------------------------------------------------------------------------------------------

std::span<std::byte> frame_buffer::finish() {
  const auto length = buffer_.size() - longest_varint;
  const auto start = longest_varint - varint_width(length);
  span_writer{buffer_.data() + start}.varint(length);
  return std::span{buffer_}.subspan(start);
}

void frame_buffer::trim() {
  constexpr std::size_t usual = 1 << 20;
  if (buffer_.capacity() > usual)
    bytes{}.swap(buffer_);
}

void begin_message(frame_buffer& to, const message_header& header, const message_body& body, bool request,
                   bool deadline) {
  begin_message_frame(
    to.buffer_, header_bound(header), [&](span_writer& out) { put_header(out, header); }, body, request, deadline);
}

void begin_message(frame_buffer& to, byte_view encoded_header, const message_body& body, bool request, bool deadline) {
  begin_message_frame(
    to.buffer_, encoded_header.size(),
    [&](span_writer& out) { out.raw(encoded_header.data(), encoded_header.size()); }, body, request, deadline);
}

bytes encode_message_header(const message_header& what) {
  bytes to(header_bound(what));
  span_writer out{to.data()};
  put_header(out, what);
  to.resize(static_cast<std::size_t>(out.at() - to.data()));
  return to;
}

void set_message_times(std::span<std::byte> frame, std::uint64_t reply_route, std::uint32_t remaining_ms) noexcept {
  auto* at = frame.data();
  while (*at >= std::byte{0x80}) // the length
    ++at;
  at += 2; // its last byte, the type
  const auto flags = static_cast<std::uint8_t>(*at++);
  span_writer out{at};
  if ((flags & message_request) != 0)
    out.fixed(reply_route);
  if ((flags & message_deadline) != 0)
    out.fixed(remaining_ms);
}

void begin_reply(frame_buffer& to, std::uint64_t reply_route, std::string_view packet_name,
                 std::string_view content_type) {
  begin_frame(to.buffer_, frame_type::reply, 8 + 2 + bound(content_type) + bound(packet_name), [&](span_writer& out) {
    out.fixed(reply_route);
    out.byte(static_cast<std::uint8_t>(reply_kind::packet));
    out.content_type(content_type);
    out.text(packet_name);
  });
}

void append_reply(bytes& to, const reply_frame& what) {
  assert(what.kind != reply_kind::packet && what.failure.has_value() == (what.kind == reply_kind::error));
  const auto text = what.failure ? readable(what.failure->message(), error_text_limit) : std::string{};
  const auto* code = what.failure && what.failure->code() ? &*what.failure->code() : nullptr;
  const auto category = code != nullptr ? readable(code->category, error_text_limit) : std::string{};
  append_frame(to, frame_type::reply, 8 + 3 + bound(text) + bound(category) + 2 * longest_varint,
               [&](span_writer& out) {
                 out.fixed(what.reply_route);
                 out.byte(static_cast<std::uint8_t>(what.kind));
                 if (!what.failure)
                   return;
                 out.byte(static_cast<std::uint8_t>(what.failure->kind()));
                 out.varint(static_cast<std::uint64_t>(what.cause));
                 out.text(text);
                 out.byte(code != nullptr ? 1 : 0);
                 if (code != nullptr) {
                   out.text(category);
                   out.fixed(static_cast<std::uint32_t>(code->value));
                 }
               });
}

// -- the link's own ---------------------------------------------------------------------------------------------------

void append_hello(bytes& to, const link_identity& what) {
  std::size_t most = 64 + bound(what.mesh) + bound(what.rid) + bound(what.security_identity) + bound(what.entry_spot_id)
                     + 4 * longest_varint;
  for (const auto& channel : what.channels)
    most += bound(channel.name) + 1 + longest_varint;
  append_frame(to, frame_type::hello, most, [&](span_writer& out) {
    out.varint(link_protocol_version); // first for ever, so that any version can tell the other
    out.text(what.mesh);
    out.text(what.rid);
    out.fixed(what.lifecycle.value);
    out.varint(what.revision.value);
    out.byte(static_cast<std::uint8_t>(what.role));
    out.varint(what.channels.size());
    for (const auto& channel : what.channels) {
      out.text(channel.name);
      out.byte(channel.server ? 1 : 0);
      out.varint(channel.weight);
    }
    out.varint(what.frame_limit);
    out.varint(what.window_bytes);
    out.text(what.security_identity);
    out.text(what.entry_spot_id);
  });
}

void append_hello_answer(bytes& to, const hello_answer_frame& what) {
  const auto reason = readable(what.reason, reason_limit);
  append_frame(to, frame_type::hello_answer, 2 + longest_varint + bound(reason), [&](span_writer& out) {
    out.byte(what.admitted ? 1 : 0);
    out.varint(what.pressure.sequence);
    out.byte(what.pressure.paused ? 1 : 0);
    out.text(reason);
  });
}

void append_control(bytes& to, std::uint16_t command, byte_view payload) {
  append_frame(to, frame_type::control, 2, [&](span_writer& out) { out.fixed(command); }, payload);
}

void append_probe(bytes& to, std::uint64_t id, bool answer) {
  append_frame(to, answer ? frame_type::probe_answer : frame_type::probe, 8, [&](span_writer& out) { out.fixed(id); });
}

void append_credit(bytes& to, const credit_frame& what) {
  append_frame(to, frame_type::credit, 2 * longest_varint, [&](span_writer& out) {
    out.varint(what.data);
    out.varint(what.replies);
  });
}

void append_credit_wanted(bytes& to) {
  append_frame(to, frame_type::credit_wanted, 0, [](span_writer&) {});
}

void append_pressure(bytes& to, const pressure_frame& what) {
  append_frame(to, frame_type::pressure, longest_varint + 1, [&](span_writer& out) {
    out.varint(what.sequence);
    out.byte(what.paused ? 1 : 0);
  });
}

void append_goodbye(bytes& to, std::string_view reason) {
  const auto text = readable(reason, reason_limit);
  append_frame(to, frame_type::goodbye, bound(text), [&](span_writer& out) { out.text(text); });
}

} // namespace zlink::detail
