// The frames that nodes exchange, protocol version 1 (D-15). A batch is any number of frames; a frame is a varint
// length, one byte of type, and a body. Every length is checked against the bytes at hand before anything is allocated.
#pragma once

#include "zlink/codec/binary.hpp"
#include "zlink/error.hpp"
#include "zlink/identity.hpp"
#include "zlink/packet_type.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zlink::detail {

inline constexpr std::uint32_t link_protocol_version = 1;

/// Values on the wire: never renumbered.
enum class frame_type : std::uint8_t {
  hello = 1,
  hello_answer = 2,
  message = 3,
  reply = 4,
  control = 5,
  probe = 6,
  probe_answer = 7,
  credit = 8,
  credit_wanted = 9,
  pressure = 10,
  goodbye = 11,
};

/// A frame within a batch. Views end with the batch.
struct frame {
  frame_type type; ///< may be a value this version does not know: skip it
  byte_view body;
  std::size_t size; ///< with length and type: what credit counts
};

/// Cuts frames off a batch.
class frame_reader {
public:
  explicit frame_reader(byte_view batch) noexcept : rest_(batch) {}
  bool at_end() const noexcept { return rest_.empty(); }
  byte_view rest() const noexcept { return rest_; }
  /// Throws `decode_error` if the framing is broken or the frame exceeds `frame_limit`; nothing after it can be
  /// trusted.
  frame next(std::uint64_t frame_limit);

private:
  byte_view rest_;
};

// -- handshake --------------------------------------------------------------------------------------------------------

enum class object_role : std::uint8_t { none = 0, client = 1, server = 2 };

struct link_channel {
  std::string name;
  bool server = false;        ///< a target with handlers and weight (M-92)
  std::uint32_t weight = 0;   ///< 0..10000, of a server
  friend bool operator==(const link_channel&, const link_channel&) = default;
};

/// What a node says of itself before anything else (S-58).
struct link_identity {
  std::string mesh;
  std::string rid;
  lifecycle_generation lifecycle;
  descriptor_revision revision;
  object_role role = object_role::none;
  std::vector<link_channel> channels;
  std::uint64_t frame_limit = 0;       ///< largest frame it takes, in bytes
  std::uint64_t window_bytes = 0;      ///< largest sum of unconsumed data it will send
  std::string security_identity;       ///< its trust profile; empty: none
  std::string entry_spot_id;           ///< empty: no Entry Spot
  friend bool operator==(const link_identity&, const link_identity&) = default;
};

struct hello_frame {
  std::uint32_t protocol = link_protocol_version;
  link_identity identity; ///< empty where `protocol` is not ours: its form is unknown
};

/// Absolute state of a node's host permits; a smaller sequence number is stale.
struct pressure_frame {
  std::uint64_t sequence = 0;
  bool paused = false;
};

struct hello_answer_frame {
  bool admitted = false;
  pressure_frame pressure; ///< so that a new link knows it before use
  std::string reason;      ///< of a refusal
};

// -- messages ---------------------------------------------------------------------------------------------------------

/// Values on the wire.
enum class target_kind : std::uint8_t { spot = 0, actor = 1, node = 2, channel = 3, publish = 4 };

/// What the sender believed about ownership (M-63).
struct message_fence {
  object_generation object;
  authority_generation authority;
  std::uint8_t hops = 0; ///< former owners that have sent it on: then `authority` is that of the last one (L-182)
  bool exact = false;    ///< to an Actor: a later incarnation is another one (N-83)
  friend bool operator==(const message_fence&, const message_fence&) = default;
};

/// Where the sender wants a missing Instance Spot to be activated (M-58, M-59).
struct message_activation {
  std::string_view stable_type;
  std::string_view mesh;
  descriptor_revision descriptor; ///< of the chosen node, as the sender knew it
  lifecycle_generation lifecycle; ///< and the run it belongs to
  std::string_view refused = {};  ///< `refused_nodes` (C-41)
  friend bool operator==(const message_activation&, const message_activation&) = default;
};

/// Everything about a message but its packet, metadata and deadline. Views belong to whoever made it: on receipt they
/// end with the call.
struct message_header {
  target_kind target = target_kind::spot;
  std::string_view target_id; ///< Spot or Actor id, RID of the node, or ChannelName: 1..255 bytes of UTF-8
  std::string_view topic;     ///< publish only
  operation_id operation;     ///< never zero (M-132)
  std::string_view flow;      ///< flow id and origin as one text; empty: none
  std::optional<message_fence> fence;
  bool instance_intent = false; ///< this call allows activation (M-58)
  std::optional<message_activation> activation;
  /// RID of the node that waits for the reply where that is not the sender of the frame: a followed request (M-83).
  std::string_view reply_node;
  friend bool operator==(const message_header&, const message_header&) = default;
};

