#include "zlink/placement/aggregates.hpp"

#include "zlink/placement/row_steps.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace zlink::placement {

namespace {

/// How often something is read again because others were quicker.
constexpr int attempts = 8;
/// Rows under way at once: enough to fill batches, without asking a store for thousands in one go.
constexpr std::size_t rows_at_once = 512;
/// Pages deleted in one batch.
constexpr std::uint32_t pages_at_once = 512;

/// Side by side, so that their transitions share batches (D-19); the worst of their ends.
task<step_end> side_by_side(detail::infrastructure& unit, std::vector<task<step_end>> steps) {
  return task_of<step_end>(unit, [&](auto done) {
    struct run {
      decltype(done) end;
      std::size_t left;
      step_end worst = step_end::done;
    };
    if (steps.empty())
      return done(step_end::done);
    auto all = std::make_shared<run>(run{std::move(done), steps.size()});
    for (auto& step : steps)
      detail::start_coroutine(std::move(step), [all](result<step_end> end) {
        all->worst = std::max(all->worst, end ? *end : step_end::failed);
        if (--all->left == 0)
          all->end(all->worst);
      });
  });
}

/// Makes a step of each participant, a few hundred at a time.
template <class Make>
task<step_end> for_all(repository& records, std::vector<participant> list, Make make) {
  for (std::size_t at = 0; at < list.size();) {
    std::vector<task<step_end>> steps;
    for (const auto end = std::min(list.size(), at + rows_at_once); at < end; ++at)
      steps.push_back(make(std::move(list[at])));
    auto running = side_by_side(records.unit(), std::move(steps));
    if (const auto end = co_await std::move(running); end != step_end::done)
      co_return end;
  }
  co_return step_end::done;
}

/// What an attempt came to; nothing: others were quicker, so it is read again.
std::optional<step_end> end_of(const std::optional<fragment_result>& result) noexcept {
  if (!result)
    return step_end::refused;
  switch (result->what) {
    case fragment_outcome::applied: return step_end::done;
    case fragment_outcome::conflict: return std::nullopt;
    case fragment_outcome::not_applied: return step_end::failed;
    default: return step_end::refused;
  }
}

template <class Record>
step_end why_unseen(const read_outcome<Record>& outcome) noexcept {
  return std::holds_alternative<store_failure>(outcome) ? step_end::failed : step_end::refused;
}

task<step_end> store_page(repository& records, std::string key, std::string page) {
  store_batch batch;
  batch.conditions.push_back(steps::missing(key));
  batch.mutations.push_back({key, page, std::nullopt});
  auto writing = records.write(std::move(batch));
  const auto written = co_await std::move(writing);
  if (written && written->applied)
    co_return step_end::done;
  auto reading = records.read<participant_page>(std::move(key)); // an answer that got lost, or the same list before
  const auto outcome = co_await std::move(reading);
  const auto* seen = seen_in(outcome);
  if (seen == nullptr)
    co_return why_unseen(outcome);
  if (!seen->record)
    co_return step_end::failed;
  co_return encode(*seen->record) == page ? step_end::done : step_end::refused;
}

/// The record as it was seen before the first of many rows; later attempts read it again.
using first_sight = std::shared_ptr<const read_outcome<aggregate_record>>;

task<read_outcome<aggregate_record>> look(repository& records, detail::unique_id aggregate, first_sight first) {
  if (first && seen_in(*first) && seen_in(*first)->record && seen_in(*first)->record->id == aggregate)
    co_return *first;
  auto reading = records.read<aggregate_record>(aggregate_key(aggregate));
  co_return co_await std::move(reading);
}

/// `of`: only this aggregate; a row that is in another one by now has left it. Zero: whatever it is in.
task<step_end> leave(repository& records, object_kind kind, std::string id, detail::unique_id of, owner_token by, first_sight first) {
  for (int i = 0; i < attempts; ++i) {
    auto reading_row = records.read<object_record>(object_key(kind, id));
    const auto row = co_await std::move(reading_row);
    if (seen_in(row) == nullptr)
      co_return why_unseen(row);
    const auto* known = row_in(*seen_in(row));
    if (known == nullptr || !known->aggregate || (of && known->aggregate != of))
      co_return step_end::done;
    auto looking = look(records, known->aggregate, std::exchange(first, nullptr));
    const auto aggregate = co_await std::move(looking);
    if (seen_in(aggregate) == nullptr)
      co_return why_unseen(aggregate);
    auto applying = records.apply_if(leave_aggregate(*seen_in(row), known->kind, id, *seen_in(aggregate), by));
    const auto applied = co_await std::move(applying);
    if (const auto end = end_of(applied))
      co_return *end;
  }
  co_return step_end::failed;
}

task<step_end> enter_one(repository& records, detail::unique_id aggregate, participant one, first_sight first) {
  for (int i = 0; i < attempts; ++i) {
    auto looking = look(records, aggregate, std::exchange(first, nullptr));
    const auto by = co_await std::move(looking);
    auto reading_row = records.read<object_record>(object_key(one.kind, one.id));
    const auto row = co_await std::move(reading_row);
    if (seen_in(by) == nullptr)
      co_return why_unseen(by);
    if (seen_in(row) == nullptr)
      co_return why_unseen(row);
    const auto* known = row_in(*seen_in(row));
    if (known != nullptr && known->aggregate == aggregate)
      co_return step_end::done;
    if (known != nullptr && known->aggregate && seen_in(by)->record) { // what moved it here is over: it stands for itself again
      auto leaving = leave(records, one.kind, one.id, known->aggregate, seen_in(by)->record->owner, nullptr);
      if (const auto end = co_await std::move(leaving); end != step_end::done)
        co_return end;
      continue;
    }
    auto applying = records.apply_if(enter_aggregate(*seen_in(row), one, *seen_in(by)));
    const auto applied = co_await std::move(applying);
    if (const auto end = end_of(applied))
      co_return *end;
  }
  co_return step_end::failed;
}

} // namespace

