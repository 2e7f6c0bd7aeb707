// The units of one `relocate()`, batch after batch (L-222 to L-227).
#include "relocation/host_relocate.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/placement/pause.hpp"

#include <algorithm>

namespace zlink::detail {

namespace {

constexpr std::chrono::milliseconds object_pause{20};   // for an object that comes to life, or ends, at the moment
constexpr std::chrono::milliseconds target_pause{200};  // until it is looked again for a target
constexpr std::chrono::milliseconds longest_interruption{1'000}; // L-230

/// Whatever is under way of it decides whether it is there at all.
bool settled(const hosted_object& object) {
  if (object.application_word().has(admission_word::staging_bit | admission_word::sealed_bit))
    return false;
  return !object.is_actor() || static_cast<const actor_object&>(object).spot() != nullptr;
}

} // namespace

std::vector<relocation_unit> host_relocate::units_left(const inventory& all) const {
  auto units = all.units(host_);
  std::erase_if(units, [this](const relocation_unit& unit) { return done_.contains(unit.lead->address()); });
  return units;
}

/// Every unit that the host had when it began, in three batches. Who was on the way into another unit then, and is not there
/// now, comes in a further round.
task<host_relocate::block> host_relocate::move_all(steady_time due) {
  done_.clear();
  shells_at_.clear();
  failed_ = {};
  for (;;) {
    const auto all = inventory::of(host_);
    const auto left = units_left(all);
    if (left.empty())
      co_return lease_gone();
    const auto done_before = done_.size();
    for (int number = 1; number <= 3; ++number) {
      std::vector<relocation_unit> units;
      std::ranges::copy_if(left, std::back_inserter(units), [number](const auto& unit) { return batch_of(unit.kind) == number; });
      auto running = run_batch(std::move(units), all, due);
      co_await std::move(running);
      if (auto ended = ended_by_host())
        co_return ended;
      if (failed_) // L-223
        co_return failed_;
    }
    if (done_.size() == done_before) {
      auto pausing = placement::pause(*host_.infra, object_pause);
      co_await std::move(pausing);
    }
  }
}

/// Ends when the last of them has; none waits for another.
task<void> host_relocate::run_batch(std::vector<relocation_unit> units, const inventory& all, steady_time due) {
  if (units.empty())
    co_return;
  auto ended = new_counted<operation<void>>();
  ended->dispatcher = host_.infra->unit();
  auto left = std::make_shared<std::size_t>(units.size());
  for (auto& unit : units) {
    auto needs = needs_of(unit, all);
    start_coroutine(move_unit(std::move(unit), std::move(needs), due), [ended, left](result<void>) {
      if (--*left == 0)
        ended->set(result<void>{});
    });
  }
  co_await task<void>{std::move(ended)};
}

/// Why no move begins any more.
std::optional<host_relocate::block> host_relocate::stopped(steady_time due) const {
  if (auto ended = ended_by_host())
    return ended;
  if (failed_)
    return block{failed_.reason, "another unit did not leave"};
  if (auto lost = lease_gone())
    return lost;
  if (host_.time->now() >= due) // L-227
    return block{relocate_reason::deadline_exceeded, "the deadline passed before the move began"};
  return std::nullopt;
}

/// It has not ended, and is still a unit of that kind.
bool host_relocate::is_there(const relocation_unit& unit) const {
  return host_.objects.find_any(unit.lead->address()).get() == unit.lead.get() && unit_kind_of(*unit.lead) == unit.kind;
}

/// Nothing: it has ended, or belongs to another unit by now.
task<std::optional<host_relocate::block>> host_relocate::until_movable(relocation_unit unit, steady_time due) {
  for (;;) {
    if (!is_there(unit))
      co_return std::nullopt;
    if (auto why = stopped(due))
      co_return std::move(*why);
    if (settled(*unit.lead))
      co_return block{};
    auto pausing = placement::pause(*host_.infra, object_pause);
    co_await std::move(pausing);
  }
}

task<void> host_relocate::move_unit(relocation_unit unit, unit_needs needs, steady_time due) {
  auto readying = until_movable(unit, due);
  auto ready = co_await std::move(readying);
  if (!ready)
    co_return;
  unit_end end{false, ready->reason, ready->why, {}};
  placement::node_identity target;
  node_list refused;
  for (bool going_on = !*ready; going_on;) {
    auto choosing = target_for(unit, needs, refused);
    const auto chosen = co_await std::move(choosing);
    if (chosen) {
      target = *chosen;
      outcome_of<unit_end> moving{mover_->move(unit, target, due)};
      auto moved = co_await moving;
      end = moved ? std::move(*moved) : unit_end{false, relocate_reason::relocation_failed, moved.is_cancelled() ? "" : moved.error().message(), {}};
      if (const auto lost = lease_gone(); lost && !end.left) {
        end.reason = lost.reason;
        end.why = lost.why;
      }
      if (!end.left && end.reason != relocate_reason::store_unavailable && !is_there(unit))
        co_return; // a Join or a close was faster; what is left of it comes in another round (J-160)
      if (end.left || end.reason != relocate_reason::target_unavailable)
        break;
      refused.push_back(target);
    } else {
      end.reason = relocate_reason::target_unavailable;
      end.why = "no node takes it at the moment";
      auto pausing = placement::pause(*host_.infra, target_pause);
      co_await std::move(pausing);
    }
    going_on = !stopped(due);
  }
  note(unit, std::move(target), std::move(end));
}

/// Nothing: there is none now. Those that have refused it are asked again later.
task<std::optional<placement::node_identity>> host_relocate::target_for(relocation_unit unit, const unit_needs& needs,
                                                                        node_list& refused) {
  std::optional<placement::node_identity> found;
  if (unit.kind == unit_kind::member_actor) {
    auto looking = node_of_its_spot(unit);
    found = co_await std::move(looking);
    if (found && (!targets_->is_reachable(*unit.node, *found) || !refused.empty()))
      found.reset();
  } else {
    auto furthest = obstacle::nobody;
    found = targets_->choose(needs, refused, furthest);
  }
  if (found)
    co_return found;
  refused.clear();
  auto looking = targets_->look(*unit.node);
  static_cast<void>(co_await std::move(looking)); // without an answer what was read before counts
  co_return std::nullopt;
}

/// The Spot may have gone in this operation, or in an earlier one that ended before its members had gone.
task<std::optional<placement::node_identity>> host_relocate::node_of_its_spot(relocation_unit member) {
  const auto at = static_cast<const actor_object&>(*member.lead).membership();
  if (const auto known = shells_at_.find(at.spot_id); known != shells_at_.end())
    co_return known->second;
  auto reading = host_.repository->read_object(at.spot_id);
  const auto outcome = co_await std::move(reading);
  const auto* seen = placement::seen_in(outcome);
  const auto* row = seen == nullptr ? nullptr : placement::row_in(*seen);
  if (row == nullptr || row->node == member.node->identity)
    co_return std::nullopt;
  co_return row->node;
}

void host_relocate::note(const relocation_unit& unit, placement::node_identity target, unit_end end) {
  if (!end.left && end.reason == relocate_reason::none)
    end.reason = relocate_reason::relocation_failed;
  if (end.left) {
    done_.insert(unit.lead->address());
    if (unit.kind == unit_kind::per_actor_spot)
      shells_at_.insert_or_assign(std::string{unit.lead->spot_id()}, target);
  } else if (!failed_) {
    failed_ = {end.reason, end.why, unit.lead};
  }
  trace_record told;
  told.category = trace_category::actor_relocation;
  told.event = "zlink.runtime.relocation.changed";
  told.mesh_name = unit.node->mesh_name();
  told.node_rid = unit.node->identity.node_rid;
  (unit.lead->is_actor() ? told.actor_type : told.spot_type) = unit.lead->type();
  told.state = end.left ? "left" : "stays";
  if (!end.left) {
    name(told, *unit.lead);
    told.reason = to_string(end.reason);
    told.cause = std::string_view{end.why}.substr(0, longest_cause);
  }
  told.unit_kind = to_string(unit.kind);
  told.execution_mode = execution_mode_of(unit.kind);
  told.interruption = end.interruption;
  told.interruption_target_exceeded = end.interruption > longest_interruption;
  host_.trace(told);
  std::lock_guard guard{mutex_};
  reports_.push_back({unit.kind, unit.node->mesh_name(), unit.lead->type(), std::string{id_in(unit.lead->address())}, std::move(target),
                      std::move(end)});
}

} // namespace zlink::detail
