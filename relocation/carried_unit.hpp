// What a move takes along: state, work that has not started, timers (L-65, L-75).
#pragma once

#include "relocation/unit.hpp"
#include "zlink/messaging/wire.hpp"
#include "zlink/objects/object_timers.hpp"
#include "zlink/packet.hpp"
#include "zlink/session/session_binding.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zlink::detail {

class host_runtime;
class mesh_links;
class node_runtime;
class reply_table;

struct carried_timer {
  std::string name;
  std::string handler; ///< `name_of` its tick handler
  std::int64_t period_ms = 0;
  std::uint8_t overrun = 0;
  std::int32_t max_catch_up_ticks = 0;
  bool stop_on_exception = false;
  std::uint64_t generation = 0;
  std::uint64_t delivery_index = 0;
  std::uint64_t scheduled_index = 0;
  std::uint64_t earliest_index = 0;
  std::uint64_t catch_up_to = 0;
  std::int64_t next_due_ns = 0;
  std::int64_t age_ns = 0;
};

/// A message, or the pending tick of a timer: in the order in which they wait.
struct carried_work {
  bool is_tick = false;
  std::uint32_t timer = 0;       ///< of a tick: its place in the list
  std::vector<std::byte> frame;  ///< of a message
};

/// In the order of `restore_request::parts`.
struct carried_part {
  std::string type; ///< as the row says, too
  bool has_state = false;
  std::vector<std::byte> state;
  std::vector<carried_timer> timers;
  std::vector<carried_work> work;
  std::optional<session_binding> session; ///< of an Actor: its owner has sealed it for this move
};

/// `join_ticket`.
struct carried_join {
  std::string spot_id;
  std::uint64_t spot_generation = 0;
  std::string operation_id;
  std::optional<std::vector<std::byte>> reply;
};

struct carried_unit {
  std::vector<carried_part> parts;
  std::optional<carried_join> join;
  bool owes_completion = false; ///< the Spot has signalled readiness, and waits to hear of the end (L-44)
};

ZLINK_PACKET(carried_timer, "zlink.move.timer", name, handler, period_ms, overrun, max_catch_up_ticks, stop_on_exception,
             generation, delivery_index, scheduled_index, earliest_index, catch_up_to, next_due_ns, age_ns)
ZLINK_PACKET(carried_work, "zlink.move.work", is_tick, timer, frame)
ZLINK_PACKET(carried_part, "zlink.move.content", type, has_state, state, timers, work, session)
ZLINK_PACKET(carried_join, "zlink.move.join", spot_id, spot_generation, operation_id, reply)
ZLINK_PACKET(carried_unit, "zlink.move.unit", parts, join, owes_completion)

/// Nothing in it is what no source of such a unit writes: a peer may be newer, or worse. Throws `decode_error` that says what.
void require_valid(const carried_unit& unit, unit_kind kind);

carried_timer carried(const timer_snapshot& timer);
/// `on_the_way`: how long it has been under way, as far as this host knows.
timer_snapshot snapshot_of(const carried_timer& timer, steady_duration on_the_way);

/// Where the reply to a request goes, in words that every node understands.
struct reply_path {
  std::string node; ///< RID of who waits; empty: nobody
  std::uint64_t id = 0;
};

/// A message record that waits at the source, and where its reply route is now.
struct kept_record {
  record* r = nullptr;
  std::uint32_t part = 0;
  std::uint64_t entry = 0; ///< in the reply table of the node: the route of a request of this host (L-66)
};

/// A request of this host gets an entry in `replies` under `move`, which stands for the link that it goes by.
reply_path path_of(kept_record& kept, const node_runtime& node, reply_table& replies, std::uint64_t move);
/// Back into the record: it runs here.
void take_route_back(kept_record& kept, reply_table& replies);
/// The record has done its duty here. Whoever waits is answered by another node.
void let_go(kept_record& kept) noexcept;
/// Nobody serves it any more: ended with the reason if it is a request, else counted.
void end_record(kept_record& kept, host_runtime& host, reply_table& replies, const error& why) noexcept;

/// The frame of a message (wire.hpp). `past`: of whose ownership, where the target may have to look for the object itself. Throws
/// `encode_error` for what cannot travel.
std::vector<std::byte> frame_of(kept_record& kept, std::string_view address, const reply_path& reply, host_runtime& host,
                                std::optional<message_fence> past = std::nullopt);

/// A message that waits at the target, and where its reply goes once the target is the owner.
struct staged_record {
  record* r = nullptr;
  reply_path reply;
};
/// Throws `decode_error`.
staged_record staged(byte_view frame, host_runtime& host, steady_time arrived);
/// Runs here: its reply finds its way.
record* with_route(staged_record staged, mesh_links& links);

} // namespace zlink::detail
