#include "zlink/objects/row_recovery.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/placement/pause.hpp"

namespace zlink::detail {

namespace {

/// As the creator said, which is another node.
std::chrono::milliseconds patience_of(const placement::pending_creation& pending) {
  const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(defaults::longest_timeout).count();
  return std::chrono::milliseconds{std::min(pending.patience_ms, static_cast<std::uint64_t>(most))};
}

} // namespace

void row_recovery::note_own_row(const std::string& id, const placement::row_record& row) {
  const auto address = placement::address_of(row.kind, id);
  const auto known = suspects_.find(address);
  if (host_.objects.find_any(address) || host_.moving.knows(address) || host_.refuse(host_work::placement_here)) {
    if (known != suspects_.end())
      suspects_.erase(known);
    return;
  }
  const auto now = host_.time->now();
  if (known == suspects_.end() || known->second.generation != row.generation) {
    if (suspects_.size() >= most_suspects)
      std::erase_if(suspects_, [](const auto& one) { return !one.second.kept; }); // most are gone; the others are met again
    suspects_.insert_or_assign(address, suspect{row.generation, now});
    return;
  }
  if (known->second.kept)
    return;
  if (row.pending && now - known->second.since < patience_of(*row.pending))
    return;
  suspects_.erase(known);
  start_coroutine(settle(address, row.generation), [](result<void>) {});
}

void row_recovery::keep(std::string address, object_generation generation) {
  suspects_.insert_or_assign(std::move(address), suspect{generation, host_.time->now(), true});
}

bool row_recovery::keeps(const std::string& address, object_generation generation) const {
  const auto i = suspects_.find(address);
  return i != suspects_.end() && i->second.kept && i->second.generation == generation;
}

task<bool> row_recovery::release(std::string address, object_generation generation, steady_time due) {
  for (;;) {
    auto reading = host_.repository->read_object(address);
    const auto outcome = co_await std::move(reading);
    if (const auto* seen = placement::seen_in(outcome)) {
      const auto* row = placement::row_in(*seen);
      if (row == nullptr || row->generation != generation || row->owner != host_.token()) {
        suspects_.erase(address);
        co_return false;
      }
      auto applying = host_.repository->apply_if(placement::remove(*seen, {row->kind, std::string{id_in(address)}, row->owner}));
      if (co_await std::move(applying)) {
        suspects_.erase(address);
        host_.messages.routes.cache.row_seen(address, nullptr);
        co_return true;
      }
    }
    if (host_.time->now() >= due)
      throw operation_failed{error{error_kind::unavailable, "the row of " + described(address) + " could not be removed"}};
    auto pausing = placement::pause_before_retry(*host_.infra, *host_.random);
    co_await std::move(pausing);
  }
}

task<void> row_recovery::settle(std::string address, object_generation generation) {
  auto reading = host_.repository->read_object(address);
  auto outcome = co_await std::move(reading);
  const auto* seen = placement::seen_in(outcome);
  const auto* row = seen == nullptr ? nullptr : placement::row_in(*seen);
  if (row == nullptr || !host_.ownership->held() || row->generation != generation || row->owner != host_.token()
      || host_.objects.find_any(address))
    co_return;
  bool payload_lost = false;
  if (row->kind == placement::object_kind::instance_spot && row->root && !row->closing && !row->payload_lost) {
    auto resuming = host_.activations.resume(address, *seen);
    payload_lost = !co_await std::move(resuming);
    if (!payload_lost)
      co_return;
  }
  auto ending = end_row(std::string{id_in(address)}, *seen, payload_lost);
  co_await std::move(ending);
}

/// Without its first message nothing can go on: a reservation ends, of a Ready row the loss is recorded (S-129).
task<void> row_recovery::end_row(std::string id, placement::observed_object seen, bool payload_lost) {
  const auto& row = *placement::row_in(seen);
  auto* node = host_.find_node(row.node.mesh_name);
  if (node == nullptr)
    co_return;
  auto decided = row.state == placement::allocation_state::reserved
                   ? placement::abort(seen, {id, row.pending->reservation, row.owner, node->stamp(), std::nullopt})
                 : payload_lost ? placement::mark_payload_lost(seen, {row.kind, id, row.owner})
                                : placement::remove(seen, {row.kind, id, row.owner});
  auto applying = host_.repository->apply_if(std::move(decided));
  co_await std::move(applying); // whatever came of it: the next pass sees what is left
}

} // namespace zlink::detail
