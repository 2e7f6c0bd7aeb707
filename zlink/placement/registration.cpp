#include "zlink/placement/registration.hpp"

#include "zlink/placement/row_steps.hpp"

#include <algorithm>
#include <chrono>

namespace zlink::placement {

namespace {

constexpr std::chrono::milliseconds retry_pause{100};

} // namespace

const char* to_string(registration_outcome outcome) noexcept {
  switch (outcome) {
    case registration_outcome::done: return "done";
    case registration_outcome::rid_taken: return "the RID is held by another node";
    case registration_outcome::entry_taken: return "the Entry Spot id is in use";
    case registration_outcome::refused: return "the change is not allowed inside a node lifecycle";
    case registration_outcome::exhausted: return "no descriptor revision is left";
    case registration_outcome::not_held: return "the owner lease of this host is not held";
    case registration_outcome::gone: return "the records of the node are gone";
    case registration_outcome::corrupt: return "a record of the node cannot be used";
    case registration_outcome::late: return "the Location Store did not answer in time";
  }
  return "unknown";
}

node_registration::node_registration(detail::infrastructure& unit, repository& records, const ownership& owner)
  : owner_(owner), calls_(unit, records.location()) {}

std::optional<descriptor_stamp> node_registration::stamp() const {
  if (phase_ != phase::published)
    return std::nullopt;
  return descriptor_stamp{node_, version_};
}

// -- one call after the other ----------------------------------------------------------------------------------------------

task<void> node_registration::take_turn() {
  if (busy_) {
    auto turn = detail::new_counted<detail::operation<void>>();
    turn->dispatcher = calls_.unit().unit();
    waiting_.push_back(turn);
    co_await task<void>{std::move(turn)};
  }
  busy_ = true;
}

void node_registration::end_turn() {
  if (waiting_.empty()) {
    busy_ = false;
    return;
  }
  auto next = std::move(waiting_.front()); // stays busy: nobody gets in between
  waiting_.pop_front();
  next->set(result<void>{});
}

task<registration_outcome> node_registration::in_turn(task<registration_outcome> step) {
  auto taking = take_turn();
  co_await std::move(taking);
  struct turn {
    node_registration& of;
    ~turn() { of.end_turn(); } // also when the application's `edit` throws
  } held{*this};
  co_return co_await std::move(step);
}

// -- looking -----------------------------------------------------------------------------------------------------------------

bool node_registration::is_own(const descriptor_record& record) const noexcept {
  return record.node == node_ && record.owner.owner == owner_.owner();
}

bool node_registration::is_own(const observed_object& entry) const noexcept {
  const auto* claim = claim_in(entry);
  return claim && claim->node == node_ && claim->owner.owner == owner_.owner();
}

task<node_registration::look_result> node_registration::look(steady_time until) {
  look_result looked;
  sight seen;
  auto reading_descriptor = calls_.read<descriptor_record>(descriptor_key(node_), until);
  auto descriptor = co_await std::move(reading_descriptor);
  auto reading_capacity = calls_.read<capacity_record>(capacity_key(node_), until);
  auto capacity = co_await std::move(reading_capacity);
  looked.corrupt = std::holds_alternative<record_fault>(descriptor) || std::holds_alternative<record_fault>(capacity);
  if (!seen_in(descriptor) || !seen_in(capacity))
    co_return looked;
  seen.descriptor = *seen_in(descriptor);
  seen.capacity = *seen_in(capacity);
  if (!entry_spot_id_.empty()) {
    auto reading_entry = calls_.read<object_record>(spot_key(entry_spot_id_), until);
    auto entry = co_await std::move(reading_entry);
    looked.corrupt = std::holds_alternative<record_fault>(entry);
    if (!seen_in(entry))
      co_return looked;
    seen.entry = *seen_in(entry);
  }
  looked.seen = std::move(seen);
  co_return looked;
}

bool node_registration::may_go_on(steady_time until) const noexcept {
  return !calls_.stopped() && calls_.now() < until;
}

task<void> node_registration::pause(steady_time until) {
  return calls_.pause_until(std::min(until, calls_.now() + retry_pause));
}

// -- publications ----------------------------------------------------------------------------------------------------------------

task<registration_outcome> node_registration::publish(descriptor_record content, steady_time until) {
  return in_turn(publish_in_turn(std::move(content), until));
}

task<registration_outcome> node_registration::change(unique_function<void(descriptor_record&)> edit,
                                                     steady_time until) {
  return in_turn(change_in_turn(std::move(edit), until, writing::if_changed));
}

task<registration_outcome> node_registration::change_for_sure(unique_function<void(descriptor_record&)> edit,
                                                              steady_time until) {
  return in_turn(change_in_turn(std::move(edit), until, writing::always));
}

task<registration_outcome> node_registration::change_in_turn(unique_function<void(descriptor_record&)> edit,
                                                             steady_time until, writing how) {
  auto content = current_;
  content.revision = {};
  edit(content);
  auto publishing = publish_in_turn(std::move(content), until, how);
  co_return co_await std::move(publishing);
}

task<registration_outcome> node_registration::publish_in_turn(descriptor_record content, steady_time until, writing how) {
  if (phase_ == phase::idle || phase_ == phase::withdrawn)
    co_return registration_outcome::gone;
  content.node = node_;
  content.owner = current_.owner;
  content.entry_spot_id = entry_spot_id_;
  if (phase_ == phase::published) {
    switch (judge_publication(current_, content)) {
      case publication::replay: co_return registration_outcome::done;
      case publication::refused: co_return registration_outcome::refused;
      case publication::exhausted: co_return registration_outcome::exhausted;
      case publication::counts: {
        if (how == writing::always)
          break;
        content.revision = current_.revision;
        current_ = std::move(content);
        co_return registration_outcome::done;
      }
      case publication::change: break;
    }
  } else if (content.state == node_state::claimed) {
    co_return registration_outcome::refused;
  }
  if (!content.revision)
    content.revision.value = sent_revision_.value + 1;
  else if (content.revision <= sent_revision_)
    co_return registration_outcome::refused; // sent before with other content, and may still come through
  if (content.revision.value > generation_limit)
    co_return registration_outcome::exhausted;
  if (!is_storable(content))
    co_return registration_outcome::refused;
  auto storing = store_publication(std::move(content), until);
  co_return co_await std::move(storing);
}

/// Sends until it is stored, or cannot be. Content and revision stay the same, so that a repetition is a replay (S-156).
task<registration_outcome> node_registration::store_publication(descriptor_record content, steady_time until) {
  bool in_doubt = false;
  content.updated_unix_ms = wall_clock_ms();
  while (may_go_on(until)) {
    if (!in_doubt) {
      // A record with a former token has to be registered again first.
      if (!owner_.held() || current_.owner != *owner_.token())
        co_return registration_outcome::not_held;
      content.owner = current_.owner;
      sent_revision_ = content.revision;
      store_batch batch;
      batch.conditions.push_back(lease_held(content.owner));
      batch.conditions.push_back(steps::unchanged(descriptor_key(node_), version_));
      batch.mutations.push_back({descriptor_key(node_), encode(content), std::nullopt});
      auto writing = calls_.write(std::move(batch), until);
      const auto written = co_await std::move(writing);
      if (written && written->applied) {
        note_published(std::move(content), written->versions.front());
        co_return registration_outcome::done;
      }
      in_doubt = true;
    }
    auto reading = calls_.read<descriptor_record>(descriptor_key(node_), until);
    const auto outcome = co_await std::move(reading);
    if (std::holds_alternative<record_fault>(outcome))
      co_return registration_outcome::corrupt;
    if (const auto* seen = seen_in(outcome)) {
      if (!seen->record || !is_own(*seen->record))
        co_return registration_outcome::gone;
      version_ = seen->version;
      if (seen->record->revision == content.revision) {
        note_published(std::move(content), seen->version);
        co_return registration_outcome::done;
      }
      in_doubt = false;
    }
    auto pausing = pause(until);
    co_await std::move(pausing);
  }
  co_return registration_outcome::late;
}

task<void> node_registration::look_at_own(steady_time until) {
  auto looking = in_turn(look_in_turn(until));
  co_await std::move(looking);
}

task<registration_outcome> node_registration::look_in_turn(steady_time until) {
  if (phase_ != phase::published)
    co_return registration_outcome::gone;
  auto reading = calls_.read<descriptor_record>(descriptor_key(node_), until);
  const auto outcome = co_await std::move(reading);
  const auto* seen = seen_in(outcome);
  if (seen == nullptr || !seen->record || !is_own(*seen->record))
    co_return registration_outcome::late;
  version_ = seen->version;
  if (seen->record->revision != current_.revision)
    current_ = *seen->record;
  co_return registration_outcome::done;
}

void node_registration::note_published(descriptor_record content, std::string version) {
  phase_ = phase::published;
  current_ = std::move(content);
  version_ = std::move(version);
}

std::uint64_t node_registration::wall_clock_ms() const {
  const auto since_epoch = calls_.unit().time().wall_now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count());
}