/// The rest of a message.
struct message_body {
  std::string_view packet_name;
  std::string_view content_type;
  byte_view metadata; ///< as message_metadata::encoded(); not checked here
};

/// A message as it lies in a frame.
struct message_frame {
  message_header header;
  bool request = false;
  std::uint64_t reply_route = 0;             ///< requests only, then not zero
  std::optional<std::uint32_t> remaining_ms; ///< of the deadline; a duration, since clocks differ
  message_body body;
  byte_view payload;
};

enum class reply_kind : std::uint8_t { packet = 0, empty = 1, error = 2, cancelled = 3 };

/// Why a reply is an error, for logs of the receiving node; the kind is what callers see (O-7).
enum class failure_cause : std::uint16_t { unspecified = 0, reply_not_encodable = 1, metadata_malformed = 2 };

struct reply_frame {
  std::uint64_t reply_route = 0;
  reply_kind kind = reply_kind::empty;
  std::string_view packet_name{}; ///< packet only
  std::string_view content_type{};
  byte_view payload{};
  std::optional<error> failure{}; ///< error only
  failure_cause cause = failure_cause::unspecified;
};

struct control_frame {
  std::uint16_t command = 0;
  byte_view payload;
};

/// Bytes the receiver has consumed since the link began: absolute, so a repeated frame changes nothing.
struct credit_frame {
  std::uint64_t data = 0;
  std::uint64_t replies = 0; ///< and control
  friend bool operator==(const credit_frame&, const credit_frame&) = default;
};

// -- encoding ---------------------------------------------------------------------------------------------------------

/// A frame whose payload is encoded in place behind what `begin_…` wrote, so that it is written once (M-47). It is
/// reusable: the buffer keeps its memory.
class frame_buffer {
public:
  /// Append the payload here, after `begin_…`.
  bytes& payload() noexcept { return buffer_; }
  /// The whole frame, valid until the next `begin_…`. `set_…` below may change it.
  std::span<std::byte> finish();
  /// Gives memory of an unusually large frame back.
  void trim();

private:
  friend void begin_message(frame_buffer&, const message_header&, const message_body&, bool, bool);
  friend void begin_message(frame_buffer&, byte_view, const message_body&, bool, bool);
  friend void begin_reply(frame_buffer&, std::uint64_t, std::string_view, std::string_view);

  bytes buffer_;
};

/// `request` reserves place for the reply route, `deadline` for the remaining time: set them with `set_message_times`.
void begin_message(frame_buffer& to, const message_header& header, const message_body& body, bool request,
                   bool deadline);
/// The same with a header that was encoded before.
void begin_message(frame_buffer& to, byte_view encoded_header, const message_body& body, bool request, bool deadline);
bytes encode_message_header(const message_header& what);
/// Fills in what is known only at admission; each only if the frame has place for it.
void set_message_times(std::span<std::byte> frame, std::uint64_t reply_route, std::uint32_t remaining_ms) noexcept;
/// A reply that is a packet.
void begin_reply(frame_buffer& to, std::uint64_t reply_route, std::string_view packet_name,
                 std::string_view content_type);

// These append one frame.

void append_hello(bytes& to, const link_identity& what);
/// The reason is cut at 1 KiB.
void append_hello_answer(bytes& to, const hello_answer_frame& what);
/// Not for packets. Texts of an error are cut at 64 KiB.
void append_reply(bytes& to, const reply_frame& what);
void append_control(bytes& to, std::uint16_t command, byte_view payload);
void append_probe(bytes& to, std::uint64_t id, bool answer);
void append_credit(bytes& to, const credit_frame& what);
void append_credit_wanted(bytes& to);
void append_pressure(bytes& to, const pressure_frame& what);
/// The reason is cut at 1 KiB.
void append_goodbye(bytes& to, std::string_view reason);

// -- decoding: throws `decode_error` for anything that encoding does not produce --------------------------------------

hello_frame decode_hello(byte_view body);
hello_answer_frame decode_hello_answer(byte_view body);
message_frame decode_message(byte_view body);
reply_frame decode_reply_frame(byte_view body);
control_frame decode_control(byte_view body);
std::uint64_t decode_probe(byte_view body);
credit_frame decode_credit(byte_view body);
pressure_frame decode_pressure(byte_view body);
std::string decode_goodbye(byte_view body);

} // namespace zlink::detail
