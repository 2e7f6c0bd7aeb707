#include "zlink/placement/sweep.hpp"

#include "zlink/placement/aggregates.hpp"
#include "zlink/placement/lease.hpp"

#include <algorithm>

namespace zlink::placement {

namespace {

/// How often a scan whose snapshot got lost is begun again (S-14).
constexpr int scan_attempts = 4;
/// How often a row is read again after a Conflict; the next pass or the next caller gets what is left.
constexpr int row_attempts = 3;

} // namespace

struct sweep::context {
  context(detail::infrastructure& unit, repository& all) : records(all), calls(unit, all.location()) {}
  repository& records;
  store_calls calls;
};

sweep::sweep(detail::infrastructure& unit, repository& records, const ownership& owner, const sweep_settings& settings,
             own_row found)
  : owner_(owner), settings_(settings), found_(std::move(found)), context_(std::make_shared<context>(unit, records)) {}

sweep::~sweep() = default;

void sweep::add_node(node_identity node) { nodes_.push_back(std::move(node)); }

// -- passes ------------------------------------------------------------------------------------------------------------------

task<sweep_report> sweep::scan() {
  pass what;
  if (owner_.token())
    what.token = *owner_.token();
  return run(std::move(what));
}

task<sweep_report> sweep::remove_own(steady_time until) {
  pass what;
  what.why = purpose::remove_own;
  what.until = until;
  if (owner_.token())
    what.token = *owner_.token();
  return run(std::move(what));
}

task<sweep_report> sweep::run(pass what) {
  what.report = std::make_shared<sweep_report>();
  bool complete = owner_.held(); // no transition without a lease (S-40)
  for (const auto kind : {object_kind::actor, object_kind::instance_spot}) {
    if (!complete)
      break;
    auto passing = pass_over(what, kind);
    complete = co_await std::move(passing);
  }
  what.report->complete = complete;
  co_return *what.report;
}

/// All Actors, or all Spots whatever their kind. False: not all of them were seen.
task<bool> sweep::pass_over(const pass& what, object_kind kind) {
  auto& calls = context_->calls;
  const auto prefix = kind == object_kind::actor ? actor_prefix() : spot_prefix();
  std::string cursor;
  for (int attempts = 1; attempts <= scan_attempts;) {
    if (calls.stopped() || calls.now() >= what.until)
      co_return false;
    const auto until = std::min(what.until, calls.now() + settings_.call_timeout);
    auto scanning = calls.scan(prefix, cursor, settings_.page_items, until);
    const auto page = co_await std::move(scanning);
    if (!page)
      co_return false;
    if (page->expired) {
      cursor.clear();
      ++attempts;
      continue;
    }
    what.report->rows += page->items.size();
    auto running = run_all(steps_for(what, kind, *page), what.until);
    co_await std::move(running);
    if (page->next.empty())
      co_return true;
    cursor = page->next;
    if (what.page_pause.count() > 0) {
      auto pausing = calls.pause_until(calls.now() + what.page_pause);
      co_await std::move(pausing);
    }
  }
  co_return false;
}

/// A scanned row is only a candidate: each step reads it again (S-14).
std::vector<task<void>> sweep::steps_for(const pass& what, object_kind kind, const store_scan_result& page) {
  std::vector<task<void>> steps;
  for (const auto& item : page.items) {
    const auto record = decode<object_record>(item.value.bytes);
    if (std::holds_alternative<record_fault>(record)) {
      ++what.report->unusable;
      continue;
    }
    const auto* row = std::get_if<row_record>(&std::get<object_record>(record));
    if (!row)
      continue; // an Entry Spot's claim goes with its descriptor
    std::string id{id_in_key(item.key)};
    if (what.why == purpose::remove_own) {
      if (row->owner == what.token || row->aggregate) // whose record says who owns it
        steps.push_back(remove_one(context_, kind, std::move(id), what.token, what.report));
    } else if (is_own(*row, what.token)) {
      if (found_)
        found_(id, *row);
    } else if (row->aggregate) {
      steps.push_back(let_leave(context_, kind, std::move(id), what.token, false));
    } else if (row->state == allocation_state::reserved) {
      steps.push_back(release_dead(context_, kind, std::move(id), what.report));
    }
  }
  return steps;
}

bool sweep::is_own(const row_record& row, const owner_token& token) const {
  return !is_moving(row) && !row.aggregate && row.owner == token && std::find(nodes_.begin(), nodes_.end(), row.node) != nodes_.end();
}

/// Side by side, so that their transitions share batches (D-19).
task<void> sweep::run_all(std::vector<task<void>> steps, steady_time until) {
  if (steps.empty())
    co_return;
  auto running = context_->calls.within<std::monostate>(until, [&](auto done) {
    auto end = std::make_shared<decltype(done)>(std::move(done));
    auto left = std::make_shared<std::size_t>(steps.size());
    for (auto& step : steps)
      detail::start_coroutine(std::move(step), [end, left](result<void>) {
        if (--*left == 0)
          (*end)(std::monostate{});
      });
  });
  co_await std::move(running);
}

// -- rows --------------------------------------------------------------------------------------------------------------------

/// True if the step ended; false: the row is to be read again.
task<bool> sweep::apply(context_ptr on, decision decided, std::shared_ptr<sweep_report> report) {
  if (const auto* why = std::get_if<refusal>(&decided)) {
    if (*why == refusal::corrupt)
      ++report->unusable;
    co_return true;
  }
  auto applying = on->records.apply(std::move(std::get<fragment>(decided)));
  const auto end = co_await std::move(applying);
  if (end.what == fragment_outcome::applied)
    ++report->removed;
  if (end.what == fragment_outcome::corrupt)
    ++report->unusable;
  co_return end.what != fragment_outcome::conflict;
}

task<void> sweep::release_dead(context_ptr on, object_kind kind, std::string id, std::shared_ptr<sweep_report> report) {
  for (int i = 0; i < row_attempts; ++i) {
    auto reading_row = on->records.read<object_record>(object_key(kind, id));
    const auto row_seen = co_await std::move(reading_row);
    const auto* seen = seen_in(row_seen);
    const auto* row = seen ? row_in(*seen) : nullptr;
    if (!row || row->state != allocation_state::reserved)
      co_return;
    auto reading_lease = on->records.read<lease_record>(lease_key(row->owner.owner));
    const auto lease = co_await std::move(reading_lease);
    auto reading_descriptor = on->records.read<descriptor_record>(descriptor_key(row->node));
    const auto descriptor = co_await std::move(reading_descriptor);
    if (std::holds_alternative<record_fault>(lease) || std::holds_alternative<record_fault>(descriptor))
      ++report->unusable;
    if (!seen_in(lease) || !seen_in(descriptor))
      co_return;
    lifecycle_evidence evidence;
    evidence.lease = *seen_in(lease);
    evidence.descriptor = *seen_in(descriptor);
    auto applying = apply(on, release(*seen, id, evidence), report);
    if (co_await std::move(applying))
      co_return;
  }
}

/// A row that this host has by an aggregate whose move is over becomes one of its own; `by_force` the move ends with it.
task<void> sweep::let_leave(context_ptr on, object_kind kind, std::string id, owner_token token, bool by_force) {
  auto reading = on->records.read_effective(object_key(kind, id));
  const auto outcome = co_await std::move(reading);
  const auto* seen = seen_in(outcome);
  const auto* row = seen ? row_in(*seen) : nullptr;
  if (!row || !row->aggregate || row->owner != token)
    co_return;
  if (by_force) {
    auto ending = end_aggregate_move(on->records, row->aggregate, token);
    co_await std::move(ending);
  }
  auto leaving = leave_one(on->records, kind, std::move(id), token);
  co_await std::move(leaving);
}

task<void> sweep::remove_one(context_ptr on, object_kind kind, std::string id, owner_token token,
                             std::shared_ptr<sweep_report> report) {
  for (int i = 0; i < row_attempts; ++i) {
    auto reading_row = on->records.read_effective(object_key(kind, id));
    const auto row_seen = co_await std::move(reading_row);
    const auto* seen = seen_in(row_seen);
    const auto* row = seen ? row_in(*seen) : nullptr;
    if (!row || row->owner != token)
      co_return;
    if (row->aggregate) {
      auto leaving = let_leave(on, kind, id, token, true);
      co_await std::move(leaving);
      continue;
    }
    decision decided = refusal::conflict;
    if (row->state == allocation_state::active) {
      owned_object object;
      object.kind = row->kind;
      object.id = id;
      object.owner = token;
      decided = remove(*seen, object);
    } else {
      auto reading_descriptor = on->records.read<descriptor_record>(descriptor_key(row->node));
      const auto descriptor = co_await std::move(reading_descriptor);
      if (!seen_in(descriptor) || !seen_in(descriptor)->record)
        co_return; // released by anybody once the lease is over
      reservation_end end;
      end.id = id;
      end.reservation = row->pending->reservation;
      end.target_owner = token;
      end.target = {row->node, seen_in(descriptor)->version};
      decided = abort(*seen, end);
    }
    auto applying = apply(on, std::move(decided), report);
    if (co_await std::move(applying))
      co_return;
  }
}

// -- in the background ---------------------------------------------------------------------------------------------------------

void sweep::start() {
  running_ = true;
  detail::start_coroutine(keep(), [this](result<void>) { on_keep_end(); });
}

task<void> sweep::keep() {
  auto& calls = context_->calls;
  while (!calls.stopped()) {
    pass what;
    what.page_pause = settings_.page_pause;
    if (owner_.token())
      what.token = *owner_.token();
    auto running = run(std::move(what));
    co_await std::move(running);
    auto pausing = calls.pause_until(calls.now() + settings_.pass_interval);
    co_await std::move(pausing);
  }
}

void sweep::on_keep_end() {
  running_ = false;
  for (auto& one : std::exchange(waiting_for_end_, {}))
    one->set(result<void>{});
}

task<void> sweep::stop() {
  context_->calls.stop();
  if (running_) {
    auto ended = detail::new_counted<detail::operation<void>>();
    ended->dispatcher = context_->calls.unit().unit();
    waiting_for_end_.push_back(ended);
    co_await task<void>{std::move(ended)};
  }
  context_ = std::make_shared<context>(context_->calls.unit(), context_->records); // for `remove_own`, which comes after it
}

} // namespace zlink::placement
