// The commit of a move, and what opens the target behind it (chapter 06, sections 12 and 13); or its end without one.
#include "relocation/target_move.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/membership/member_steps.hpp"
#include "zlink/objects/build_step.hpp"

namespace zlink::detail {

/// The change of owner, and of everything that goes with it (L-145 to L-147).
task<bool> target_move::commit() {
  host_.moving.step(move_step::committing, address());
  std::optional<placement::spot_membership> membership;
  if (request_.parts.front().actor)
    membership = membership_of(0);
  auto committing = record_->commit(std::move(membership), [this] { return given_up_; });
  const auto issued = co_await std::move(committing);
  if (!issued)
    co_return false;
  authority_ = *issued;
  co_return true;
}

/// The source takes none any more, from the mark on: they wait in the temporary queue (L-103).
void target_move::take_events(bool from_now_on) {
  const auto& lead = members_.front().object;
  if (!lead || lead->is_actor())
    return;
  if (from_now_on)
    node_.subscribed.add(static_cast<spot_object&>(*lead));
  else
    node_.subscribed.remove(static_cast<spot_object&>(*lead));
}

// -- the switch -------------------------------------------------------------------------------------------------------

/// Captured work, then what was relayed before the cutover, then the rest; nothing of it runs yet (L-156, L-157).
void target_move::merge() {
  for (std::uint32_t i = 0; i < addresses_.size(); ++i)
    merge_part(i);
}

void target_move::merge_part(std::uint32_t index) {
  auto& member = members_[index];
  auto object = member.object;
  object->set_generations({request_.parts[index].generation}, authority_);
  object->set_owned_since(owned_since_[index]);
  const auto push = [&](staged_record& one) { object->submit_unchecked(with_route(std::move(one), *node_.links), true); };
  for (auto& one : member.work)
    push(one);
  member.work.clear();
  for (auto& one : queue_->take_part(index))
    push(one);
  object->application_word().clear(admission_word::staging_bit);
  host_.objects.take_over(object, *detours_[index], [&] {
    for (auto& one : queue_->end_part(index)) // few: what has come in between
      push(one);
  });
}

/// The turn that hears of the move, if the Spot has asked to; then dispatch (L-45, L-159).
task<void> target_move::open() {
  auto lead = members_.front().object;
  for (auto& member : members_)
    host_.trace(*member.object, "relocated");
  if (content_.join) {
    auto joining = finish_join(counted_ptr<actor_object>::share(static_cast<actor_object*>(lead.get())));
    co_await std::move(joining);
    co_return;
  }
  auto opened = new_counted<operation<bool>>();
  opened->dispatcher = host_.infra->unit();
  lead->submit_step(std::make_unique<turn_step>([self = shared_from_this(), opened](execution_object& target) {
    auto open_all = [self, opened](execution_object& object) {
      self->open_in_turn(static_cast<hosted_object&>(object));
      opened->set(result<bool>{true});
    };
    self->take_members_in(static_cast<hosted_object&>(target));
    if (self->content_.owes_completion)
      target.submit_step(make_readiness_step(spot_relocation_ready_outcome::relocated, std::move(open_all)));
    else
      open_all(target);
  }));
  co_await task<bool>{opened};
  for (auto& member : members_)
    member.object->timers().go_on();
  record_->settle();
}

/// The Spot and the Actor hear of the Join, then its messages go on (J-90, J-102).
task<void> target_move::finish_join(counted_ptr<actor_object> actor) {
  join_ticket ticket;
  ticket.spot_id = content_.join->spot_id;
  ticket.spot_generation = {content_.join->spot_generation};
  ticket.operation_id = content_.join->operation_id;
  if (content_.join->reply)
    ticket.reply.emplace(reinterpret_cast<const char*>(content_.join->reply->data()), content_.join->reply->size());
  auto finishing = host_.actors.finish_join(actor, std::move(ticket));
  co_await std::move(finishing);
  actor->timers().go_on();
}

/// In a turn of the lead's gate, which is that of all who move with it.
void target_move::take_members_in(hosted_object& lead) {
  for (std::uint32_t i = 1; i < members_.size(); ++i)
    static_cast<spot_object&>(lead).members().add(counted_ptr<actor_object>::share(static_cast<actor_object*>(members_[i].object.get())));
  if (!lead.is_actor())
    return;
  auto actor = counted_ptr<actor_object>::share(&static_cast<actor_object&>(lead));
  auto spot = actor->spot();
  spot->home().post([spot, actor] { spot->members().add(actor); });
}

void target_move::open_in_turn(hosted_object& lead) {
  if (!lead.is_actor())
    static_cast<spot_object&>(lead).note_work(host_.time->now());
  for (auto& member : members_) {
    if (member.object->is_actor())
      static_cast<actor_object&>(*member.object).end_change();
    member.object->set_open(true);
  }
}

/// Each owner by itself, once; nobody waits for what it makes of it (L-171, N-131, N-132, N-146).
void target_move::tell_sessions() {
  for (std::uint32_t i = 0; i < content_.parts.size(); ++i) {
    if (!content_.parts[i].session)
      continue;
    session_route told;
    told.action = static_cast<std::uint8_t>(session_route_action::commit);
    told.binding = *content_.parts[i].session;
    told.actor_id = request_.parts[i].id;
    told.generation = request_.parts[i].generation;
    told.mesh_name = node_.mesh_name();
    told.node_rid = node_.rid();
    told.authority = authority_.value;
    host_.sessions.send(node_, told, id);
  }
}

// -- the end without a commit -----------------------------------------------------------------------------------------

task<void> target_move::dispose_all() {
  const error why{error_kind::unavailable, "it did not move here"};
  for (auto i = members_.rbegin(); i != members_.rend(); ++i) { // the Spot last
    for (auto& one : i->work)
      refuse(one.r, why);
    i->work.clear();
    if (!i->object)
      continue;
    auto disposing = run_turn<bool>(*i->object, *host_.infra, [why](execution_object& object) {
      object.home().fail_operations(object, why);
      object.refuse_waiting(why, true);
      static_cast<hosted_object&>(object).dispose();
      return true;
    });
    co_await std::move(disposing);
    i->object = nullptr;
  }
}

task<void> target_move::remove_staging() {
  take_events(false);
  for (std::uint32_t i = 0; i < addresses_.size(); ++i) // who still asks here is sent on, as before (L-180)
    host_.objects.replace_detour(addresses_[i], *detours_[i], detours_[i]->lasting());
  queue_->discard(*node_.links);
  auto disposing = dispose_all();
  co_await std::move(disposing);
  if (content_.join)
    host_.actors.comes_no_more(content_.join->operation_id);
  record_->release();
  host_.moving.step(move_step::staging_removed, address());
}

} // namespace zlink::detail
