// The way back before the boundary, and what settles a move whose target never became the owner (L-160 to L-165).
#include "relocation/source_move.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/membership/member_steps.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/messaging/mesh_links.hpp"
#include "zlink/objects/build_step.hpp"
#include "zlink/objects/row_change.hpp"

namespace zlink::detail {

namespace {

constexpr std::chrono::seconds forget_patience{10}; // for a row that only says too much

} // namespace

/// Nothing has stopped, or only for a signalled boundary.
task<void> source_move::withdraw() {
  auto withdrawing = run_turn<bool>(*unit_.lead, *host_.infra, [self = shared_from_this()](execution_object& object) {
    if (self->unit_.lead->is_actor())
      return true;
    auto& spot = static_cast<spot_object&>(object);
    spot.at_signalled_boundary({});
    if (!self->owes_completion_)
      return true;
    spot.submit_step(make_readiness_step(spot_relocation_ready_outcome::continued, [](execution_object& target) { // L-44
      auto& members = static_cast<spot_object&>(target).members();
      for (auto place = members.next(0); place != spot_members::nobody; place = members.next(place + 1))
        if (auto member = members.who(place); &member->home() == &target.home() && !member->is_changing())
          member->set_open(true);
      target.set_open(true);
    }));
    return true;
  });
  co_await std::move(withdrawing);
  forget_progress();
  unit_.lead->end_move();
}

/// With an explicit refusal, or before anything was sent, nobody else can become the owner. Else the store is asked first,
/// whatever that takes (L-160).
task<unit_end> source_move::go_back(relocate_reason reason, std::string why) {
  host_.moving.step(move_step::aborting, address);
  const bool certain = !link_ || verdict_ == verdict::refused;
  if (!certain) {
    if (link_->ready())
      send(control_command::move_abandoned, encode(attempt_note{attempt}));
    auto fencing = fence();
    switch (co_await std::move(fencing)) {
      case fence_end::won: break;
      case fence_end::target_owns: // it went on by itself: what is held goes after it
        if (auto again = unit_.node->links->ready_link(target_.node_rid))
          link_ = again;
        pass_boundary();
        co_return unit_end{true, relocate_reason::none, {}};
      case fence_end::unclear: { // the lease is over, and with it everything of this host
        auto settling = settle_lost();
        co_await std::move(settling);
        co_return unit_end{false, relocate_reason::store_unavailable, std::move(why)};
      }
    }
    host_.moving.step(move_step::fenced, address);
  }
  auto restoring = restore();
  co_await std::move(restoring);
  if (certain)
    forget_progress();
  host_.moving.step(move_step::restored, address);
  co_return unit_end{false, reason, std::move(why)};
}

/// A write on the version that the target's commit depends on: exactly one of the two comes first (S-100). The move is taken out
/// of the row with it, slots that the target had secured included.
task<source_move::fence_end> source_move::fence() {
  row_change change;
  change.id = address;
  bool owned_by_target = false;
  const auto mine = owned();
  change.judge = [this, &owned_by_target, &mine](const placement::observed_object& seen) -> row_judgement {
    const auto* row = placement::row_in(seen);
    owned_by_target = row == nullptr || row->generation != unit_.lead->generation() || row->authority > unit_.lead->authority();
    if (owned_by_target || !row->move || row->move->relocation != id)
      return row_end::settled;
    if (row->move->stage == placement::move_stage::prepared)
      return judged(placement::release_move(seen, mine.kind, mine.id, id, row->move->attempt));
    return judged(placement::set_move_progress(seen, mine, std::nullopt));
  };
  change.give_up = [this, &mine](bool) { return host_.token() != mine.owner || ended_; };
  auto changing = change_row(host_, std::move(change));
  const auto outcome = co_await std::move(changing);
  if (outcome.how == row_end::applied)
    co_return fence_end::won;
  if (outcome.how == row_end::settled)
    co_return owned_by_target ? fence_end::target_owns : fence_end::won;
  co_return fence_end::unclear;
}

/// The row only says too much: the next move, or a close, must not wait for it long.
void source_move::forget_progress() {
  start_coroutine([](std::shared_ptr<source_move> self) -> task<void> {
    row_change change;
    change.id = self->address;
    const auto mine = self->owned();
    change.judge = [self, &mine](const placement::observed_object& seen) -> row_judgement {
      const auto* row = placement::row_in(seen);
      if (row == nullptr || !row->move || row->move->relocation != self->id || row->move->stage >= placement::move_stage::committed)
        return row_end::settled;
      if (row->move->stage == placement::move_stage::prepared)
        return judged(placement::release_move(seen, mine.kind, mine.id, self->id, row->move->attempt));
      return judged(placement::set_move_progress(seen, mine, std::nullopt));
    };
    change.give_up = [self, until = self->host_.time->now() + forget_patience](bool) { return self->host_.time->now() >= until; };
    auto changing = change_row(self->host_, std::move(change));
    co_await std::move(changing);
  }(shared_from_this()), [](result<void>) {});
}

// -- back to work -----------------------------------------------------------------------------------------------------

/// Captured work, then what was held, in order; only then new work (L-161).
task<void> source_move::restore() {
  if (unit_.lead->fenced()) { // it was lost meanwhile, with the host's lease
    drop_captured({error_kind::unavailable, described(address) + " was lost while it was to move"});
    for (std::uint32_t i = 0; i < parts_.size(); ++i)
      host_.objects.end_detour(hold_->parts()[i].address, *detours_[i], [] {});
    co_return;
  }
  for (std::uint32_t i = 0; i < parts_.size(); ++i)
    restore_part(i);
  captured_.clear();
  auto opening = run_turn<bool>(*unit_.lead, *host_.infra, [self = shared_from_this()](execution_object& object) {
    const auto open_all = [self](execution_object&) {
      for (auto& one : self->parts_) {
        if (one.object->is_actor())
          static_cast<actor_object&>(*one.object).end_change();
        one.object->set_open(true);
      }
    };
    if (self->owes_completion_)
      object.submit_step(make_readiness_step(spot_relocation_ready_outcome::continued, open_all));
    else
      open_all(object);
    return true;
  });
  co_await std::move(opening);
  unit_.lead->end_move();
}

void source_move::restore_part(std::uint32_t index) {
  auto& one = parts_[index];
  auto& object = *one.object;
  auto& replies = unit_.node->links->replies();
  const auto put_back = [&](kept_record& kept) {
    take_route_back(kept, replies);
    object.submit_unchecked(std::exchange(kept.r, nullptr), true);
  };
  for (auto& kept : captured_)
    if (kept.part == index && kept.r != nullptr)
      put_back(kept);
  host_.objects.end_detour(object.address(), *detours_[index], [&] {
    for (auto& kept : hold_->take_held(index))
      put_back(kept);
    object.application_word().clear(admission_word::sealed_bit);
  });
  if (object.has_timers())
    object.timers().go_on(one.pending);
}

void source_move::drop_captured(const error& why) {
  auto& replies = unit_.node->links->replies();
  for (auto& kept : hold_->take_held())
    end_record(kept, host_, replies, why);
  for (auto* all : {&captured_, &relayed_}) {
    for (auto& kept : *all)
      end_record(kept, host_, replies, why);
    all->clear();
  }
  replies.fail_link(number_, why); // what went by the lane behind the cutover
}

/// The target can never commit, and this side never runs the unit again: what was accepted ends with a name, the row stays
/// (L-163, S-101).
task<void> source_move::settle_lost() {
  const error why{error_kind::unavailable, described(address) + " was lost on its way to node \"" + target_.node_rid + '"'};
  hold_->lose(why);
  drop_captured(why);
  for (auto& one : parts_) {
    one.object->fence_off();
    host_.objects.erase(*one.object);
  }
  auto disposing = run_turn<bool>(*unit_.lead, *host_.infra, [self = shared_from_this(), why](execution_object&) {
    for (auto i = self->parts_.rbegin(); i != self->parts_.rend(); ++i) {
      i->object->home().fail_operations(*i->object, why);
      i->object->refuse_waiting(why, true);
      i->object->dispose();
    }
    return true;
  });
  co_await std::move(disposing);
  host_.moving.step(move_step::settled_lost, address);
  for (std::uint32_t i = 0; i < parts_.size(); ++i) // from here on the row says it: there is no object here any more
    host_.objects.end_detour(hold_->parts()[i].address, *detours_[i], [] {});
}

} // namespace zlink::detail
