// What is looked at while the host still serves; nothing is changed by it (L-214 to L-219).
#include "relocation/host_relocate.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/placement/pause.hpp"

#include <algorithm>

namespace zlink::detail {

namespace {

constexpr std::chrono::milliseconds look_pause{200}; // until it is looked again for a target

relocate_reason reason_of(obstacle furthest) noexcept {
  return furthest == obstacle::policy ? relocate_reason::state_incompatible : relocate_reason::target_unavailable;
}

std::string never_leaves(const hosted_object& object) { return described(object.address()) + " never leaves its node, as its factory says"; }

} // namespace

/// Serves on until there is a target for every unit, or it is known that there will be none (L-219).
task<host_relocate::block> host_relocate::until_possible(steady_time due) {
  const auto by_hand = [](const auto& node) { return !node->runtime().settings.peers.empty(); };
  if (std::ranges::any_of(host_.nodes, by_hand))
    co_return block{relocate_reason::manual_topology_unsupported, "a mesh has peers by hand"};
  auto refreshing = refresh_nodes();
  if (auto why = co_await std::move(refreshing))
    co_return why;
  for (;;) {
    auto looking = look();
    auto why = co_await std::move(looking);
    if (auto ended = ended_by_host())
      co_return ended;
    const bool may_come = why.reason == relocate_reason::target_unavailable || why.reason == relocate_reason::state_incompatible;
    const auto now = host_.time->now();
    if (!may_come || now >= due)
      co_return why;
    auto pausing = placement::pause(*host_.infra, std::min<steady_duration>(look_pause, due - now));
    co_await std::move(pausing);
  }
}

/// The store answers now.
task<host_relocate::block> host_relocate::refresh_nodes() {
  if (host_.repository)
    for (auto& node : host_.nodes) {
      auto refreshing = node->runtime().peers_known->refresh();
      if (co_await std::move(refreshing) != placement::refresh_outcome::complete)
        co_return block{relocate_reason::store_unavailable, "the Location Store does not tell which nodes there are"};
    }
  co_return block{};
}

task<host_relocate::block> host_relocate::look() {
  if (!host_.repository)
    co_return block{}; // no objects without a store (C-20)
  const auto unregistered = [](const auto& node) { return !node->runtime().registration->stamp(); };
  if (!host_.ownership->held() || host_.refuse_owned_work() || std::ranges::any_of(host_.nodes, unregistered))
    co_return block{relocate_reason::store_unavailable, "this host does not hold its ownership lease at the moment"};
  token_ = host_.token();
  auto all = inventory::of(host_);
  if (auto fixed = all.find_fixed())
    co_return block{relocate_reason::relocation_disabled, never_leaves(*fixed), std::move(fixed)};
  if (all.empty())
    co_return block{}; // L-218
  for (auto& node : host_.nodes) {
    auto looking = targets_->look(node->runtime());
    if (!co_await std::move(looking))
      co_return block{relocate_reason::store_unavailable, "the Location Store does not tell what is free on other nodes"};
  }
  all = inventory::of(host_); // of this moment
  if (auto fixed = all.find_fixed())
    co_return block{relocate_reason::relocation_disabled, never_leaves(*fixed), std::move(fixed)};
  co_return plan(all, *targets_);
}

/// Every unit has a node at the same time as all others (L-217). Members of a PerActor Spot are part of what its shell
/// needs; one whose shell has gone before follows it, wherever that is.
host_relocate::block host_relocate::plan(const inventory& all, unit_targets rooms) {
  for (const auto& unit : all.units(host_)) {
    if (unit.kind == unit_kind::member_actor)
      continue;
    auto furthest = obstacle::nobody;
    if (!rooms.choose(needs_of(unit, all), {}, furthest))
      return {reason_of(furthest), std::string{to_string(unit.kind)} + " of type \"" + unit.lead->type() + "\": " + to_string(furthest), unit.lead};
  }
  return {};
}

} // namespace zlink::detail
