// From the payload to objects that wait to be opened (chapter 06, section 10).
#include "relocation/target_move.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/membership/member_steps.hpp"
#include "zlink/objects/build_step.hpp"
#include "zlink/placement/pause.hpp"

namespace zlink::detail {

namespace {

constexpr int most_attempts = 3; // to build and restore a unit, from the same bytes (L-30)

error text_of(const result<void>& failed) {
  return failed.is_cancelled() ? error{error_kind::internal_failure, "cancelled"} : failed.error();
}

} // namespace

task<target_move::failure> target_move::prepare() {
  if (auto why = host_.refuse(host_work::placement_here))
    co_return refusal{relocate_reason::target_unavailable, std::move(*why)};
  auto reading = record_->read();
  auto failed = co_await std::move(reading);
  if (failed)
    co_return failed;
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    auto building = rebuild();
    failed = co_await std::move(building);
    if (!failed || failed->reason != relocate_reason::state_incompatible || void_by_now())
      break;
    auto disposing = dispose_all();
    co_await std::move(disposing);
  }
  if (failed)
    co_return failed;
  host_.moving.step(move_step::rebuilt, address());
  auto reserving = record_->reserve([this] { return void_by_now(); });
  failed = co_await std::move(reserving);
  if (!failed)
    host_.moving.step(move_step::row_reserved, address());
  co_return failed;
}

bool target_move::void_by_now() const {
  std::lock_guard guard{mutex_};
  return abandoned_ || given_up_ || host_.time->now() >= valid_until_;
}

task<target_move::failure> target_move::rebuild() {
  for (std::uint32_t i = 0; i < addresses_.size(); ++i) {
    auto building = request_.parts[i].actor ? rebuild_actor(i) : rebuild_spot(i);
    if (auto failed = co_await std::move(building))
      co_return failed;
  }
  co_return std::nullopt;
}

namespace {

error no_room(const std::string& what) { return {error_kind::unavailable, "this node has no room for " + what}; }
error not_known(const std::string& what) { return {error_kind::unavailable, "this node registers no type for " + what}; }

} // namespace

/// Factory, configure, on_initialize; never on_create (L-121).
task<target_move::failure> target_move::rebuild_spot(std::uint32_t index) {
  const auto& row = record_->part(index);
  const auto* factory = node_.find_factory(placement::spot_kind_of(row.kind), row.stable_type);
  if (factory == nullptr || factory->policy == relocation_policy::disable)
    co_return refusal{relocate_reason::target_unavailable, not_known(described(addresses_[index]))};
  auto object = host_.activations.make_object(node_, *factory, request_.parts[index].id);
  object->set_generations(row.generation, row.authority);
  object->timers().hold();
  members_[index].object = object;
  if (!object->take_place())
    co_return refusal{relocate_reason::target_unavailable, no_room(described(addresses_[index]))};
  auto building = host_.activations.build(*object, node_, std::nullopt);
  const auto built = co_await std::move(building);
  if (!built)
    co_return refusal{relocate_reason::state_incompatible, built.error()};
  auto restoring = restore(index);
  co_return co_await std::move(restoring);
}

task<target_move::failure> target_move::rebuild_actor(std::uint32_t index) {
  const auto& row = record_->part(index);
  const auto* factory = node_.find_actor_factory(row.stable_type);
  auto waiting = await_room(index);
  co_await std::move(waiting);
  const auto spot = spot_of(index);
  if (factory == nullptr || factory->policy == relocation_policy::disable || !node_.hosts_actors(*factory) || !spot)
    co_return refusal{relocate_reason::target_unavailable, not_known(described(addresses_[index]))};
  auto actor = new_counted<actor_object>(node_.home, host_.domain, new_counted<gate>(host_.domain), *factory, request_.parts[index].id);
  actor->set_generations(row.generation, row.authority);
  actor->timers().hold();
  actor->bind_session(content_.parts[index].session);
  members_[index].object = actor;
  if (!actor->take_place())
    co_return refusal{relocate_reason::target_unavailable, no_room(described(addresses_[index]))};
  auto entering = host_.activations.enter(node_);
  co_await std::move(entering);
  auto making = as_result(run_callback<void>(*actor, *host_.infra, "creation", [](execution_object& object) -> task<void> {
    static_cast<actor_object&>(object).construct();
    return task<void>::done();
  }));
  const auto made = co_await std::move(making);
  node_.activations->leave();
  if (!made)
    co_return refusal{relocate_reason::state_incompatible, text_of(made)};
  auto restoring = restore(index);
  if (auto failed = co_await std::move(restoring))
    co_return failed;
  actor->committed(membership_of(index), spot);
  auto settling = run_turn<bool>(*actor, *host_.infra, [](execution_object& object) {
    static_cast<actor_object&>(object).settle_down();
    return true;
  });
  co_await std::move(settling);
  co_return std::nullopt;
}

