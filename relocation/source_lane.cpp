// The lane of a move, from the Restore request to the end of the follow route (L-60, L-91 to L-95, L-130 to L-142, L-183, L-197).
#include "relocation/checksum.hpp"
#include "relocation/source_move.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/control_frames.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/messaging/mesh_links.hpp"
#include "zlink/objects/build_step.hpp"
#include "zlink/placement/pause.hpp"

#include <algorithm>

namespace zlink::detail {

namespace {

constexpr std::uint64_t chunk_head_room = 64; // what a frame has besides the content of a chunk
constexpr std::chrono::milliseconds longest_look{50}; // between looks at the row
constexpr std::chrono::seconds closing_patience{5};

} // namespace

void source_move::send(control_command command, const bytes& body) {
  link_->send_control(static_cast<std::uint16_t>(command), encode(control_envelope{id.high, id.low, body}));
}

bool source_move::send_restore() {
  link_ = unit_.node->links->ready_link(target_.node_rid);
  if (!link_ || link_->peer().lifecycle != target_.lifecycle)
    return false;
  restore_request request;
  request.attempt = attempt;
  request.kind = static_cast<std::uint8_t>(unit_.kind);
  request.source_lifecycle = unit_.node->identity.lifecycle.value;
  request.target_lifecycle = target_.lifecycle.value;
  for (const auto& to : hold_->parts())
    request.parts.push_back({is_actor_address(to.address), std::string{id_in(to.address)}, to.generation.value, to.authority.value});
  const auto most = std::min(link_->peer().frame_limit, link_->self().frame_limit);
  chunk_bytes_ = std::min<std::size_t>(host_.moving.pace.largest_chunk(), most - std::min<std::uint64_t>(most - 1, chunk_head_room)); // L-92
  request.total_bytes = payload_.size();
  request.chunks = static_cast<std::uint32_t>((payload_.size() + chunk_bytes_ - 1) / chunk_bytes_);
  request.sum = crc32c(0, payload_);
  request.left_ms = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - host_.time->now()).count();
  request.aggregate_high = record_->aggregate().high;
  request.aggregate_low = record_->aggregate().low;
  send(control_command::restore, encode(request));
  sent_bytes_ = 0;
  taken_bytes_ = 0;
  send_chunks();
  host_.moving.step(move_step::restore_sent, address);
  return true;
}

/// The report of the target frees room here, and is no acceptance of anything (L-94).
void source_move::send_chunks() {
  while (verdict_ == verdict::none && sent_bytes_ < payload_.size()) {
    const auto size = std::min(chunk_bytes_, payload_.size() - sent_bytes_);
    if (sent_bytes_ != taken_bytes_ && sent_bytes_ - taken_bytes_ + size > move_pace::most_under_way)
      return;
    if (!host_.moving.pace.take_bytes(target_.node_rid, size)) {
      host_.moving.pace.wants_room([weak = weak_from_this()] {
        if (const auto self = weak.lock())
          self->send_chunks();
      });
      return;
    }
    const auto ordinal = static_cast<std::uint32_t>(sent_bytes_ / chunk_bytes_);
    const auto chunk = encode_chunk({id, attempt, ordinal, byte_view{payload_}.subspan(sent_bytes_, size)});
    sent_bytes_ += size;
    link_->send_control(static_cast<std::uint16_t>(control_command::restore_chunk), chunk);
  }
}

/// Silence decides nothing: it ends with an answer, with the link, or when the time is over (L-132).
task<void> source_move::wait_for_verdict() {
  while (verdict_ == verdict::none && !ended_ && host_.time->now() < deadline_) {
    if (!link_->ready()) {
      verdict_ = verdict::lost;
      break;
    }
    auto waiting = wake_.until(deadline_);
    co_await std::move(waiting);
  }
}

// -- the boundary -----------------------------------------------------------------------------------------------------

/// What is held goes first, then the mark, then whatever comes (L-133 to L-135). Whether it arrives or not: this side is done.
void source_move::pass_boundary() {
  if (!unit_.lead->is_actor())
    unit_.node->subscribed.remove(static_cast<spot_object&>(*unit_.lead));
  answers_by_ = link_;
  send_batch();
  submitted_ = host_.time->now();
  host_.moving.step(move_step::cutover_sent, address);
  start_coroutine([](std::shared_ptr<source_move> self) -> task<void> {
    auto finishing = self->finish();
    co_await std::move(finishing);
    self->host_.moving.forget(*self);
  }(shared_from_this()), [](result<void>) {});
}

