// The layer's own questions to another node and their answers, in the binary encoding of packets.
#pragma once

#include "zlink/error.hpp"
#include "zlink/identity.hpp"
#include "zlink/packet.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zlink::detail {

/// Frame of every question and answer: which operation it belongs to, and a packet below.
struct control_envelope {
  std::uint64_t operation_high = 0;
  std::uint64_t operation_low = 0;
  std::vector<std::byte> body;
};

/// Who asks, and which run of which node is asked (C-69, C-118).
struct question_route {
  std::string source_rid;
  std::uint64_t source_lifecycle = 0;
  std::string target_rid;
  std::uint64_t target_lifecycle = 0;
  std::int64_t left_ms = 0; ///< of the deadline: clocks differ
};

/// `create_spot`: the fence of the reservation (C-69). The request's bytes stay in the store.
struct create_question {
  std::uint8_t kind = 2; ///< `placement::object_kind`: a User Spot or an Actor
  std::string id;
  std::string type;
  std::uint64_t reservation_high = 0;
  std::uint64_t reservation_low = 0;
  std::uint64_t generation = 0;
  std::uint64_t authority = 0;
  std::string version;
  question_route route;
};

/// `close_spot`: the row as whoever asks has read it.
struct close_question {
  std::string id;
  std::uint64_t generation = 0;
  std::uint64_t authority = 0;
  std::string version;
  question_route route;
};

/// `ask_join`: the Actor as its node has it. Its type is what its row says (J-97).
struct join_question {
  std::string actor_id;
  std::uint64_t generation = 0;
  std::uint64_t authority = 0;
  std::string member_of;              ///< the Spot where it is
  std::uint64_t member_generation = 0; ///< none of an Entry Spot
  std::string spot_id;
  std::string operation_id;
  std::vector<std::byte> request; ///< as requests are stored
  question_route route;
};

/// `stale_route`: whose route, and the fence that was sent.
struct stale_route {
  std::string id;
  std::uint64_t object = 0;
  std::uint64_t authority = 0;
  bool actor = false; ///< the id is an Actor's
};

/// `channel_state`: what a node says of the channels it serves, anew after each change (M-101, M-102).
struct channel_share {
  std::string name;
  std::uint32_t weight = 0; ///< 0..10000
};
struct channel_state {
  std::uint64_t revision = 0; ///< larger after each change
  bool draining = false;      ///< takes no new work
  std::vector<channel_share> channels;
};

/// To both questions; an error if `kind` is there.
struct control_answer {
  std::optional<std::uint8_t> kind;
  std::string text;
  bool closed = false;        ///< close
  std::uint8_t state = 0;     ///< create: spot_create_state; join: 1 let in, 0 declined; seal: seal_answer
  std::uint64_t generation = 0;
  std::string mesh_name;
  std::string node_rid;
  std::optional<std::vector<std::byte>> reply; ///< create and join: `compose_request` form
};

/// A peer may be newer, and say a word that this program does not have.
inline error_kind known_kind(std::uint8_t told, error_kind otherwise) noexcept {
  return told <= static_cast<std::uint8_t>(error_kind::invalid_configuration) ? static_cast<error_kind>(told) : otherwise;
}
inline control_answer failed_answer(const error& why) {
  control_answer answer;
  answer.kind = static_cast<std::uint8_t>(why.kind());
  answer.text = why.message();
  return answer;
}
inline std::optional<error> failure_in(const control_answer& answer) {
  if (!answer.kind)
    return std::nullopt;
  return error{known_kind(*answer.kind, error_kind::protocol_error), answer.text};
}

ZLINK_PACKET(control_envelope, "zlink.control", operation_high, operation_low, body)
ZLINK_PACKET(question_route, "zlink.control.route", source_rid, source_lifecycle, target_rid, target_lifecycle, left_ms)
ZLINK_PACKET(create_question, "zlink.control.create", kind, id, type, reservation_high, reservation_low, generation, authority,
             version, route)
ZLINK_PACKET(close_question, "zlink.control.close", id, generation, authority, version, route)
ZLINK_PACKET(join_question, "zlink.control.join", actor_id, generation, authority, member_of, member_generation, spot_id, operation_id, request, route)
ZLINK_PACKET(stale_route, "zlink.control.stale_route", id, object, authority, actor)
ZLINK_PACKET(channel_share, "zlink.control.channel", name, weight)
ZLINK_PACKET(channel_state, "zlink.control.channels", revision, draining, channels)
ZLINK_PACKET(control_answer, "zlink.control.answer", kind, text, closed, state, generation, mesh_name, node_rid, reply)

} // namespace zlink::detail