// -- the end -----------------------------------------------------------------------------------------------------------------

task<registration_outcome> node_registration::withdraw(steady_time until) { return in_turn(remove_records(until)); }

task<registration_outcome> node_registration::remove_records(steady_time until) {
  if (node_.node_rid.empty() || phase_ == phase::withdrawn)
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
      if (!seen.descriptor.record || !is_own(*seen.descriptor.record)) {
        phase_ = phase::withdrawn;
        co_return registration_outcome::done;
      }
      if (seen.descriptor.record->owner != token)
        co_return registration_outcome::not_held;
      store_batch batch;
      batch.conditions.push_back(lease_held(token));
      batch.conditions.push_back(steps::unchanged(descriptor_key(node_), seen.descriptor.version));
      batch.mutations.push_back(steps::erased(descriptor_key(node_)));
      if (is_own(seen.entry)) {
        batch.conditions.push_back(steps::as_read(spot_key(entry_spot_id_), seen.entry));
        batch.mutations.push_back(steps::erased(spot_key(entry_spot_id_)));
      }
      // Whoever takes slots on this node requires the descriptor, so that nobody misses this record (S-83).
      if (seen.capacity.record)
        batch.mutations.push_back(steps::erased(capacity_key(node_)));
      auto writing = calls_.write(std::move(batch), until);
      const auto written = co_await std::move(writing);
      if (written && written->applied) {
        phase_ = phase::withdrawn;
        co_return registration_outcome::done;
      }
    }
    auto pausing = pause(until);
    co_await std::move(pausing);
  }
  co_return registration_outcome::late;
}

} // namespace zlink::placement
