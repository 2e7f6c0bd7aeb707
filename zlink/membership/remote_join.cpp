// A Join that leads to a User Spot of another node: the gate there is asked, then the Actor moves (chapter 05, section 7).
#include "zlink/codec.hpp"
#include "zlink/membership/join_state.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/messaging/mesh_links.hpp"
#include "zlink/objects/stored_request.hpp"

namespace zlink::detail {

namespace {

std::vector<std::byte> as_bytes(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}
std::string as_text(const std::vector<std::byte>& content) {
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

control_answer failed_answer(const error& why) {
  control_answer answer;
  answer.kind = static_cast<std::uint8_t>(why.kind());
  answer.text = why.message();
  return answer;
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

} // namespace

// -- where the Actor is -----------------------------------------------------------------------------------------------

task<result<control_answer>> memberships::ask_elsewhere(const join& j, placement::node_identity where) {
  const auto& here = host_.find_node(j.actor->mesh_name())->identity;
  join_question question;
  question.actor_id = j.actor->id();
  question.generation = j.actor->generation().value;
  question.authority = j.actor->authority().value;
  question.spot_id = *j.spot_id;
  question.operation_id = j.operation;
  question.request = as_bytes(j.request);
  question.route.source_rid = here.node_rid;
  question.route.source_lifecycle = here.lifecycle.value;
  question.route.target_rid = where.node_rid;
  question.route.target_lifecycle = where.lifecycle.value;
  question.route.left_ms = std::chrono::duration_cast<std::chrono::milliseconds>(j.due - host_.time->now()).count();
  auto asking = host_.spots.ask(where.mesh_name, where.node_rid, static_cast<std::uint16_t>(control_command::ask_join),
                                host_.random->next_id(), encode(question), j.due);
  auto answer = co_await std::move(asking);
  if (answer->kind)
    co_return error{static_cast<error_kind>(*answer->kind), answer->text};
  co_return std::move(*answer);
}

/// The gate decides before anything of the Actor is captured (J-91); then its move carries the Join along.
task<join_completion> memberships::go_elsewhere(join& j, placement::node_identity where) {
  auto asking = ask_elsewhere(j, where);
  auto answer = co_await std::move(asking);
  if (!answer)
    co_return failed_with(answer.error());
  join_completion end;
  if (answer->state == 0) {
    end.outcome = join_outcome::rejected;
    if (answer->reply)
      end.reply = split_request(as_text(*answer->reply), host_.values);
    co_return end;
  }
  if (!j.rested) {
    auto resting = until_at_rest(j.actor, j.due);
    if (!co_await std::move(resting))
      co_return failed_with({error_kind::deadline_exceeded, "what the Actor had under way did not end in time"});
  }
  join_ticket ticket;
  ticket.spot_id = *j.spot_id;
  ticket.spot_generation = {answer->generation};
  ticket.operation_id = j.operation;
  if (answer->reply)
    ticket.reply = as_text(*answer->reply);
  relocation_unit unit;
  unit.kind = unit_kind::joining_actor;
  unit.node = host_.find_node(j.actor->mesh_name());
  unit.lead = counted_ptr<hosted_object>{j.actor};
  unit.join = std::make_shared<const join_ticket>(std::move(ticket));
  auto moving = host_.moving.move(std::move(unit), std::move(where), j.due);
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
task<std::optional<error>> memberships::check_row(actor_ref asked, authority_generation authority, std::string spot_id,
                                                   placement::node_identity source) {
  const auto what = described(actor_address(asked.actor_id));
  auto reading = host_.repository->read_object(actor_address(asked.actor_id));
  const auto outcome = co_await std::move(reading);
  const auto* seen = placement::seen_in(outcome);
  if (seen == nullptr)
    co_return error{error_kind::unavailable, "the row of " + what + " cannot be read"};
  const auto* row = placement::row_in(*seen);
  if (row == nullptr)
    co_return error{error_kind::not_found, "there is no " + what};
  if (row->generation.value != asked.object_generation)
    co_return error{error_kind::invalid_operation, what + " is another incarnation by now"};
  if (row->state != placement::allocation_state::active || row->kind != placement::object_kind::actor || row->authority != authority
      || row->node != source || row->closing)
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
      || spot->mesh_name() != source.mesh_name)
    co_return error{error_kind::not_found, "there is no " + described(spot_id)};
  if (spot->factory().actor_class != factory->instance_type)
    co_return error{error_kind::type_mismatch, '"' + spot_id + "\" is no User Spot for Actors of type \"" + row->stable_type + '"'};
  co_return std::nullopt;
}

task<control_answer> memberships::serve_join(node_runtime& node, bytes question, link_session& link) {
  const auto asked = decode<join_question>(question);
  const auto& peer = link.peer();
  if (asked.route.source_rid != peer.rid || asked.route.source_lifecycle != peer.lifecycle.value
      || asked.route.target_rid != node.identity.node_rid || asked.route.target_lifecycle != node.identity.lifecycle.value)
    co_return failed_answer({error_kind::unavailable, "the question was for another run of a node"});
  if (auto why = host_.refuse(host_work::placement_here)) // J-164
    co_return failed_answer(*why);
  const auto due = host_.time->now() + std::clamp(std::chrono::milliseconds{asked.route.left_ms}, std::chrono::milliseconds{0}, defaults::longest_timeout);
  actor_ref who{asked.actor_id, asked.generation, node.mesh_name(), peer.rid};
  placement::node_identity source{node.mesh_name(), peer.rid, peer.lifecycle};
  auto checking = check_row(std::move(who), {asked.authority}, asked.spot_id, std::move(source));
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
      if (expected_by)
        expected_by->home().post([expected_by] { expected_by->members().expected_came(); });
      co_return failed_answer({error_kind::internal_failure, "the reply of on_actor_join: " + text_of_current_exception()});
    }
  }
  answer.state = response->accepted ? 1 : 0;
  answer.generation = spot->generation().value;
  if (response->accepted)
    expect(asked.operation_id, std::move(expected_by), due);
  else if (expected_by)
    expected_by->home().post([expected_by] { expected_by->members().expected_came(); });
  co_return answer;
}

/// The Spot stays for it, but not for ever (J-94).
void memberships::expect(const std::string& operation_id, counted_ptr<spot_object> spot, steady_time until) {
  expected_.insert_or_assign(operation_id, std::move(spot));
  host_.infra->post_after(until - host_.time->now() + std::chrono::seconds{5}, [this, operation_id] {
    if (auto late = take_expected(operation_id))
      late->home().post([late] { late->members().expected_came(); });
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