/// The source goes on to the members of a PerActor room when the cutover of its shell is sent, and that may not be open here
/// yet (L-152, L-222, L-224).
task<void> target_move::await_room(std::uint32_t index) {
  const auto& membership = record_->part(index).member_of;
  if (static_cast<unit_kind>(request_.kind) != unit_kind::member_actor || !membership)
    co_return;
  while (!spot_of(index) && host_.moving.arrives(membership->spot_id) && !void_by_now()) {
    auto pausing = placement::pause(*host_.infra, std::chrono::milliseconds{1});
    co_await std::move(pausing);
  }
}

/// Of an Actor: where it belongs on this node.
counted_ptr<spot_object> target_move::spot_of(std::uint32_t index) const {
  switch (static_cast<unit_kind>(request_.kind)) {
    case unit_kind::entry_actor: return node_.entry;
    case unit_kind::joining_actor: return spot_of_join();
    case unit_kind::member_actor: return host_.objects.find(record_->part(index).member_of->spot_id);
    default: return counted_ptr<spot_object>::share(static_cast<spot_object*>(members_.front().object.get()));
  }
}

/// The incarnation that has let it in, or the Entry Spot.
counted_ptr<spot_object> target_move::spot_of_join() const {
  if (!content_.join)
    return {};
  if (content_.join->spot_id == node_.entry_id)
    return node_.entry;
  auto spot = host_.objects.find(content_.join->spot_id);
  return spot && spot->generation().value == content_.join->spot_generation ? spot : counted_ptr<spot_object>{};
}

placement::spot_membership target_move::membership_of(std::uint32_t index) const {
  if (static_cast<unit_kind>(request_.kind) == unit_kind::entry_actor)
    return {node_.entry_id, {}};
  if (content_.join)
    return {content_.join->spot_id, {content_.join->spot_generation}};
  return record_->part(index).member_of.value_or(placement::spot_membership{});
}

/// The adapter has the last word on the state; timers and waiting work come behind it (L-122).
task<target_move::failure> target_move::restore(std::uint32_t index) {
  auto& object = *members_[index].object;
  auto restoring = as_result(run_callback<void>(object, *host_.infra, "restore", [self = shared_from_this(), index](execution_object& target) {
    return self->restore_in_turn(index, static_cast<hosted_object&>(target));
  }));
  const auto restored = co_await std::move(restoring);
  if (!restored)
    co_return refusal{relocate_reason::state_incompatible, text_of(restored)};
  co_return std::nullopt;
}

task<void> target_move::restore_in_turn(std::uint32_t index, hosted_object& object) {
  const auto& part = content_.parts[index];
  if (part.has_state) {
    auto restoring = restore_state(object, part.state);
    co_await std::move(restoring);
  }
  std::vector<counted_ptr<object_timer>> timers;
  for (std::uint32_t i = 0; i < part.timers.size(); ++i) {
    const auto& timer = part.timers[i];
    const auto invoke = find_tick_handler(timer.handler, object);
    if (invoke == nullptr)
      throw operation_failed{error{error_kind::internal_failure, "this program has no handler for timer \"" + timer.name + "\" of " + described(object.address())}};
    const bool pending = std::ranges::any_of(part.work, [i](const auto& work) { return work.is_tick && work.timer == i; });
    timers.push_back(object.timers().restore(snapshot_of(timer, host_.time->now() - arrived_), invoke, pending));
  }
  auto& staging = members_[index].work;
  for (const auto& work : part.work) {
    if (!work.is_tick) {
      staging.push_back(staged(work.frame, host_, arrived_));
      continue;
    }
    auto* r = make_record(record_kind::tick);
    r->about = counted_ptr<counted>{timers.at(work.timer)};
    staging.push_back({r, {}});
  }
}

task<void> target_move::restore_state(hosted_object& object, byte_view state) const {
  const std::stop_token never;
  if (object.is_actor()) {
    auto& actor = static_cast<actor_object&>(object);
    const auto& factory = actor.factory();
    if (factory.restore == nullptr)
      throw operation_failed{error{error_kind::internal_failure, "this node registers no adapter for " + described(object.address())}};
    return factory.restore(factory.adapter.get(), *actor.application(), state, never);
  }
  auto& spot = static_cast<spot_object&>(object);
  const auto& factory = spot.factory();
  if (factory.restore == nullptr)
    throw operation_failed{error{error_kind::internal_failure, "this node registers no adapter for " + described(object.address())}};
  return factory.restore(factory.adapter.get(), *spot.application(), state, never);
}

} // namespace zlink::detail
