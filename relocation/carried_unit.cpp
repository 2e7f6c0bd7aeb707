#include "relocation/carried_unit.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/body_codec.hpp"
#include "zlink/messaging/inbound_record.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/messaging/mesh_links.hpp"
#include "zlink/messaging/remaining_time.hpp"

#include <stdexcept>
#include <vector>

namespace zlink::detail {

namespace {

constexpr std::uint64_t frame_limit_bytes = 1ULL << 40; // the lane's own records have been bounded before

message_header header_of(const record& r, std::string_view address, const reply_path& reply, host_runtime& host,
                         std::optional<message_fence> past) {
  message_header header;
  if (r.extra && !r.extra->topic.empty()) {
    header.target = target_kind::publish;
    header.target_id = r.extra->channel;
    header.topic = r.extra->topic;
  } else {
    header.target = is_actor_address(address) ? target_kind::actor : target_kind::spot;
    header.target_id = id_in(address);
    header.fence = past;
  }
  header.operation = r.from_link ? r.operation : host.random->next_id();
  header.reply_node = reply.node;
  return header;
}

/// Half of what the clock can count: so sums of two such times are times, too.
constexpr std::int64_t longest_carried_ns = steady_duration::max().count() / 2;

void require_valid(const carried_timer& timer) {
  try {
    require_valid_timer(timer.name, std::chrono::milliseconds{timer.period_ms}, snapshot_of(timer, {}).options);
  } catch (const std::invalid_argument& what) {
    throw decode_error{what.what()};
  }
  const auto is_time = [](std::int64_t ns) { return ns >= 0 && ns <= longest_carried_ns; };
  if (timer.overrun > static_cast<std::uint8_t>(timer_overrun::delay_next_tick) || timer.earliest_index == 0 || !is_time(timer.age_ns)
      || timer.next_due_ns < 0)
    throw decode_error{"timer \"" + timer.name + "\" has an impossible progress"};
}

void require_valid(const carried_part& part) {
  for (const auto& timer : part.timers)
    require_valid(timer);
  std::vector<bool> pending(part.timers.size()); // of a timer one tick waits at most
  for (const auto& work : part.work) {
    if (!work.is_tick)
      continue;
    if (work.timer >= pending.size() || pending[work.timer])
      throw decode_error{"a tick that belongs to no timer, or to one whose tick waits already"};
    pending[work.timer] = true;
  }
}

} // namespace

void require_valid(const carried_unit& unit, unit_kind kind) {
  if (unit.join.has_value() != (kind == unit_kind::joining_actor))
    throw decode_error{"a Join where none belongs, or none where one does"};
  if (unit.owes_completion && kind != unit_kind::spot_wide)
    throw decode_error{"readiness of a unit that cannot signal it"};
  for (const auto& part : unit.parts) {
    require_valid(part);
    if (part.session && kind != unit_kind::spot_wide && !is_actor_unit(kind))
      throw decode_error{"a session of a Spot"};
  }
}

// -- timers -----------------------------------------------------------------------------------------------------------

carried_timer carried(const timer_snapshot& timer) {
  carried_timer to;
  to.name = timer.name;
  const auto* handler = name_of(timer.invoke);
  to.handler = handler == nullptr ? "" : handler;
  to.period_ms = timer.period.count();
  to.overrun = static_cast<std::uint8_t>(timer.options.overrun);
  to.max_catch_up_ticks = timer.options.max_catch_up_ticks;
  to.stop_on_exception = timer.options.stop_on_unhandled_exception;
  to.generation = timer.generation;
  to.delivery_index = timer.progress.delivery_index;
  to.scheduled_index = timer.progress.scheduled_index;
  to.earliest_index = timer.progress.earliest_index;
  to.catch_up_to = timer.progress.catch_up_to;
  to.next_due_ns = timer.progress.next_due.count();
  to.age_ns = timer.progress.age.count();
  return to;
}

timer_snapshot snapshot_of(const carried_timer& timer, steady_duration on_the_way) {
  timer_snapshot to;
  to.name = timer.name;
  to.period = std::chrono::milliseconds{timer.period_ms};
  to.options.overrun = static_cast<timer_overrun>(timer.overrun);
  to.options.max_catch_up_ticks = timer.max_catch_up_ticks;
  to.options.stop_on_unhandled_exception = timer.stop_on_exception;
  to.generation = timer.generation;
  to.progress.delivery_index = timer.delivery_index;
  to.progress.scheduled_index = timer.scheduled_index;
  to.progress.earliest_index = timer.earliest_index;
  to.progress.catch_up_to = timer.catch_up_to;
  to.progress.next_due = steady_duration{timer.next_due_ns};
  to.progress.age = steady_duration{timer.age_ns} + on_the_way;
  return to;
}

// -- at the source ----------------------------------------------------------------------------------------------------

reply_path path_of(kept_record& kept, const node_runtime& node, reply_table& replies, std::uint64_t move) {
  auto& r = *kept.r;
  if (r.kind != record_kind::request)
    return {};
  if (kept.entry != 0)
    return {node.identity.node_rid, kept.entry};
  if (r.reply.receiver == nullptr)
    return {};
  if (const auto* origin = r.from_link ? dynamic_cast<link_session*>(r.reply.receiver) : nullptr)
    return {origin->peer().rid, r.reply.id};
  kept.entry = replies.add(std::exchange(r.reply, reply_route{}), move, r.deadline);
  return {node.identity.node_rid, kept.entry};
}

void take_route_back(kept_record& kept, reply_table& replies) {
  if (kept.entry != 0)
    kept.r->reply = replies.take(std::exchange(kept.entry, 0));
}

void let_go(kept_record& kept) noexcept {
  auto* r = std::exchange(kept.r, nullptr);
  if (r == nullptr)
    return;
  if (auto* origin = std::exchange(r->reply.receiver, nullptr))
    origin->unref_receiver();
  free_record(r);
}

void end_record(kept_record& kept, host_runtime& host, reply_table& replies, const error& why) noexcept {
  auto* r = std::exchange(kept.r, nullptr);
  if (r == nullptr)
    return;
  if (kept.entry != 0)
    r->reply = replies.take(std::exchange(kept.entry, 0));
  if (r->kind != record_kind::request)
    host.domain.counters.drop(drop_reason::closed);
  refuse(r, why);
}

std::vector<std::byte> frame_of(kept_record& kept, std::string_view address, const reply_path& reply, host_runtime& host,
                                std::optional<message_fence> past) {
  auto& r = *kept.r;
  frame_buffer buffer;
  payload event; // what was published is shared with other Spots
  if (const auto* shared = r.body.get<message>())
    event = shared->to_payload();
  body_encoder body{event.empty() ? r.body : event, host.codecs, &host.system};
  const message_body parts{body.packet_name(), body.content_type(), r.extra ? r.extra->metadata.encoded() : byte_view{}};
  const bool timed = r.deadline != steady_time{};
  begin_message(buffer, header_of(r, address, reply, host, past), parts, r.kind == record_kind::request, timed);
  body.encode(buffer.payload());
  const auto frame = buffer.finish();
  set_message_times(frame, reply.id, timed ? remaining_ms(r.deadline, host.time->now()) : 0);
  return {frame.begin(), frame.end()};
}

// -- at the target ----------------------------------------------------------------------------------------------------

staged_record staged(byte_view content, host_runtime& host, steady_time arrived) {
  frame_reader reader{content};
  const auto message = decode_message(reader.next(frame_limit_bytes).body);
  staged_record made{make_inbound_record(message, arrived), {std::string{message.header.reply_node}, message.reply_route}};
  if (message.header.target != target_kind::publish)
    return made;
  auto& encoded = *made.r->body.get<encoded_value>();
  encoded.decode_by(host.values);
  made.r->decoded_by = host.codecs.for_content_type(encoded.content_type());
  const zlink::message shared{std::move(made.r->body)};
  made.r->body.emplace<zlink::message>(shared);
  return made;
}

record* with_route(staged_record staged, mesh_links& links) {
  if (staged.r->kind == record_kind::request && !staged.reply.node.empty())
    staged.r->reply = links.route_back(staged.reply.node, staged.reply.id);
  return staged.r;
}

} // namespace zlink::detail
