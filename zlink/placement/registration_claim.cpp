// Writing the identity of a node: the first time, and again with another token.
#include "zlink/placement/registration.hpp"
#include "zlink/placement/row_steps.hpp"

namespace zlink::placement {

// -- the claim -----------------------------------------------------------------------------------------------------------------

task<registration_outcome> node_registration::claim(node_identity node, std::string entry_spot_id, steady_time until) {
  node_ = std::move(node);
  entry_spot_id_ = std::move(entry_spot_id);
  return in_turn(write_claim(until));
}

store_batch node_registration::claim_batch(const owner_token& token,
                                           const std::optional<observed_descriptor>& replaced) const {
  descriptor_record claimed;
  claimed.node = node_;
  claimed.owner = token;
  store_batch batch;
  batch.conditions.push_back(lease_held(token));
  const auto key = descriptor_key(node_);
  batch.conditions.push_back(replaced ? steps::unchanged(key, replaced->version) : steps::missing(key));
  batch.mutations.push_back({key, encode(claimed), std::nullopt});
  if (!entry_spot_id_.empty()) {
    batch.conditions.push_back(steps::missing(spot_key(entry_spot_id_))); // of a row, too: they share the key
    batch.mutations.push_back({spot_key(entry_spot_id_), encode(entry_claim{node_, token}), std::nullopt});
  }
  // A node without Entry Spot may host objects as well.
  batch.mutations.push_back({capacity_key(node_), encode(capacity_record{node_.lifecycle, {}, {}, {}}), std::nullopt});
  return batch;
}

task<registration_outcome> node_registration::write_claim(steady_time until) {
  if (phase_ != phase::idle)
    co_return registration_outcome::done;
  std::optional<observed_descriptor> replaced;
  bool in_doubt = false; // what was sent last is to be looked for first (S-156)
  while (may_go_on(until)) {
    if (!in_doubt) {
      if (!owner_.held())
        co_return registration_outcome::not_held;
      const auto token = *owner_.token();
      auto batch = claim_batch(token, replaced);
      auto writing = calls_.write(std::move(batch), until);
      const auto written = co_await std::move(writing);
      if (written && written->applied) {
        note_claimed(token, written->versions.front());
        co_return registration_outcome::done;
      }
      in_doubt = true;
    }
    auto looking = look(until);
    const auto looked = co_await std::move(looking);
    if (looked.corrupt)
      co_return registration_outcome::corrupt;
    if (looked.seen) {
      auto judging = judge_claim(*looked.seen, replaced, until);
      const auto judged = co_await std::move(judging);
      if (judged.end)
        co_return *judged.end;
      in_doubt = !judged.may_repeat;
    }
    auto pausing = pause(until);
    co_await std::move(pausing);
  }
  co_return registration_outcome::late;
}

task<node_registration::claim_judgement>
node_registration::judge_claim(const sight& seen, std::optional<observed_descriptor>& replaced, steady_time until) {
  claim_judgement judged;
  const auto& descriptor = seen.descriptor.record;
  if (descriptor && is_own(*descriptor)) {
    note_claimed(descriptor->owner, seen.descriptor.version);
    if (owner_.token() == descriptor->owner) {
      judged.end = registration_outcome::done;
    } else { // sent with a former token: rewritten like any other own record
      auto again = write_again(until);
      judged.end = co_await std::move(again);
    }
    co_return judged;
  }
  replaced.reset();
  judged.may_repeat = true;
  if (seen.entry.record)
    judged.end = registration_outcome::entry_taken;
  if (!descriptor || judged.end)
    co_return judged;
  auto reading = calls_.read<lease_record>(lease_key(descriptor->owner.owner), until);
  const auto lease = co_await std::move(reading);
  const auto* seen_lease = seen_in(lease);
  if (seen_lease && judge_lease(*seen_lease, descriptor->owner) == lease_health::over
      && descriptor->entry_spot_id.empty() && entry_spot_id_.empty())
    replaced = seen.descriptor; // over for good: no run gets a former token back
  else if (std::holds_alternative<store_failure>(lease))
    judged.may_repeat = false;
  else
    judged.end = registration_outcome::rid_taken;
  co_return judged;
}

void node_registration::note_claimed(const owner_token& token, std::string version) {
  phase_ = phase::claimed;
  current_ = {};
  current_.node = node_;
  current_.owner = token;
  version_ = std::move(version);
}

// -- a new token -------------------------------------------------------------------------------------------------------------

task<registration_outcome> node_registration::register_again(steady_time until) { return in_turn(write_again(until)); }

task<registration_outcome> node_registration::write_again(steady_time until) {
  if (phase_ == phase::idle || phase_ == phase::withdrawn)
    co_return registration_outcome::done;
  while (may_go_on(until)) {
    if (!owner_.held())
      co_return registration_outcome::not_held;
    const auto token = *owner_.token();
    auto looking = look(until);
    const auto looked = co_await std::move(looking);
    if (looked.corrupt)
      co_return registration_outcome::corrupt;
    if (looked.seen) {
      const auto& seen = *looked.seen;
      if (seen.descriptor.record && !is_own(*seen.descriptor.record))
        co_return registration_outcome::rid_taken;
      if (seen.entry.record && !is_own(seen.entry))
        co_return registration_outcome::entry_taken;
      if (seen.descriptor.record && seen.descriptor.record->owner == token) { // an answer was lost
        note_rewritten(*seen.descriptor.record, seen.descriptor.version);
        co_return registration_outcome::done;
      }
      auto content = current_;
      content.owner = token;
      content.updated_unix_ms = wall_clock_ms();
      if (phase_ == phase::published) {
        if (sent_revision_.value >= generation_limit)
          co_return registration_outcome::exhausted;
        content.revision.value = ++sent_revision_.value;
      }
      auto batch = rewriting_batch(seen, content);
      auto writing = calls_.write(std::move(batch), until);
      const auto written = co_await std::move(writing);
      if (written && written->applied) {
        note_rewritten(std::move(content), written->versions.front());
        co_return registration_outcome::done;
      }
    }
    auto pausing = pause(until);
    co_await std::move(pausing);
  }
  co_return registration_outcome::late;
}

store_batch node_registration::rewriting_batch(const sight& seen, const descriptor_record& content) const {
  store_batch batch;
  batch.conditions.push_back(lease_held(content.owner));
  const auto key = descriptor_key(node_);
  batch.conditions.push_back(seen.descriptor.record ? steps::unchanged(key, seen.descriptor.version)
                                                    : steps::missing(key));
  batch.mutations.push_back({key, encode(content), std::nullopt});
  // Former objects keep their slots; in an emptied store there are none (S-142).
  if (!seen.capacity.record) {
    batch.conditions.push_back(steps::missing(capacity_key(node_)));
    batch.mutations.push_back(
      {capacity_key(node_), encode(capacity_record{node_.lifecycle, {}, {}, {}}), std::nullopt});
  }
  if (entry_spot_id_.empty())
    return batch;
  const auto entry_key = spot_key(entry_spot_id_);
  batch.conditions.push_back(steps::as_read(entry_key, seen.entry));
  batch.mutations.push_back({entry_key, encode(entry_claim{node_, content.owner}), std::nullopt});
  return batch;
}

void node_registration::note_rewritten(descriptor_record content, std::string version) {
  current_ = std::move(content);
  version_ = std::move(version);
}

} // namespace zlink::placement
