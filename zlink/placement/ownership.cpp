#include "zlink/placement/ownership.hpp"

#include "zlink/placement/row_steps.hpp"

#include <algorithm>
#include <stdexcept>

namespace zlink::placement {

namespace {

/// Between attempts inside one renew timeout: a store that fails at once is not asked in a tight loop.
constexpr std::chrono::milliseconds retry_pause{100};

const lease_settings& checked(const lease_settings& settings) {
  if (auto mistake = find_mistake(settings))
    throw std::invalid_argument{std::move(*mistake)};
  return settings;
}

} // namespace

ownership::ownership(detail::infrastructure& unit, repository& records, const lease_settings& settings,
                     random_source& random, ownership_events events)
  : settings_(checked(settings)),
    random_(random),
    owner_(random.next_id()),
    store_(records.location()),
    events_(std::move(events)),
    calls_(unit, store_),
    deadline_(settings.margin) {}

ownership::~ownership() = default;

task<ownership_start_result> ownership::start() {
  running_ = true;
  const auto began = calls_.now();
  next_ = began + settings_.renew_interval;
  auto claiming = claim(began + settings_.renew_timeout);
  const auto end = co_await std::move(claiming);
  ownership_start_result report;
  if (end == claim_end::unconfirmed)
    mistake_ = std::exchange(refusal_, {});
  if (calls_.stopped() || end == claim_end::failed || !mistake_.empty()) {
    report.what = calls_.stopped() ? ownership_start::stopped : ownership_start::failed;
    report.mistake = std::exchange(mistake_, {});
    end_run();
    co_return report;
  }
  report.what = end == claim_end::held ? ownership_start::held : ownership_start::blocked;
  if (end == claim_end::held)
    announce();
  detail::start_coroutine(keep(), [this](result<void> end) { on_keeper_end(std::move(end)); });
  co_return report;
}

// -- claiming ------------------------------------------------------------------------------------------------------------

task<ownership::claim_end> ownership::claim(steady_time until) {
  for (;;) {
    auto trying = try_claim(until);
    const auto end = co_await std::move(trying);
    if (end != claim_end::unconfirmed || calls_.stopped() || calls_.now() >= until || !refusal_.empty())
      co_return end;
    auto pausing = calls_.pause_until(std::min(until, calls_.now() + retry_pause));
    co_await std::move(pausing);
  }
}

/// Looks first, so that an earlier claim whose answer was lost is found instead of repeated (S-156).
task<ownership::claim_end> ownership::try_claim(steady_time until) {
  refusal_.clear();
  auto reading_epoch = calls_.read<epoch_record>(epoch_key(), until);
  const auto epoch = co_await std::move(reading_epoch);
  auto reading_counter = calls_.read<counter_record>(counter_key(sequence::lease), until);
  const auto counter = co_await std::move(reading_counter);
  const auto sent_at = calls_.now();
  auto reading_lease = calls_.read<lease_record>(lease_key(owner_), until);
  const auto lease = co_await std::move(reading_lease);

  if (std::holds_alternative<record_fault>(epoch) || std::holds_alternative<record_fault>(counter)
      || std::holds_alternative<record_fault>(lease))
    co_return fail("the store holds a lease, counter or epoch record of another structure version, or a damaged one");
  const auto* seen_epoch = seen_in(epoch);
  const auto* seen_counter = seen_in(counter);
  const auto* seen_lease = seen_in(lease);
  if (!seen_epoch || !seen_counter || !seen_lease) {
    if (const auto* failed = std::get_if<store_failure>(&lease); failed && failed->misconfigured)
      refusal_ = failed->text;
    co_return claim_end::unconfirmed;
  }
  if (seen_lease->record) {
    const auto& token = seen_lease->record->token;
    const bool ours =
      token.owner == owner_ && std::find(attempts_.begin(), attempts_.end(), token.lease) != attempts_.end();
    if (!ours || !seen_lease->expires_at)
      co_return fail("the lease of this host's new owner id is held already");
    if (!seen_epoch->record)
      co_return claim_end::unconfirmed; // the two reads saw different data sets
    co_return adopt(token, seen_epoch->record->epoch, sent_at, *seen_lease->expires_at, seen_lease->now);
  }
  if (lost_ && (!seen_epoch->record || seen_epoch->record->epoch != *lost_)) {
    auto settling = settle(*seen_epoch, until);
    if (!co_await std::move(settling))
      co_return watch_ ? claim_end::unsettled : claim_end::unconfirmed;
  }
  // An attempt that still might come through needs the counter as it was.
  if (seen_counter->record)
    std::erase_if(attempts_, [&](auto sent) { return sent.value < seen_counter->record->next; });
  auto sending = send_claim(*seen_epoch, *seen_counter, until);
  co_return co_await std::move(sending);
}

task<ownership::claim_end> ownership::send_claim(const observed<epoch_record>& epoch,
                                                 const observed<counter_record>& counter, steady_time until) {
  auto claim = claim_lease(owner_, counter, settings_.ttl, store_->process_local());
  if (!claim)
    co_return fail("the counter of lease generations is exhausted");
  // Epoch and lease are of one data set: adopted or made in the same batch (S-142).
  auto wanted = epoch.record ? epoch.record->epoch : random_.next_id();
  claim->batch.conditions.push_back(steps::as_read(epoch_key(), epoch));
  if (!epoch.record)
    claim->batch.mutations.push_back({epoch_key(), encode(epoch_record{wanted}), std::nullopt});
  if (watch_) {
    claim->batch.conditions.push_back({store_condition::test::value, watch_key(owner_), encode(epoch_record{watch_->mark})});
    claim->batch.mutations.push_back(steps::erased(watch_key(owner_)));
  }
  if (std::find(attempts_.begin(), attempts_.end(), claim->token.lease) == attempts_.end())
    attempts_.push_back(claim->token.lease);
  const auto sent_at = calls_.now();
  auto writing = calls_.write(std::move(claim->batch), until);
  const auto written = co_await std::move(writing);
  if (!written || !written->applied)
    co_return claim_end::unconfirmed; // unclear, or another host took the number: look again
  co_return adopt(claim->token, wanted, sent_at, written->now + settings_.ttl, written->now);
}

/// The rows that said who owns what are gone with the former data set, but their owners learn it one by one, at their next
/// renewal, and admit work until then. All of them have stopped when a lease of that data set can be none any more: until
/// then this host claims nothing, so that nobody gives an id a second owner (S-142, S-2). A data set that came and went in
/// the meantime had owners, too: what this host leaves in the store goes with it, and then the wait begins anew.
task<bool> ownership::settle(const observed<epoch_record>& epoch, steady_time until) {
  if (watch_) {
    auto reading = calls_.read<epoch_record>(watch_key(owner_), until);
    const auto outcome = co_await std::move(reading);
    const auto* seen = seen_in(outcome);
    if (seen == nullptr)
      co_return false;
    if (seen->record && seen->record->epoch == watch_->mark)
      co_return calls_.now() >= watch_->since + settings_.ttl;
    watch_.reset();
  }
  const auto mark = random_.next_id();
  store_batch batch;
  batch.conditions.push_back(steps::as_read(epoch_key(), epoch));
  batch.mutations.push_back({watch_key(owner_), encode(epoch_record{mark}), 4 * settings_.ttl});
  auto writing = calls_.write(std::move(batch), until);
  const auto written = co_await std::move(writing);
  if (written && written->applied)
    watch_ = {mark, calls_.now()};
  co_return false;
}

ownership::claim_end ownership::adopt(const owner_token& token, const detail::unique_id& epoch, steady_time sent_at,
                                      store_time expires_at, store_time now) {
  attempts_.clear();
  watch_.reset();
  token_ = token;
  epoch_ = epoch;
  expires_at_ = {};
  confirm(sent_at, expires_at, now);
  return claim_end::held;
}

ownership::claim_end ownership::fail(std::string mistake) {
  mistake_ = std::move(mistake);
  return claim_end::failed;
}

// -- keeping -------------------------------------------------------------------------------------------------------------

void ownership::on_keeper_end(result<void> end) {
  if (!end && !end.is_cancelled())
    mistake_ = end.error().message();
  if (!mistake_.empty() && !calls_.stopped() && events_.failed)
    events_.failed(mistake_);
  end_run();
}

void ownership::end_run() {
  running_ = false;
  for (auto& waiting : std::exchange(waiting_for_end_, {}))
    waiting->set(result<void>{});
}

task<void> ownership::keep() {
  for (;;) {
    auto pausing = calls_.pause_until(next_);
    co_await std::move(pausing);
    if (calls_.stopped())
      co_return;
    const auto began = calls_.now();
    const auto until = began + settings_.renew_timeout;
    next_ = began + settings_.renew_interval;
    if (token_) {
      auto renewing = renew(until);
      co_await std::move(renewing);
      if (!token_ && !calls_.stopped())
        next_ = calls_.now(); // lost: claim again at once
      continue;
    }
    auto claiming = claim(until);
    const auto end = co_await std::move(claiming);
    if (calls_.stopped() || end == claim_end::failed)
      co_return;
    if (end == claim_end::held) {
      if (events_.regained)
        events_.regained(*token_);
      announce();
    }
    if (end == claim_end::unsettled)
      next_ = watch_->since + settings_.ttl;
  }
}

task<void> ownership::renew(steady_time until) {
  while (token_ && !calls_.stopped()) {
    auto batch = renew_lease(*token_, settings_.ttl);
    // Another or no epoch: the store was emptied and filled again, whatever the lease looks like (S-142).
    batch.conditions.push_back({store_condition::test::value, epoch_key(), encode(epoch_record{*epoch_})});
    const auto sent_at = calls_.now();
    auto writing = calls_.write(std::move(batch), until);
    const auto written = co_await std::move(writing);
    if (calls_.stopped())
      co_return;
    if (written) {
      if (!written->applied)
        lose();
      else if (confirm(sent_at, written->now + settings_.ttl, written->now))
        announce();
      co_return;
    }
    if (calls_.now() >= until)
      co_return;
    auto pausing = calls_.pause_until(std::min(until, calls_.now() + retry_pause));
    co_await std::move(pausing);
    auto looking = look_after_unclear(until);
    if (co_await std::move(looking))
      co_return;
  }
}

/// True if nothing is left to do: the renewal had come through, or the lease is lost.
task<bool> ownership::look_after_unclear(steady_time until) {
  const auto sent_at = calls_.now();
  auto reading = calls_.read<lease_record>(lease_key(owner_), until);
  const auto outcome = co_await std::move(reading);
  if (calls_.stopped() || calls_.now() >= until)
    co_return true;
  const auto* seen = seen_in(outcome);
  if (!seen)
    co_return false;
  if (!seen->record || seen->record->token != *token_ || !seen->expires_at) {
    lose();
    co_return true;
  }
  const auto before = expires_at_;
  if (confirm(sent_at, *seen->expires_at, seen->now))
    announce();
  co_return *seen->expires_at > before;
}

// -- deadline and end ------------------------------------------------------------------------------------------------------

bool ownership::confirm(steady_time sent_at, store_time expires_at, store_time now) {
  confirmed_at_ = sent_at;
  expires_at_ = std::max(expires_at_, expires_at);
  return deadline_.confirm(sent_at, calls_.now(), expires_at, now);
}

void ownership::announce() {
  if (events_.deadline && token_)
    events_.deadline(deadline_.value());
}

void ownership::lose() {
  const auto token = *std::exchange(token_, std::nullopt);
  deadline_.lose();
  lost_ = std::exchange(epoch_, std::nullopt);
  if (events_.deadline)
    events_.deadline(std::nullopt);
  if (events_.lost)
    events_.lost(token);
}

task<void> ownership::stop() {
  calls_.stop();
  if (!running_)
    co_return;
  auto ended = detail::new_counted<detail::operation<void>>();
  ended->dispatcher = calls_.unit().unit();
  waiting_for_end_.push_back(ended);
  co_await task<void>{std::move(ended)};
}

task<bool> ownership::release(steady_time until) {
  deadline_.lose();
  if (events_.deadline)
    events_.deadline(std::nullopt);
  auto stopping = stop();
  co_await std::move(stopping);
  auto tokens = attempts_;
  if (token_)
    tokens.push_back(token_->lease);
  token_.reset();
  if (tokens.empty())
    co_return true;
  store_calls calls{calls_.unit(), store_};
  while (calls.now() < until) {
    auto reading = calls.read<lease_record>(lease_key(owner_), until);
    const auto outcome = co_await std::move(reading);
    if (const auto* seen = seen_in(outcome)) {
      if (!seen->record || std::find(tokens.begin(), tokens.end(), seen->record->token.lease) == tokens.end())
        co_return true;
      auto writing = calls.write(release_lease(seen->record->token), until);
      const auto written = co_await std::move(writing);
      if (written)
        co_return true; // a Conflict, too, says that it is no longer there
    }
    auto pausing = calls.pause_until(std::min(until, calls.now() + retry_pause));
    co_await std::move(pausing);
  }
  co_return false;
}

} // namespace zlink::placement