/// The whole of what was held, as one batch. What comes meanwhile is added to it, until nothing does.
void source_move::send_batch() {
  cutover_mark mark;
  mark.attempt = attempt;
  mark.batch = ++batch_;
  batch_gone_ = batch_gone_ || link_->ready();
  std::size_t next = 0;
  do {
    for (auto& kept : hold_->take_held())
      relayed_.push_back(kept);
    for (; next < relayed_.size(); ++next)
      relay(relayed_[next], mark);
  } while (!hold_->enter_lane(link_, lane_number_, attempt, encode(control_envelope{id.high, id.low, encode(mark)})));
}

void source_move::relay(kept_record& kept, cutover_mark& mark) {
  if (kept.r == nullptr)
    return;
  auto& replies = unit_.node->links->replies();
  relayed_message told;
  told.attempt = attempt;
  told.batch = batch_;
  told.part = kept.part;
  bytes ready;
  try {
    told.frame = frame_of(kept, hold_->parts()[kept.part].address, path_of(kept, *unit_.node, replies, number_), host_);
    ready = encode_relay(id, told, link_->peer().frame_limit);
  } catch (...) {
    end_record(kept, host_, replies, {error_kind::invalid_operation, text_of_current_exception()});
    return;
  }
  ++mark.records;
  mark.sum = crc32c(mark.sum, told.frame);
  link_->send_control(static_cast<std::uint16_t>(control_command::relay), ready);
}

// -- after it ---------------------------------------------------------------------------------------------------------

task<void> source_move::finish() {
  auto seeing = see_commit(std::max(deadline_, submitted_ + 2 * host_.options.relocation_cutover_wait));
  const bool committed = co_await std::move(seeing);
  if (!committed) {
    auto settling = settle_lost();
    co_await std::move(settling);
    co_return;
  }
  host_.moving.step(move_step::commit_seen, address);
  auto leaving = leave_source();
  co_await std::move(leaving);
}

counted_ptr<link_session> source_move::link_to_target() const {
  auto link = unit_.node->links->ready_link(target_.node_rid);
  return link && link->peer().lifecycle == target_.lifecycle ? link : counted_ptr<link_session>{};
}

error source_move::link_was_lost() const { return {error_kind::unavailable, "the link to node \"" + target_.node_rid + "\" was lost"}; }

/// What went behind the cutover by a link that was lost is not sent again; once it is known who the owner is, it ends (M-135).
void source_move::fail_lost_lanes(const error& why) {
  for (const auto number : std::exchange(lost_lanes_, {}))
    unit_.node->links->replies().fail_link(number, why);
}

/// The connection has broken, and both live (L-137).
void source_move::send_again(counted_ptr<link_session> link) {
  lost_lanes_.push_back(std::exchange(lane_number_, host_.moving.next_number()));
  link_ = std::move(link);
  hold_->change_link(link_, lane_number_);
  send_batch();
}

/// Looks at the row until it shows the target; nobody tells (L-159, L-197). Whether the batch has arrived nobody tells, either: as
/// long as the window is open, it has when its link has stayed (L-138). False: the target never will be the owner.
task<bool> source_move::see_commit(steady_time until) {
  auto pause = std::chrono::milliseconds{1};
  const auto window_end = submitted_ + host_.options.relocation_cutover_wait;
  bool committed = false;
  for (;;) {
    auto link = link_to_target();
    if (!committed) {
      auto looking = record_->is_over();
      committed = co_await std::move(looking);
      if (!committed)
        answers_by_ = link;
    }
    const auto now = host_.time->now();
    const bool in_window = now < window_end && !ended_;
    if (in_window && !link_->ready() && link && link->ready())
      send_again(std::move(link));
    if (committed && (!in_window || link_->ready() || relayed_.empty()))
      co_return true;
    if (!committed && (now >= until || ended_)) {
      auto fencing = record_->fence([this] { return ended_; });
      const auto end = co_await std::move(fencing);
      co_return end == source_record::fence_end::target_owns;
    }
    auto waiting = wake_.until(std::min(committed ? window_end : until, now + pause));
    co_await std::move(waiting);
    pause = std::min(pause * 2, longest_look);
  }
}