task<step_end> store_participants(repository& records, detail::unique_id aggregate, std::vector<std::string> pages) {
  for (std::size_t i = 0; i < pages.size(); ++i) {
    auto storing = store_page(records, aggregate_page_key(aggregate, static_cast<std::uint32_t>(i)), std::move(pages[i]));
    if (const auto end = co_await std::move(storing); end != step_end::done)
      co_return end;
  }
  co_return step_end::done;
}

task<participants_outcome> read_participants(repository& records, detail::unique_id aggregate, participant_root root) {
  participant_reader list{root};
  for (std::uint32_t i = 0; i < root.pages; ++i) {
    auto reading = records.read<participant_page>(aggregate_page_key(aggregate, i));
    const auto page = co_await std::move(reading);
    if (std::holds_alternative<store_failure>(page))
      co_return payload_fault::unavailable;
    const auto* seen = seen_in(page);
    if (seen == nullptr || !seen->record || !list.add(encode(*seen->record)))
      co_return payload_fault::lost;
  }
  auto whole = list.finish();
  if (!whole)
    co_return payload_fault::lost;
  co_return std::move(*whole);
}

task<step_end> enter_all(repository& records, detail::unique_id aggregate, std::vector<participant> list) {
  auto looking = look(records, aggregate, nullptr);
  const auto first = std::make_shared<const read_outcome<aggregate_record>>(co_await std::move(looking));
  auto entering = for_all(records, std::move(list), [&records, aggregate, first](participant one) {
    return enter_one(records, aggregate, std::move(one), first);
  });
  co_return co_await std::move(entering);
}

task<step_end> leave_one(repository& records, object_kind kind, std::string id, owner_token by) {
  return leave(records, kind, std::move(id), {}, by, nullptr);
}

task<step_end> leave_all(repository& records, detail::unique_id aggregate, std::vector<participant> list, owner_token by) {
  auto looking = look(records, aggregate, nullptr);
  const auto first = std::make_shared<const read_outcome<aggregate_record>>(co_await std::move(looking));
  auto leaving = for_all(records, std::move(list), [&records, aggregate, by, first](participant one) {
    return leave(records, one.kind, std::move(one.id), aggregate, by, first);
  });
  co_return co_await std::move(leaving);
}

