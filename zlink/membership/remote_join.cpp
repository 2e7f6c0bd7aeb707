// A Join that leads to a User Spot of another node: the gate there is asked, then the Actor moves (chapter 05, section 7).
#include "zlink/codec.hpp"
#include "zlink/membership/join_state.hpp"
#include "zlink/membership/timed_question.hpp"
#include "zlink/messaging/control_frames.hpp"
#include "zlink/objects/stored_request.hpp"
#include "zlink/placement/candidates.hpp"
#include "zlink/placement/capacity.hpp"

namespace zlink::detail {

namespace {

std::vector<std::byte> as_bytes(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}
std::string as_text(const std::vector<std::byte>& content) {
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

/// The same error, as the Actor hears it (J-117).
error_kind kind_of(const unit_end& end) noexcept {
  switch (end.reason) {
    case relocate_reason::deadline_exceeded: return error_kind::deadline_exceeded;
    case relocate_reason::state_incompatible: return error_kind::internal_failure;
    case relocate_reason::shutdown_requested: return error_kind::shutting_down;
    default: return end.kind;
  }
}

/// A Spot that has let somebody in expects him no more.
void not_coming(const counted_ptr<spot_object>& spot) {
  if (spot)
    spot->home().post([spot] { spot->members().expected_came(); });
}

} // namespace

// -- where the Actor is -----------------------------------------------------------------------------------------------

task<result<control_answer>> memberships::ask_elsewhere(const join& j, placement::node_identity where) {
  const auto& here = host_.find_node(j.actor->mesh_name())->identity;
  join_question question;
  question.actor_id = j.actor->id();
  question.generation = j.actor->generation().value;
  question.authority = j.actor->authority().value;
  const auto at = j.actor->membership();
  question.member_of = at.spot_id;
  question.member_generation = at.spot_generation.value;
  question.spot_id = *j.spot_id;
  question.operation_id = j.operation;
  question.request = as_bytes(j.request);
  question.route.source_rid = here.node_rid;
  question.route.source_lifecycle = here.lifecycle.value;
  question.route.target_rid = where.node_rid;
  question.route.target_lifecycle = where.lifecycle.value;
  question.route.left_ms = std::chrono::duration_cast<std::chrono::milliseconds>(j.due - host_.time->now()).count();
  auto asking = within(*host_.infra,
                       host_.spots.ask(where.mesh_name, where.node_rid, static_cast<std::uint16_t>(control_command::ask_join),
                                       host_.random->next_id(), encode(question), j.due),
                       j.due, "the node of " + described(*j.spot_id));
  auto answer = co_await std::move(asking);
  if (auto failure = failure_in(*answer))
    co_return std::move(*failure);
  co_return std::move(*answer);
}

/// The node of the Actor takes no members: another one that could take a new Actor of the type takes this one (J-73).
task<result<memberships::target>> memberships::find_entry_elsewhere(const join& j) {
  auto& node = *host_.find_node(j.actor->mesh_name());
  constexpr auto kind = placement::object_kind::actor;
  const placement::placement_wish wish{node.mesh_name(), kind, j.actor->type(), placement::slots_of(kind, j.actor->type()), {node.identity}};
  for (bool fresh = false;; fresh = true) {
    const auto known = node.peers_known->snapshot();
    const auto choice = placement::choose_node(known->candidates(host_.time->now()), wish, *host_.random);
    if (const auto* chosen = std::get_if<const placement::descriptor_record*>(&choice)) {
      if (j.actor->factory().policy == relocation_policy::disable) // J-75
        co_return error{error_kind::rejected, "Actors of type \"" + j.actor->type() + "\" do not leave their node, which takes no members"};
      co_return target{{}, false, (*chosen)->node, (*chosen)->entry_spot_id};
    }
    if (fresh)
      co_return error{error_kind::unavailable, std::string{"no Entry Spot of this mesh can take the Actor at the moment: "}
                                                 + placement::to_string(std::get<placement::no_candidate>(choice).cause)};
    auto refreshing = node.peers_known->refresh();
    co_await std::move(refreshing);
  }
}

/// The gate, if there is one, decides before anything of the Actor is captured (J-91); then its move carries the Join along.
task<join_completion> memberships::go_elsewhere(join& j, target where) {
  join_completion end;
  join_ticket ticket;
  ticket.spot_id = where.entry;
  ticket.operation_id = j.operation;
  if (j.spot_id) {
    auto asking = ask_elsewhere(j, *where.elsewhere);
    auto answer = co_await std::move(asking);
    if (!answer)
      co_return failed_with(answer.error());
    if (answer->state == 0) {
      end.outcome = join_outcome::rejected;
      if (answer->reply)
        end.reply = split_request(as_text(*answer->reply), host_.values);
      co_return end;
    }
    ticket.spot_id = *j.spot_id;
    ticket.spot_generation = {answer->generation};
    if (answer->reply)
      ticket.reply = as_text(*answer->reply);
  }
  if (!j.rested) {
    auto resting = until_at_rest(j.actor, j.due);
    if (!co_await std::move(resting))
      co_return failed_with({error_kind::deadline_exceeded, "what the Actor had under way did not end in time"});
  }
  relocation_unit unit;
  unit.kind = unit_kind::joining_actor;
  unit.node = host_.find_node(j.actor->mesh_name());
  unit.lead = counted_ptr<hosted_object>{j.actor};
  unit.join = std::make_shared<const join_ticket>(std::move(ticket));
  auto moving = host_.moving.move(std::move(unit), std::move(*where.elsewhere), j.due);
  const auto moved = co_await std::move(moving);
  j.gone = moved.left;
  if (!moved.left)
    co_return failed_with({kind_of(moved), moved.why});
  co_return end;
}

void memberships::left_by_join(counted_ptr<actor_object> actor) {
  auto from = actor->spot();
  if (!from)
    return;
  from->part_busy(); // it does not end before it has been told
  remove_member(from, actor);
  tell_left(std::move(actor), std::move(from));
}

// -- where the Spot is ------------------------------------------------------------------------------------------------

/// The row of the Actor as its node says it is; its type is taken from there (J-97, J-98).
task<std::optional<error>> memberships::check_row(const join_question& asked, placement::node_identity source) {
  const auto& spot_id = asked.spot_id;
  const placement::spot_membership at{asked.member_of, {asked.member_generation}};
  const auto what = described(actor_address(asked.actor_id));
  auto reading = host_.repository->read_object(actor_address(asked.actor_id));
  const auto outcome = co_await std::move(reading);
  const auto* seen = placement::seen_in(outcome);
  if (seen == nullptr)
    co_return error{error_kind::unavailable, "the row of " + what + " cannot be read"};
  const auto* row = placement::row_in(*seen);
  if (row == nullptr)
    co_return error{error_kind::not_found, "there is no " + what};
  if (row->generation.value != asked.generation)
    co_return error{error_kind::invalid_operation, what + " is another incarnation by now"};
  if (row->state != placement::allocation_state::active || row->kind != placement::object_kind::actor || row->authority.value != asked.authority
      || row->node != source || row->member_of != at || row->closing)
    co_return error{error_kind::unavailable, what + " is not where it is said to be"};
  auto lease_of = host_.messages.routes.judge_row(*seen);
  const auto owner = co_await std::move(lease_of);
  if (owner.what != resolved::ready)
    co_return error{error_kind::unavailable, what + " cannot be used: " + owner.why};
  const auto* node = host_.find_node(source.mesh_name);
  const auto* factory = node == nullptr ? nullptr : node->find_actor_factory(row->stable_type);
  if (factory == nullptr)
    co_return error{error_kind::unavailable, "this node registers no Actors of type \"" + row->stable_type + '"'};
  const auto spot = host_.objects.find(spot_id);
  if (!spot || spot->factory().kind != spot_kind::user || spot->application_word().has(admission_word::staging_bit | admission_word::sealed_bit)
      || spot->mesh_name() != source.mesh_name) {
    if (spot && spot->is_moving())
      co_return error{error_kind::unavailable, described(spot_id) + " is moving to another node"};
    auto asking = why_not_here(spot_id);
    co_return co_await std::move(asking);
  }
  if (spot->factory().actor_class != factory->instance_type)
    co_return error{error_kind::type_mismatch, '"' + spot_id + "\" is no User Spot for Actors of type \"" + row->stable_type + '"'};
  co_return std::nullopt;
}

/// Who asks has seen it here, and it may have moved since: it is missing only where the store shows nothing (J-71).
task<std::optional<error>> memberships::why_not_here(std::string spot_id) {
  auto reading = host_.repository->read_object(spot_id);
  const auto outcome = co_await std::move(reading);
  const auto* seen = placement::seen_in(outcome);
  const auto* row = seen == nullptr ? nullptr : placement::row_in(*seen);
  if (seen == nullptr || (row != nullptr && row->state == placement::allocation_state::active && !row->closing && row->owner != host_.token()))
    co_return error{error_kind::unavailable, described(spot_id) + " is not on this node any more"};
  co_return error{error_kind::not_found, "there is no " + described(spot_id)};
}

task<control_answer> memberships::serve_join(node_runtime& node, join_question asked, steady_time due) {
  if (auto why = host_.refuse(host_work::placement_here)) // J-164
    co_return failed_answer(*why);
  placement::node_identity source{node.mesh_name(), asked.route.source_rid, {asked.route.source_lifecycle}};
  auto checking = check_row(asked, std::move(source));
  if (auto failed = co_await std::move(checking))
    co_return failed_answer(*failed);
  const auto spot = host_.objects.find(asked.spot_id);
  if (!spot)
    co_return failed_answer({error_kind::not_found, described(asked.spot_id) + " has closed"});
  counted_ptr<spot_object> expected_by;
  auto asking = ask_gate(*spot, asked.actor_id, as_text(asked.request), due, expected_by);
  auto response = co_await std::move(asking);
  if (!response)
    co_return failed_answer(response.error());
  control_answer answer;
  if (response->reply) {
    try {
      answer.reply = as_bytes(encode_request(*response->reply, host_).bytes);
    } catch (...) {
      not_coming(expected_by);
      co_return failed_answer({error_kind::internal_failure, "the reply of on_actor_join: " + text_of_current_exception()});
    }
  }
  answer.state = response->accepted ? 1 : 0;
  answer.generation = spot->generation().value;
  if (response->accepted)
    expect(asked.operation_id, asked.actor_id, std::move(expected_by), due + stays_expected);
  else
    not_coming(expected_by);
  co_return answer;
}

/// The Spot stays for it, but not for ever (J-94): as long as it may come, and while it is on its way. A move that is refused or
/// dropped here ends that earlier; of one that never begins the Spot hears nothing.
void memberships::expect(const std::string& operation_id, const std::string& actor_id, counted_ptr<spot_object> spot, steady_time until) {
  not_coming(take_expected(operation_id));
  expected_.emplace(operation_id, std::move(spot));
  host_.infra->post_after(until - host_.time->now(), [this, operation_id, actor_id] {
    auto late = take_expected(operation_id);
    if (late && host_.moving.arrives(actor_address(actor_id)))
      expect(operation_id, actor_id, std::move(late), host_.time->now() + stays_expected);
    else
      not_coming(late);
  });
}

counted_ptr<spot_object> memberships::take_expected(const std::string& operation_id) {
  const auto i = expected_.find(operation_id);
  if (i == expected_.end())
    return {};
  auto spot = std::move(i->second);
  expected_.erase(i);
  return spot;
}

void memberships::comes_no_more(const std::string& operation_id) { not_coming(take_expected(operation_id)); }

task<void> memberships::finish_join(counted_ptr<actor_object> actor, join_ticket ticket) {
  const auto expected = take_expected(ticket.operation_id);
  const auto into = actor->spot();
  auto moving = move_in(actor, {}, into, expected.get() == into.get());
  co_await std::move(moving);
  join_completion end;
  end.operation_id = ticket.operation_id;
  end.actor = actor->ref_here();
  if (ticket.reply)
    end.reply = split_request(*ticket.reply, host_.values);
  host_.trace(*actor, "joined", to_string(end.outcome));
  auto completing = complete(actor, std::move(end));
  co_await std::move(completing);
}

} // namespace zlink::detail
