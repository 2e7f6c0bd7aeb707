// The way back before the boundary, and what settles a move whose target never became the owner (L-160 to L-165).
#include "relocation/source_move.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/membership/member_steps.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/messaging/mesh_links.hpp"
#include "zlink/objects/build_step.hpp"

namespace zlink::detail {

namespace {

constexpr std::chrono::seconds forget_patience{1};
constexpr std::chrono::milliseconds longest_look{50}; // for a link

} // namespace

/// Nothing has stopped, or only for a signalled boundary.
task<void> source_move::withdraw() {
  // In a turn that may be long in coming, and that nobody waits for: whoever moves it next comes behind it.
  unit_.lead->submit_step(std::make_unique<turn_step>([self = shared_from_this()](execution_object& object) {
    if (self->unit_.lead->is_actor())
      return;
    auto& spot = static_cast<spot_object&>(object);
    spot.at_signalled_boundary({});
    if (!self->owes_completion_)
      return;
    spot.submit_step(make_readiness_step(spot_relocation_ready_outcome::continued, [](execution_object& target) { // L-44
      auto& members = static_cast<spot_object&>(target).members();
      for (auto place = members.next(0); place != spot_members::nobody; place = members.next(place + 1))
        if (auto member = members.who(place); &member->home() == &target.home() && !member->is_changing())
          member->set_open(true);
      target.set_open(true);
    }));
  }));
  if (is_claimed_at_seal())
    co_return; // nobody knows of it yet
  if (unit_.kind == unit_kind::spot_wide)
    unit_.lead->end_move(); // nothing of it stands in the store yet
  else
    start_forgetting();
  auto clearing = until_forgotten();
  co_await std::move(clearing);
}

/// With an explicit refusal, or before anything was sent, nobody else can become the owner. Else the store is asked first,
/// whatever that takes (L-160).
task<unit_end> source_move::go_back(relocate_reason reason, std::string why) {
  host_.moving.step(move_step::aborting, address);
  const bool certain = !link_ || verdict_ == verdict::refused;
  if (!certain) {
    if (link_->ready())
      send(control_command::move_abandoned, encode(attempt_note{attempt}));
    auto fencing = record_->fence([this] { return ended_; });
    switch (co_await std::move(fencing)) {
      case source_record::fence_end::won: break;
      case source_record::fence_end::target_owns:
        go_after_target();
        co_return unit_end{true, relocate_reason::none, {}, interruption()};
      case source_record::fence_end::unclear: { // the lease is over, and with it everything of this host
        auto settling = settle_lost();
        co_await std::move(settling);
        co_return unit_end{false, relocate_reason::store_unavailable, std::move(why)};
      }
    }
    host_.moving.step(move_step::fenced, address);
  }
  auto restoring = restore();
  co_await std::move(restoring);
  start_forgetting(); // a Join, a close or another move come behind it
  host_.moving.step(move_step::restored, address);
  auto clearing = until_forgotten();
  co_await std::move(clearing);
  const auto kind = verdict_ == verdict::refused ? static_cast<error_kind>(refusal_.kind) : error_kind::unavailable;
  co_return unit_end{false, reason, std::move(why), {}, kind};
}

/// It went on by itself: what is held goes after it. The unit has left, whether there is a link now or not.
void source_move::go_after_target() {
  submitted_ = host_.time->now();
  start_coroutine([](std::shared_ptr<source_move> self) -> task<void> {
    auto linking = self->until_linked();
    co_await std::move(linking);
    if (auto link = self->link_to_target(); link && link != self->link_) {
      self->unit_.node->links->replies().fail_link(self->number_, self->link_was_lost()); // it may have answered what was captured
      self->link_ = std::move(link);
    }
    self->pass_boundary();
  }(shared_from_this()), [](result<void>) {});
}

/// As long as the target may come back, and somebody may wait for that.
task<void> source_move::until_linked() {
  const auto until = std::max(deadline_, submitted_ + host_.options.relocation_cutover_wait);
  auto& links = *unit_.node->links;
  while (!link_to_target() && links.is_known(target_.node_rid) && !ended_ && host_.time->now() < until) {
    auto waiting = wake_.until(std::min(until, host_.time->now() + longest_look));
    co_await std::move(waiting);
  }
}

/// The move is taken out of the store; the unit works on meanwhile.
void source_move::start_forgetting() {
  forgetting_ = true;
  record_->forget([self = shared_from_this()] {
    self->end_changes();
    self->forgetting_ = false;
    self->wake_.wake();
  });
}

/// Whoever hears of the end finds that he can go on; but a store that does not answer keeps nobody waiting.
task<void> source_move::until_forgotten() {
  const auto until = host_.time->now() + forget_patience;
  while (forgetting_ && !ended_ && host_.time->now() < until) {
    auto waiting = wake_.until(until);
    co_await std::move(waiting);
  }
}

/// From now on whoever wants to change something of it may.
void source_move::end_changes() {
  for (const auto& one : parts_) {
    if (one.object->is_actor() && !unit_.join) // the end of a Join lets go of its Actor
      static_cast<actor_object&>(*one.object).end_change();
    one.object->end_move();
  }
  unit_.lead->end_move(); // also where nothing was sealed
}

// -- back to work -----------------------------------------------------------------------------------------------------

/// Captured work, then what was held, in order; only then new work (L-161).
task<void> source_move::restore() {
  if (unit_.lead->fenced()) { // it was lost meanwhile, with the host's lease
    auto disposing = dispose_parts({error_kind::unavailable, described(address) + " was lost while it was to move"});
    co_await std::move(disposing);
    co_return;
  }
  for (std::uint32_t i = 0; i < parts_.size(); ++i)
    restore_part(i);
  captured_.clear();
  sessions_->withdraw(); // what their clients have sent meanwhile comes behind it, and before all that is new (L-162)
  auto opening = run_turn<bool>(*unit_.lead, *host_.infra, [self = shared_from_this()](execution_object& object) {
    const auto open_all = [self](execution_object&) {
      for (auto& one : self->parts_)
        if (!self->unit_.join) // what waits behind a Join waits for its end
          one.object->set_open(true);
    };
    if (self->owes_completion_)
      object.submit_step(make_readiness_step(spot_relocation_ready_outcome::continued, open_all));
    else
      open_all(object);
    return true;
  });
  co_await std::move(opening);
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
    object.timers().go_on();
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
  fail_lost_lanes(why);
  replies.fail_link(lane_number_, why);
}

/// The target can never commit, and this side never runs the unit again: what was accepted ends with a name, the row stays
/// (L-163, S-101).
task<void> source_move::settle_lost() {
  for (const auto& to : hold_->parts()) // nobody takes its row for a leftover (L-163, L-164)
    host_.recovery.keep(to.address, to.generation);
  auto disposing = dispose_parts({error_kind::unavailable, described(address) + " was lost on its way to node \"" + target_.node_rid + '"'});
  co_await std::move(disposing);
  record_->forget([] {}); // its members' rows stand for themselves again
  host_.moving.step(move_step::settled_lost, address);
}

/// Without a callback: for the application it is elsewhere, or nowhere.
task<void> source_move::dispose_parts(error why) {
  hold_->lose(why);
  drop_captured(why);
  for (auto& one : parts_) {
    one.object->fence_off();
    host_.objects.erase(*one.object);
  }
  auto emptying = until_members_left(); // they are at no fault
  co_await std::move(emptying);
  if (ended_ && !unit_.lead->is_actor() && host_.ownership->held()) { // the host ends, and has not seen the target own it (L-197)
    auto telling = tell_closing(spot_close_reason::host_shutdown);
    co_await std::move(telling);
  }
  auto leaving = leave_spot();
  co_await std::move(leaving);
  auto ending = end_instances(std::move(why));
  co_await std::move(ending);
  end_detours(); // from here on the row says it
}

/// The Spot of a lone Actor stays here. It counts nobody who has gone, and no turn of it meets an Actor without its instance.
task<void> source_move::leave_spot() {
  auto member = unit_.lead->is_actor() ? counted_ptr<actor_object>::share(static_cast<actor_object*>(unit_.lead.get())) : nullptr;
  auto spot = member ? member->spot() : nullptr;
  if (!spot)
    return task<void>::done();
  auto gone = new_counted<operation<void>>();
  gone->dispatcher = host_.infra->unit();
  spot->home().post([spot, member, gone] {
    spot->members().remove(*member);
    gone->set(result<void>{});
  });
  return task<void>{std::move(gone)};
}

/// In one turn: the gate is that of all of them.
task<bool> source_move::end_instances(error why) {
  return run_turn<bool>(*unit_.lead, *host_.infra, [self = shared_from_this(), why = std::move(why)](execution_object&) {
    for (auto i = self->parts_.rbegin(); i != self->parts_.rend(); ++i) { // the Spot last
      i->object->home().fail_operations(*i->object, why);
      i->object->refuse_waiting(why, true);
      i->object->dispose();
    }
    return true;
  });
}

void source_move::end_detours() {
  hold_->end();
  for (std::uint32_t i = 0; i < parts_.size(); ++i)
    host_.objects.end_detour(hold_->parts()[i].address, *detours_[i], [] {});
}

} // namespace zlink::detail
