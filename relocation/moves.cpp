#include "relocation/moves.hpp"

#include "relocation/carried_unit.hpp"
#include "relocation/lane_frames.hpp"
#include "relocation/source_move.hpp"
#include "relocation/target_move.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/control_frames.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/messaging/mesh_links.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace zlink::detail {

const char* to_string(move_step step) noexcept {
  static constexpr const char* names[] = {
    "preparing", "sealing", "sealed", "sessions_sealed", "captured", "restore_sent", "boundary", "cutover_sent", "commit_seen", "source_closed",
    "followed_long_enough", "aborting", "fenced", "restored", "settled_lost", "restore_received", "payload_complete",
    "row_reserved", "rebuilt", "relay_ready_sent", "cutover_received", "cutover_fallback", "committing", "committed", "merged",
    "opened", "sessions_told", "staging_removed"};
  static_assert(std::size(names) == move_steps);
  return names[static_cast<std::size_t>(step)];
}

moves::moves(host_runtime& host) noexcept : pace(host), crowd(host), host_(host) {}
moves::~moves() = default;

// -- as the source ----------------------------------------------------------------------------------------------------

task<unit_end> moves::move(relocation_unit unit, placement::node_identity target, steady_time deadline) {
  auto one = std::make_shared<source_move>(host_, std::move(unit), std::move(target), deadline);
  {
    std::lock_guard guard{mutex_};
    sources_.emplace(one->id, one);
  }
  under_way_.fetch_add(1, std::memory_order_acq_rel);
  auto running = one->run();
  auto end = co_await std::move(running);
  if (!end.left)
    forget(*one);
  co_return end;
}

void moves::forget(const source_move& ended) {
  std::shared_ptr<source_move> gone;
  {
    std::lock_guard guard{mutex_};
    const auto i = sources_.find(ended.id);
    if (i == sources_.end())
      return;
    gone = std::move(i->second);
    sources_.erase(i);
  }
  under_way_.fetch_sub(1, std::memory_order_acq_rel);
}

std::shared_ptr<source_move> moves::source(unique_id move) const {
  std::lock_guard guard{mutex_};
  const auto i = sources_.find(move);
  return i == sources_.end() ? nullptr : i->second;
}

/// Only by the target of that attempt (L-8).
template <class F>
void moves::tell_source(const link_session& link, unique_id move, std::uint64_t attempt, F event) {
  auto one = source(move);
  if (one == nullptr || one->attempt != attempt || one->target() != link.peer().rid)
    return;
  host_.infra->post([one = std::move(one), event = std::move(event)]() mutable { event(*one); });
}

// -- as the target ----------------------------------------------------------------------------------------------------

std::shared_ptr<target_move> moves::target(unique_id move) const {
  std::lock_guard guard{mutex_};
  const auto i = targets_.find(move);
  return i == targets_.end() ? nullptr : i->second;
}

namespace {

bool has_parts_of(unit_kind kind, const std::vector<moving_part>& parts) {
  const auto members = std::ranges::count(parts, true, &moving_part::actor);
  if (is_actor_unit(kind))
    return parts.size() == 1 && members == 1;
  return !parts.front().actor && static_cast<std::size_t>(members) == parts.size() - 1 && (kind == unit_kind::spot_wide || members == 0);
}

/// What a peer says that has no such word.
restore_refused known(restore_refused told) {
  if (told.reason == 0 || told.reason > static_cast<std::uint8_t>(relocate_reason::operation_in_progress))
    told.reason = static_cast<std::uint8_t>(relocate_reason::relocation_failed);
  told.kind = static_cast<std::uint8_t>(known_kind(told.kind, error_kind::internal_failure));
  return told;
}

} // namespace

/// The temporary queue is there before the next packet is looked at (L-100).
void moves::begin_target(node_runtime& node, link_session& link, unique_id move, byte_view body) {
  auto request = decode<restore_request>(body);
  if (request.parts.empty() || request.kind > last_unit_kind || request.attempt == 0)
    throw decode_error{"a Restore request without parts, attempt or kind"};
  if (!has_parts_of(static_cast<unit_kind>(request.kind), request.parts))
    throw decode_error{"a Restore request with parts that no unit of its kind has"};
  if (request.source_lifecycle != link.peer().lifecycle.value || request.target_lifecycle != node.identity.lifecycle.value)
    throw decode_error{"a Restore request of another run of the node"};
  std::shared_ptr<target_move> made;
  std::vector<std::shared_ptr<target_move>> outdated;
  {
    std::lock_guard guard{mutex_};
    if (const auto i = targets_.find(move); i != targets_.end()) {
      if (i->second->same(request))
        i->second->repeated();
      else
        i->second->contradicted();
      return;
    }
    made = std::make_shared<target_move>(host_, node, node.links->name_of(link.peer().rid), move, std::move(request));
    for (const auto& address : made->addresses()) {
      auto& latest = arriving_[address]; // of two preparations the newer one counts (L-109)
      if (const auto i = targets_.find(latest); latest && i != targets_.end())
        outdated.push_back(i->second);
      latest = move;
    }
    targets_.emplace(move, made);
    made->register_queue();
  }
  under_way_.fetch_add(1, std::memory_order_acq_rel);
  host_.infra->post([this, made, outdated = std::move(outdated)] {
    for (const auto& one : outdated)
      one->give_up();
    start_coroutine(made->run(), [this, made](result<void>) {
      made->set_over();
      under_way_.fetch_sub(1, std::memory_order_acq_rel);
      const auto remembered = std::max<std::chrono::nanoseconds>(host_.options.message_follow_duration, liveness_deadline);
      host_.infra->post_after(remembered, [this, made] { forget(*made); }); // for what comes late: it knows what has come before
    });
  });
}