task<step_end> dissolve(repository& records, detail::unique_id aggregate, owner_token by) {
  auto looking = look(records, aggregate, nullptr);
  const auto outcome = co_await std::move(looking);
  if (seen_in(outcome) == nullptr)
    co_return why_unseen(outcome);
  const auto& record = seen_in(outcome)->record;
  if (!record)
    co_return step_end::done;
  if (record->owner != by || is_moving(*record))
    co_return step_end::refused;
  auto reading = read_participants(records, aggregate, record->participants);
  auto list = co_await std::move(reading);
  if (const auto* fault = std::get_if<payload_fault>(&list))
    co_return *fault == payload_fault::lost ? step_end::refused : step_end::failed;
  auto leaving = leave_all(records, aggregate, std::move(std::get<std::vector<participant>>(list)), by);
  if (const auto end = co_await std::move(leaving); end != step_end::done)
    co_return end;
  auto dropping = drop_all(records, aggregate, by);
  co_return co_await std::move(dropping);
}

task<step_end> end_aggregate_move(repository& records, detail::unique_id aggregate, owner_token by) {
  for (int i = 0; i < attempts; ++i) {
    auto reading = records.read<aggregate_record>(aggregate_key(aggregate));
    const auto outcome = co_await std::move(reading);
    const auto* seen = seen_in(outcome);
    if (seen == nullptr)
      co_return why_unseen(outcome);
    const auto& record = seen->record;
    if (!record)
      co_return step_end::done;
    if (record->owner != by)
      co_return step_end::refused;
    if (!is_moving(*record))
      co_return step_end::done;
    const auto& move = *record->move;
    auto applying = records.apply_if(move.stage == move_stage::prepared
                                       ? release_aggregate_move(*seen, move.relocation, move.attempt)
                                       : set_aggregate_progress(*seen, by, std::nullopt));
    const auto applied = co_await std::move(applying);
    if (const auto end = end_of(applied))
      co_return *end;
  }
  co_return step_end::failed;
}

task<step_end> drop_all(repository& records, detail::unique_id aggregate, owner_token by) {
  std::uint32_t pages = 0;
  for (int i = 0;; ++i) {
    auto reading = records.read<aggregate_record>(aggregate_key(aggregate));
    const auto outcome = co_await std::move(reading);
    if (seen_in(outcome) == nullptr)
      co_return why_unseen(outcome);
    if (!seen_in(outcome)->record)
      co_return step_end::done;
    pages = seen_in(outcome)->record->participants.pages;
    auto applying = records.apply_if(drop_aggregate(*seen_in(outcome), by));
    const auto applied = co_await std::move(applying);
    const auto end = end_of(applied);
    if (end == step_end::done)
      break;
    if (end || i + 1 == attempts)
      co_return end.value_or(step_end::failed);
  }
  for (std::uint32_t at = 0; at < pages;) {
    store_batch batch;
    for (const auto end = std::min(pages, at + pages_at_once); at < end; ++at)
      batch.mutations.push_back(steps::erased(aggregate_page_key(aggregate, at)));
    auto erasing = records.write(std::move(batch));
    co_await std::move(erasing); // whatever comes of it: without the record nobody looks for them
  }
  co_return step_end::done;
}

task<step_end> release_dead_member(repository& records, object_kind kind, std::string id,
                                   detail::object_generation exact) {
  for (int i = 0; i < attempts; ++i) {
    auto reading_row = records.read_effective(object_key(kind, id));
    const auto row = co_await std::move(reading_row);
    if (seen_in(row) == nullptr)
      co_return why_unseen(row);
    const auto* known = row_in(*seen_in(row));
    if (known == nullptr || known->generation != exact || !known->aggregate)
      co_return step_end::refused;
    auto reading_by = records.read<aggregate_record>(aggregate_key(known->aggregate));
    const auto by = co_await std::move(reading_by);
    if (seen_in(by) == nullptr)
      co_return why_unseen(by);
    const auto& aggregate = *seen_in(by);
    const auto owner = aggregate.record ? aggregate.record->owner : known->owner;
    auto reading_lease = records.read<lease_record>(lease_key(owner.owner));
    const auto lease = co_await std::move(reading_lease);
    if (seen_in(lease) == nullptr)
      co_return why_unseen(lease);
    const bool moving = aggregate.record && is_moving(*aggregate.record);
    auto applying = records.apply_if(
      moving ? abandon_aggregate_move(aggregate, *seen_in(lease))
             : release_from_aggregate(*seen_in(row), known->kind, id, exact, aggregate, *seen_in(lease)));
    const auto applied = co_await std::move(applying);
    const auto end = end_of(applied);
    if (end && (*end != step_end::done || !moving))
      co_return *end;
  }
  co_return step_end::failed;
}

} // namespace zlink::placement
