// Actors come into being, and are found and ended by their refs (04 section 14; J-10 to J-19, J-136).
#include "zlink/host/host_runtime.hpp"
#include "zlink/membership/member_steps.hpp"
#include "zlink/messaging/control_calls.hpp"
#include "zlink/messaging/control_frames.hpp"
#include "zlink/objects/build_step.hpp"
#include "zlink/objects/entered_call.hpp"
#include "zlink/objects/ready_row.hpp"
#include "zlink/placement/pause.hpp"

namespace zlink::detail {

namespace {

[[noreturn]] void refuse(error_kind kind, std::string why) { throw operation_failed{error{kind, std::move(why)}}; }

} // namespace

// -- creation -------------------------------------------------------------------------------------------------------------------

task<result<actor_create_response>> memberships::build(actor_object& actor, node_runtime& node, message request) {
  auto entry = node.entry;
  if (!entry)
    co_return error{error_kind::unavailable, "this node's Entry Spot has ended"};
  if (!actor.take_place())
    co_return error{error_kind::unavailable, "this node has no capacity for another Actor"};
  auto entering = host_.activations.enter(node);
  co_await std::move(entering);
  auto held = counted_ptr<actor_object>::share(&actor);
  auto making = as_result(run_callback<void>(actor, *host_.infra, "creation", [](execution_object& object) -> task<void> {
    static_cast<actor_object&>(object).construct();
    return task<void>::done();
  }));
  const auto made = co_await std::move(making);
  auto answer = result<actor_create_response>{reject()};
  if (made) {
    auto asking = as_result(run_callback<actor_create_response>(
      *entry, *host_.infra, "on_create_actor", [held, request = std::move(request)](execution_object& object) -> task<actor_create_response> {
        auto* callbacks = callbacks_of(static_cast<spot_object&>(object));
        if (callbacks == nullptr)
          return make_ready_task(result<actor_create_response>{error{error_kind::unavailable, "the Entry Spot has ended"}});
        return callbacks->ask_create(*held->application(), request);
      }));
    answer = co_await std::move(asking);
  } else {
    answer = made.error();
  }
  node.activations->leave();
  if (!answer || !answer->accepted)
    actor.return_place(); // before the store shows that it is free
  co_return answer;
}

void memberships::open(actor_object& actor, node_runtime& node) {
  host_.trace(actor, "created");
  auto entry = node.entry;
  actor.committed({node.entry_id, {}}, entry);
  entry->home().post([entry, held = counted_ptr<actor_object>::share(&actor)] { entry->members().add(held); });
  // Admitted from now on, in the continuation of the commit: no message sent after it ends in not_found (C-88).
  actor.application_word().clear(admission_word::staging_bit);
  actor.submit_step(std::make_unique<turn_step>([](execution_object& object) {
    auto& ready = static_cast<actor_object&>(object);
    ready.settle_down();
    ready.set_open(true);
  }));
  actor.end_change(); // behind that step whatever is asked of it next, by whoever is told of its creation
}

// -- by id and ref ----------------------------------------------------------------------------------------------------------------

task<std::optional<actor_ref>> memberships::find(std::string actor_id, std::stop_token cancel) {
  const auto address = actor_address(actor_id);
  return enter_call<std::optional<actor_ref>>(
    host_, "find of actor", actor_id, host_.default_request_timeout(), std::move(cancel),
    [this, address]() { return look_up(address); });
}

task<std::optional<actor_ref>> memberships::look_up(std::string address) {
  auto looking = ready_row(host_, address);
  const auto row = co_await std::move(looking);
  if (!row)
    co_return std::nullopt;
  co_return actor_ref{std::string{id_in(address)}, row->generation.value, row->node.mesh_name, row->node.node_rid};
}

task<std::optional<spot_ref>> memberships::find_spot(std::string actor_id, std::stop_token cancel) {
  const auto address = actor_address(actor_id);
  return enter_call<std::optional<spot_ref>>(
    host_, "find of the spot of actor", actor_id, host_.default_request_timeout(), std::move(cancel),
    [this, address]() { return look_up_spot(address); });
}

/// An Entry Spot has no generation in a membership, and no ref (C-125).
task<std::optional<spot_ref>> memberships::look_up_spot(std::string address) {
  auto looking = ready_row(host_, std::move(address));
  const auto row = co_await std::move(looking);
  if (!row || !row->member_of || !row->member_of->spot_generation)
    co_return std::nullopt;
  co_return spot_ref{row->member_of->spot_id, row->member_of->spot_generation.value, row->node.mesh_name, row->node.node_rid};
}

task<bool> memberships::destroy(actor_ref who, std::stop_token cancel) {
  const auto timeout = host_.default_request_timeout();
  const auto id = who.actor_id;
  return enter_call<bool>(host_, "end of actor", id, timeout, std::move(cancel),
                          [this, who = std::move(who), due = host_.time->now() + timeout, by = asker::here()] {
                            return destroy_exactly(who, due, by);
                          });
}

task<bool> memberships::destroy_exactly(actor_ref who, steady_time due, asker by) {
  const auto address = actor_address(who.actor_id);
  auto reading = host_.repository->read_object(address);
  const auto read = co_await std::move(reading);
  const auto* seen = placement::seen_in(read);
  if (std::holds_alternative<placement::record_fault>(read))
    refuse(error_kind::internal_failure, "the record of " + described(address) + " in the Location Store cannot be used");
  if (seen == nullptr)
    refuse(error_kind::unavailable, "the Location Store does not tell who owns " + described(address));
  const auto* row = placement::row_in(*seen);
  host_.messages.routes.cache.row_seen(address, row);
  if (row == nullptr || row->state == placement::allocation_state::reserved)
    co_return false;
  if (row->generation.value != who.object_generation)
    refuse(error_kind::invalid_operation, "the ref of " + described(address) + " names another incarnation");
  auto judging = host_.messages.routes.judge_row(*seen);
  const auto found = co_await std::move(judging);
  if (found.what == resolved::unavailable) {
    auto releasing = host_.spots.release_dead(address, row->generation, *seen);
    co_return co_await std::move(releasing);
  }
  if (placement::is_moving(*row) || row->aggregate)
    refuse(error_kind::unavailable, described(address) + " moves");
  if (auto here = host_.objects.find_actor(who.actor_id); here && here->generation() == row->generation) {
    auto ending = destroy_here(std::move(here), due, by);
    co_return co_await std::move(ending);
  }
  if (const auto* own = host_.find_node(row->node.mesh_name); own != nullptr && own->identity == row->node) {
    if (host_.recovery.keeps(address, row->generation)) { // lost on its way to another node (L-164)
      auto releasing = host_.recovery.release(address, row->generation, due);
      co_return co_await std::move(releasing);
    }
    // Here, and gone since the row was read: what became of it the row tells in a moment.
    if (host_.time->now() >= due)
      refuse(error_kind::unavailable, described(address) + " is ending");
    auto pausing = placement::pause_before_retry(*host_.infra, *host_.random);
    co_await std::move(pausing);
    auto again = destroy_exactly(std::move(who), due, by);
    co_return co_await std::move(again);
  }
  auto demanding = host_.spots.ask_owner(*seen, control_command::destroy_actor, who.actor_id, due);
  const bool ended = co_await std::move(demanding);
  if (ended)
    host_.messages.routes.cache.erase(address, found.route.object, found.route.authority);
  co_return ended;
}

} // namespace zlink::detail