/// The copy of what was sent has done its duty; the instance ends, and late messages follow (L-180, L-183, L-197, L-200).
task<void> source_move::leave_source() {
  auto& replies = unit_.node->links->replies();
  const error doubtful{error_kind::unavailable, "the link to node \"" + target_.node_rid + "\" was lost while it was passed on"};
  for (auto& one : captured_)
    let_go(one);
  for (auto& one : relayed_) {
    const bool by_another_node = batch_gone_ && one.r != nullptr && one.r->kind == record_kind::request && one.r->from_link;
    if (link_->ready() || by_another_node) // its answer does not come this way (L-142)
      let_go(one);
    else
      end_record(one, host_, replies, doubtful);
  }
  if (!link_->ready())
    lost_lanes_.push_back(lane_number_);
  fail_lost_lanes(doubtful);
  if (!answers_by_ || !answers_by_->ready()) // what has been answered meanwhile may have gone with it (M-135)
    replies.fail_link(number_, doubtful);
  captured_.clear();
  relayed_.clear();
  for (auto& one : parts_) {
    one.object->fence_off();
    host_.objects.erase(*one.object);
  }
  hold_->follow(target_.node_rid);
  left_ = true;
  auto closing = close_instance();
  co_await std::move(closing);
  host_.moving.step(move_step::source_closed, address);
  const auto until = submitted_ + host_.options.message_follow_duration;
  host_.moving.under_way_.fetch_sub(1, std::memory_order_acq_rel); // what is left to do is done by whoever comes
  while (!ended_ && host_.time->now() < until) {
    auto waiting = wake_.until(until);
    co_await std::move(waiting);
  }
  end_detours();
  host_.moving.under_way_.fetch_add(1, std::memory_order_acq_rel);
  host_.moving.step(move_step::followed_long_enough, address);
}

/// A failure of the Spot's is recorded, and changes nothing (L-200).
task<void> source_move::tell_closing(spot_close_reason reason) {
  const spot_closing_context context{reason, host_.time->wall_now() + closing_patience};
  std::stop_source late;
  host_.infra->post_after(closing_patience, [late]() mutable { late.request_stop(); });
  auto telling = run_closing_step(static_cast<spot_object&>(*unit_.lead), *host_.infra, context, late.get_token());
  co_await std::move(telling);
}

/// A PerActor shell serves its members until the last of them has left, whatever has become of the Spot itself (L-152, L-154); when
/// the host ends, until none of them runs anything more (L-241). Their handlers are functions of its instance, which goes under
/// nobody, be the lease over or the deadline past. It may take long, so it is no step of the move: others do not wait for it.
task<void> source_move::until_members_left() {
  if (unit_.kind != unit_kind::per_actor_spot)
    co_return;
  serves_members_ = true;
  host_.moving.under_way_.fetch_sub(1, std::memory_order_acq_rel);
  for (;;) {
    const bool all_drained = host_.ending() && !host_.actors.some_are_stuck() && !host_.left_behind();
    auto asking = run_turn<bool>(*unit_.lead, *host_.infra, [all_drained](execution_object& object) {
      const bool served = !all_drained && !static_cast<spot_object&>(object).members().none();
      return !served && object.at_boundary(current_run()); // a handler may have outstayed its Actor's membership (J-131)
    });
    if (co_await std::move(asking))
      break;
    auto pausing = placement::pause(*host_.infra, longest_look);
    co_await std::move(pausing);
  }
  host_.moving.under_way_.fetch_add(1, std::memory_order_acq_rel);
  serves_members_ = false;
}

task<void> source_move::close_instance() {
  auto lead = unit_.lead;
  auto emptying = until_members_left();
  co_await std::move(emptying);
  if (!lead->is_actor()) {
    auto telling = tell_closing(spot_close_reason::relocation_out);
    co_await std::move(telling);
  }
  if (unit_.join) { // OnLeaveActor reads the Actor, which stays until it has ended (J-105)
    auto leaving = counted_ptr<actor_object>::share(static_cast<actor_object*>(lead.get()));
    host_.actors.left_by_join(leaving);
    while (leaving->in_a_notice() && !ended_) {
      auto pausing = placement::pause(*host_.infra, std::chrono::milliseconds{1});
      co_await std::move(pausing);
    }
  } else {
    auto leaving = leave_spot();
    co_await std::move(leaving);
  }
  auto ending = end_instances({error_kind::unavailable, "it has moved to another node"});
  co_await std::move(ending);
  if (!lead->is_actor())
    host_.activations.forget(lead->generation());
}

} // namespace zlink::detail
