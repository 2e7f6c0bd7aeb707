#include "relocation/source_move.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/mesh_links.hpp"

namespace zlink::detail {

source_move::source_move(host_runtime& host, relocation_unit unit, placement::node_identity target, steady_time deadline)
  : id(host.random->next_id()), attempt(host.random->next() | 1), address(unit.lead->address()), host_(host),
    unit_(std::move(unit)), target_(std::move(target)), deadline_(deadline),
    number_(host.moving.next_number()), lane_number_(host.moving.next_number()), wake_(*host.infra),
    record_(std::make_shared<source_record>(host, id, unit_.kind, unit_.lead)),
    sessions_(std::make_shared<session_seals>(host, *unit_.node, id)) {}

/// Anywhere: a turn may hold the last reference.
source_move::~source_move() {
  for (auto* kept : {&captured_, &relayed_})
    for (auto& one : *kept)
      let_go(one);
}

void source_move::leave_pace() {
  if (std::exchange(paced_, false))
    host_.moving.pace.leave();
}

/// Nothing more is sent; and what the target has not taken is void.
void source_move::end_transfer() {
  bytes{}.swap(payload_);
  const auto under_way = sent_bytes_ - taken_bytes_;
  sent_bytes_ = taken_bytes_ = 0;
  if (under_way != 0)
    host_.moving.pace.give_bytes(target_.node_rid, under_way);
}

task<unit_end> source_move::run() {
  if (!unit_.join) { // which holds somebody up already
    auto entering = host_.moving.pace.enter(deadline_);
    co_await std::move(entering);
    paced_ = true;
  }
  auto running = move_out();
  auto end = co_await std::move(running);
  leave_pace();
  end_transfer();
  co_return end;
}

task<unit_end> source_move::move_out() {
  if (ended_ || host_.time->now() >= deadline_)
    co_return unit_end{false, ended_ ? relocate_reason::shutdown_requested : relocate_reason::deadline_exceeded,
                       described(address) + " was not begun in time"};
  auto preparing = prepare();
  if (auto stays = co_await std::move(preparing))
    co_return *stays;
  auto sealing = seal();
  if (!co_await std::move(sealing)) {
    auto withdrawing = withdraw();
    co_await std::move(withdrawing);
    co_return unit_end{false, host_.ending() ? relocate_reason::shutdown_requested : relocate_reason::deadline_exceeded,
                       described(address) + " came to no boundary in time", {}, error_kind::deadline_exceeded};
  }
  auto noting = prepare_all();
  if (auto failed = co_await std::move(noting)) {
    auto going_back = go_back(failed->reason, failed->why);
    co_return co_await std::move(going_back);
  }
  auto asking = seal_sessions();
  if (auto failed = co_await std::move(asking)) {
    auto going_back = go_back(failed->reason, failed->why);
    co_return co_await std::move(going_back);
  }
  auto capturing = capture();
  if (auto failed = co_await std::move(capturing)) {
    auto going_back = go_back(failed->reason, failed->why);
    co_return co_await std::move(going_back);
  }
  if (!send_restore()) {
    auto going_back = go_back(relocate_reason::target_unavailable, "no link to node \"" + target_.node_rid + '"');
    co_return co_await std::move(going_back);
  }
  auto waiting = wait_for_verdict();
  co_await std::move(waiting);
  if (verdict_ == verdict::refused) {
    auto going_back = go_back(static_cast<relocate_reason>(refusal_.reason), refusal_.text);
    co_return co_await std::move(going_back);
  }
  if (verdict_ != verdict::ready) {
    const bool lost = verdict_ == verdict::lost;
    auto going_back = go_back(lost ? relocate_reason::target_unavailable : relocate_reason::deadline_exceeded,
                              lost ? "the link to node \"" + target_.node_rid + "\" was lost"
                                   : "node \"" + target_.node_rid + "\" was not ready in time");
    co_return co_await std::move(going_back);
  }
  host_.moving.step(move_step::boundary, address); // from here on the unit is not run here any more, whatever comes (L-130)
  pass_boundary();
  co_return unit_end{true, relocate_reason::none, {}, interruption()};
}

std::chrono::milliseconds source_move::interruption() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(submitted_ - sealed_);
}

// -- what comes by the lane -------------------------------------------------------------------------------------------

void source_move::ready(bool target_is_crowded) {
  if (target_is_crowded)
    host_.moving.pace.target_is_crowded();
  if (verdict_ == verdict::none)
    verdict_ = verdict::ready;
  wake_.wake();
}

void source_move::refused(restore_refused why) {
  if (verdict_ == verdict::none) {
    verdict_ = verdict::refused;
    refusal_ = std::move(why);
  }
  wake_.wake();
}

void source_move::taken(std::uint64_t bytes) {
  const auto more = std::min<std::uint64_t>(bytes, sent_bytes_);
  if (more > taken_bytes_)
    host_.moving.pace.give_bytes(target_.node_rid, more - std::exchange(taken_bytes_, more));
  send_chunks();
}

void source_move::link_changed(const std::string& rid, bool lost) {
  if (rid != target_.node_rid)
    return;
  if (lost && verdict_ == verdict::none && link_)
    verdict_ = verdict::lost;
  if (lost && left_) // replies that were on their way have gone with it (M-135)
    for (const auto number : {number_, lane_number_})
      unit_.node->links->replies().fail_link(number, link_was_lost());
  wake_.wake();
}

void source_move::end() {
  ended_ = true;
  sessions_->look();
  wake_.wake();
}

} // namespace zlink::detail
