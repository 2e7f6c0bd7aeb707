// A Join from `defer()` to its completion (chapter 05, sections 4 to 8).
#include "zlink/codec.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/membership/join_state.hpp"
#include "zlink/membership/member_steps.hpp"
#include "zlink/membership/timed_question.hpp"
#include "zlink/membership/work_count.hpp"
#include "zlink/messaging/body_codec.hpp"
#include "zlink/objects/build_step.hpp"
#include "zlink/objects/stored_request.hpp"

#include <vector>

namespace zlink {

const char* to_string(join_outcome outcome) noexcept {
  switch (outcome) {
    case join_outcome::accepted: return "accepted";
    case join_outcome::rejected: return "rejected";
    case join_outcome::failed: return "failed";
  }
  return "unknown";
}

namespace detail {

namespace {

constexpr std::size_t most_joins = 64;                           // of one handler (J-56)
constexpr std::size_t most_joined_bytes = 8 * 1024 * 1024;       // of their requests
constexpr std::chrono::milliseconds default_join_timeout{5'000}; // J-55

[[noreturn]] void refuse(error_kind kind, std::string why) { throw operation_failed{error{kind, std::move(why)}}; }

/// The reply that a handler leaves behind can leave as well (J-63). To another node it travels encoded.
bool can_leave(record* served, host_runtime& host) {
  if (served == nullptr || served->kind != record_kind::request || !served->from_link || served->body.empty())
    return true;
  try {
    body_encoder encoder{served->body, host.codecs, &host.system};
    bytes ignored;
    encoder.encode(ignored);
    return true;
  } catch (...) {
    return false; // whoever sends the reply says so
  }
}

} // namespace

// -- registration; in a handler's turn ----------------------------------------------------------------------------------------

void memberships::defer(join_request& what) {
  if (std::exchange(what.used, true))
    refuse(error_kind::invalid_operation, "defer() was called before on this Join; make a new one");
  if (what.twice)
    refuse(error_kind::invalid_operation, "timeout was set twice on one Join");
  auto& actor = *what.actor;
  if (actor.fenced())
    refuse(error_kind::unavailable, described(actor.address()) + " has ended, or is on another node"); // wherever that is asked (J-105)
  const auto* t = current_turn();
  auto scope = current_scope();
  const bool same = scope && scope->open() && what.made_in.get() == scope.get() && t->object->whole().may_join();
  if (!same)
    refuse(error_kind::invalid_operation, "a Join is registered inside the handler that made it: of an Actor, or of a User or Entry Spot");
  if (auto why = host_.refuse(host_work::placement_away))
    refuse(why->kind(), why->message());
  if (actor.application_word().has(admission_word::sealed_bit))
    refuse(error_kind::unavailable, described(actor.address()) + " ends, or moves to another node");
  auto content = encode_request(what.request, host_);
  if (scope->joins >= most_joins)
    throw std::invalid_argument{"a handler registers 64 Joins at most"};
  if (scope->joined_bytes + content.bytes.size() > most_joined_bytes)
    throw std::invalid_argument{"the requests of a handler's Joins take 8 MiB together at most"};
  if (!actor.begin_change())
    refuse(error_kind::unavailable, described(actor.address()) + " changes its Spot already");
  ++scope->joins;
  scope->joined_bytes += content.bytes.size();
  scope->bar(actor.address());
  actor.shut(); // what has not started waits from now on (J-65)
  auto j = std::make_shared<join>(join{what.actor, std::move(what.spot_id), std::move(content.bytes), actor.generation(),
                                       format_uuid_v4(host_.random->next_id()),
                                       host_.time->now() + what.timeout.value_or(default_join_timeout)});
  scope->at_end([this, j](record* served, bool well) {
    if (well && can_leave(served, host_))
      activate(j);
    else
      discard(*j);
  });
}

void memberships::discard(const join& j) { reopen(j.actor); }

/// By way of the Actor: what is at rest behind the barrier stays so.
void memberships::activate(join_ptr j) {
  auto& actor = *j->actor;
  actor.submit_step(std::make_unique<turn_step>([this, j = std::move(j)](execution_object& object) mutable {
    j->rested = static_cast<actor_object&>(object).at_rest();
    host_.infra->post([this, j = std::move(j)]() mutable { start_coroutine(run(std::move(j)), [](result<void>) {}); });
  }));
}

// -- from the end of the handler on; in the infrastructure unit ---------------------------------------------------------------

task<void> memberships::run(join_ptr j) {
  const work_count counted{*this};
  outcome_of<join_completion> deciding{decide(j)};
  auto decided = co_await deciding;
  auto end = decided ? std::move(*decided) : failed_with(decided.is_cancelled() ? error{error_kind::internal_failure, "cancelled"} : decided.error());
  if (j->expected_by)
    j->expected_by->home().post([spot = j->expected_by] { spot->members().expected_came(); });
  if (j->gone)
    co_return;
  end.operation_id = j->operation;
  end.actor = j->actor->ref_here();
  host_.trace(*j->actor, "joined", to_string(end.outcome));
  auto completing = complete(j->actor, std::move(end));
  co_await std::move(completing);
}

task<join_completion> memberships::decide(join_ptr which) {
  auto& j = *which;
  if (auto why = host_.refuse(host_work::placement_away))
    co_return failed_with(std::move(*why));
  if (host_.time->now() >= j.due)
    co_return failed_with({error_kind::deadline_exceeded, "the handler that registered the Join took all of its time"});
  auto finding = within(*host_.infra, find_target(which), j.due, "the Location Store");
  auto found = co_await std::move(finding);
  if (!found)
    co_return failed_with(found.error());
  join_completion end;
  if (found->already_there)
    co_return end; // J-70
  if (found->elsewhere) {
    auto going = go_elsewhere(j, std::move(*found));
    co_return co_await std::move(going);
  }
  const auto spot = found->spot;
  if (spot->factory().kind == spot_kind::user) {
    auto asking = ask_gate(*spot, j.actor->id(), j.request, j.due, j.expected_by);
    auto answer = co_await std::move(asking);
    if (!answer)
      co_return failed_with(answer.error());
    if (answer->reply) {
      try {
        static_cast<void>(encode_request(*answer->reply, host_)); // 1 MiB at most (J-57)
      } catch (...) {
        co_return failed_with({error_kind::internal_failure, "the reply of on_actor_join: " + text_of_current_exception()});
      }
    }
    end.reply = std::move(answer->reply);
    if (!answer->accepted) {
      end.outcome = join_outcome::rejected;
      co_return end;
    }
  }
  if (!j.rested) { // nothing of it runs under two memberships (J-86)
    auto resting = until_at_rest(j.actor, j.due);
    if (!co_await std::move(resting))
      co_return failed_with({error_kind::deadline_exceeded, "what the Actor had under way did not end in time"});
  }
  const auto from = j.actor->spot();
  auto committing = commit(j.actor, spot, j.due);
  if (auto failed = co_await std::move(committing))
    co_return failed_with(std::move(*failed));
  auto moving = move_in(j.actor, from, spot, std::exchange(j.expected_by, {}) != nullptr);
  co_await std::move(moving);
  co_return end;
}

/// Whoever waited for it may be gone by the end.
task<result<memberships::target>> memberships::find_target(join_ptr which) {
  const auto& j = *which;
  if (!j.spot_id) {
    if (!host_.refuse(host_work::placement_here) && host_.find_node(j.actor->mesh_name())->entry != nullptr)
      co_return find_entry_target(j);
    auto looking = find_entry_elsewhere(j);
    co_return co_await std::move(looking);
  }
  if (const auto at = j.actor->membership(); at.spot_id == *j.spot_id && at.spot_generation)
    co_return target{j.actor->spot(), true};
  auto finding = find_user_target(j);
  co_return co_await std::move(finding);
}

memberships::target memberships::find_entry_target(const join& j) {
  const auto& entry = host_.find_node(j.actor->mesh_name())->entry;
  const auto at = j.actor->spot();
  return {entry, at.get() == entry.get()};
}

task<result<memberships::target>> memberships::find_user_target(const join& j) {
  const auto& id = *j.spot_id;
  const auto other_type = [&] {
    return error{error_kind::type_mismatch, '"' + id + "\" is no User Spot for Actors of type \"" + j.actor->type() + '"'};
  };
  if (auto here = host_.objects.find(id)) {
    const auto& factory = here->factory();
    if (factory.kind != spot_kind::user || factory.actor_class != j.actor->factory().instance_type)
      co_return other_type();
    if (here->is_moving())
      co_return error{error_kind::unavailable, described(id) + " is moving to another node"};
    if (here->application_word().has(admission_word::staging_bit | admission_word::sealed_bit) || here->mesh_name() != j.actor->mesh_name())
      co_return error{error_kind::not_found, "there is no " + described(id)};
    if (auto why = host_.refuse(host_work::placement_here)) // J-164
      co_return std::move(*why);
    co_return target{here, false};
  }
  auto resolving = host_.messages.routes.resolve(id);
  const auto found = co_await std::move(resolving);
  switch (found.what) {
    case resolved::missing:
    case resolved::creating:
    case resolved::closing: co_return error{error_kind::not_found, "there is no " + described(id)};
    case resolved::entry: co_return other_type();
    case resolved::unknown: co_return error{found.kind, described(id) + ": " + found.why};
    case resolved::unavailable: co_return error{error_kind::unavailable, described(id) + " cannot be used: " + found.why};
    case resolved::ready: break;
  }
  if (placement::row_in(found.seen)->kind != placement::object_kind::user_spot)
    co_return other_type();
  if (j.actor->factory().policy == relocation_policy::disable) // J-75
    co_return error{error_kind::rejected, described(id) + " is on another node, and Actors of type \"" + j.actor->type() + "\" do not leave theirs"};
  co_return target{{}, false, placement::row_in(found.seen)->node};
}

/// `on_actor_join` in the target's lifecycle lane; behind a close that has begun nobody is asked any more (J-167).
task<result<actor_join_response>> memberships::ask_gate(spot_object& spot, std::string actor_id, std::string stored, steady_time due,
                                                         counted_ptr<spot_object>& expected_by) {
  struct question {
    std::atomic<bool> over{false}; ///< nobody waits for the answer (J-118)
    std::atomic<bool> closed{false};
    bool expected = false; ///< inside the gate: the Actor has been let in, as far as the Spot knows
  };
  auto asked = std::make_shared<question>();
  auto held = counted_ptr<spot_object>::share(&spot);
  auto request = split_request(stored, host_.values).value_or(message{}); // good until the callback has ended
  auto gate = run_callback<actor_join_response>(
    spot, *host_.infra, "on_actor_join",
    [asked, id = std::move(actor_id), request = std::move(request)](execution_object& object) -> task<actor_join_response> {
      auto& target = static_cast<spot_object&>(object);
      auto* callbacks = callbacks_of(target);
      if (asked->over.load() || callbacks == nullptr || target.members().is_shut()
          || target.application_word().has(admission_word::sealed_bit)) {
        asked->closed.store(true);
        return make_ready_task(result<actor_join_response>{reject()});
      }
      asked->expected = true;
      target.members().expect();
      return callbacks->ask_join(id, request);
    });
  outcome_of<actor_join_response> waiting{within(*host_.infra, std::move(gate), due, "on_actor_join of " + described(spot.id()),
                                                        std::shared_ptr<std::atomic<bool>>{asked, &asked->over})};
  auto answer = co_await waiting;
  if (answer && asked->closed.load() && held->is_moving())
    co_return error{error_kind::unavailable, described(spot.id()) + " is moving to another node"};
  if (answer && asked->closed.load())
    co_return error{error_kind::not_found, described(spot.id()) + " has closed"};
  if (!answer) { // the step may come still, or be under way: only the gate knows
    held->home().post([asked, held] {
      if (std::exchange(asked->expected, false))
        held->members().expected_came();
    });
    co_return answer.error();
  }
  expected_by = std::move(held);
  co_return std::move(*answer);
}

} // namespace detail
} // namespace zlink