void moves::forget(const target_move& ended) {
  std::shared_ptr<target_move> gone;
  std::lock_guard guard{mutex_};
  for (const auto& address : ended.addresses())
    if (const auto i = arriving_.find(address); i != arriving_.end() && i->second == ended.id)
      arriving_.erase(i);
  const auto i = targets_.find(ended.id);
  if (i == targets_.end())
    return;
  gone = std::move(i->second);
  targets_.erase(i);
}

/// The source sees the commit late, and its target is known no more: it finds the object, or is refused, as what follows does
/// (L-142, L-185). Of a batch nobody knows whether it has run.
void moves::deliver_late(node_runtime& node, const link_session& link, const relayed_message& what) {
  if (what.batch != 0)
    return;
  frame_reader reader{what.frame};
  const auto header = decode_message(reader.next(what.frame.size()).body).header;
  auto late = staged(what.frame, host_, host_.time->now());
  if (!header.fence) { // an event
    host_.domain.counters.drop(drop_reason::closed);
    free_record(late.r);
    return;
  }
  const bool actor = header.target == target_kind::actor;
  host_.messages.deliver_followed(with_route(std::move(late), *node.links),
                                  actor ? actor_address(header.target_id) : std::string{header.target_id}, node,
                                  node.links->name_of(link.peer().rid), *header.fence);
}

// -- what comes -------------------------------------------------------------------------------------------------------

void moves::arrived(node_runtime& node, link_session& link, control_command command, unique_id move, byte_view body) {
  const auto at_target = [&](std::uint64_t attempt) {
    auto one = target(move);
    return one != nullptr && one->attempt() == attempt && one->source() == link.peer().rid ? one : nullptr; // L-8
  };
  switch (command) {
    case control_command::restore: begin_target(node, link, move, body); return;
    case control_command::restore_chunk: {
      const auto what = decode_chunk(body);
      move = what.move;
      if (auto one = at_target(what.attempt))
        one->chunk(what);
      return;
    }
    case control_command::relay: {
      const auto what = decode<relayed_message>(body);
      if (auto one = at_target(what.attempt))
        one->relayed(what);
      else if (!target(move))
        deliver_late(node, link, what);
      return;
    }
    case control_command::cutover: {
      const auto what = decode<cutover_mark>(body);
      if (auto one = at_target(what.attempt))
        one->cutover(what);
      return;
    }
    case control_command::move_abandoned: {
      if (auto one = at_target(decode<attempt_note>(body).attempt))
        one->abandoned();
      return;
    }
    case control_command::chunks_taken: {
      const auto what = decode<chunks_taken>(body);
      tell_source(link, move, what.attempt, [bytes = what.bytes](source_move& one) { one.taken(bytes); });
      return;
    }
    case control_command::relay_ready: {
      const auto what = decode<ready_note>(body);
      tell_source(link, move, what.attempt, [crowded = what.crowded](source_move& one) { one.ready(crowded); });
      return;
    }
    case control_command::restore_refused: {
      auto what = known(decode<restore_refused>(body));
      const auto attempt = what.attempt;
      tell_source(link, move, attempt, [what = std::move(what)](source_move& one) mutable { one.refused(std::move(what)); });
      return;
    }
    case control_command::route_moved: {
      const auto what = decode<route_moved>(body);
      host_.messages.routes.cache.erase(what.actor ? actor_address(what.id) : what.id, {what.generation}, {what.authority});
      return;
    }
    default: throw decode_error{"an unknown record of a move"};
  }
}

void moves::link_changed(node_runtime&, const std::string& rid, bool lost) {
  std::vector<std::shared_ptr<source_move>> out;
  std::vector<std::shared_ptr<target_move>> in;
  {
    std::lock_guard guard{mutex_};
    for (const auto& [id, one] : sources_)
      out.push_back(one);
    for (const auto& [id, one] : targets_)
      in.push_back(one);
  }
  for (const auto& one : out)
    one->link_changed(rid, lost);
  for (const auto& one : in)
    one->link_changed(rid);
}

bool moves::knows(const std::string& address) const {
  std::lock_guard guard{mutex_};
  return arriving_.contains(address);
}

bool moves::arrives(const std::string& address) const {
  std::lock_guard guard{mutex_};
  const auto i = arriving_.find(address);
  const auto by = i == arriving_.end() ? targets_.end() : targets_.find(i->second);
  return by != targets_.end() && !by->second->over();
}

bool moves::quiet() const noexcept {
  std::lock_guard guard{mutex_};
  return sources_.empty() && at_rest();
}

bool moves::serves_members() const {
  std::lock_guard guard{mutex_};
  return std::ranges::any_of(sources_, [](const auto& one) { return one.second->serves_members(); });
}

void moves::end() {
  std::vector<std::shared_ptr<source_move>> out;
  std::vector<std::shared_ptr<target_move>> in;
  {
    std::lock_guard guard{mutex_};
    for (const auto& [id, one] : sources_)
      out.push_back(one);
    for (const auto& [id, one] : targets_)
      in.push_back(one);
  }
  for (const auto& one : out)
    one->end();
  for (const auto& one : in)
    one->give_up();
}

} // namespace zlink::detail
