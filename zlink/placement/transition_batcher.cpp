#include "zlink/placement/transition_batcher.hpp"

#include "zlink/placement/record_codec.hpp"
#include "zlink/placement/record_keys.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

namespace zlink::placement {

namespace {

// How many waiting fragments are tried for one batch: what the store takes at most if each had a key of its own.
constexpr std::size_t look_ahead = store_bounds::batch_keys;
// How often a group is sent again because others changed a capacity record or a counter; then the callers' own loops go
// on (S-73).
constexpr int retry_limit = 32;
// A condition that at least this part of a group shares is read after a Conflict, before the group is halved.
constexpr std::size_t shared_part = 8;
// The rest of a batch is for capacity records.
constexpr std::size_t fragment_bytes = 3 * 1024 * 1024;

bool holds(const store_condition& condition, const store_read_result& seen) noexcept {
  switch (condition.what) {
    case store_condition::test::missing: return !seen.found;
    case store_condition::test::version: return seen.found && seen.found->version == condition.operand;
    case store_condition::test::value: return seen.found && seen.found->bytes == condition.operand;
  }
  return false;
}

bool has_false(const fragment& what, const std::vector<store_condition>& wrong) noexcept {
  return std::any_of(what.conditions.begin(), what.conditions.end(), [&](const store_condition& mine) {
    return std::any_of(wrong.begin(), wrong.end(), [&](const store_condition& one) { return one.key == mine.key; });
  });
}

template <class Named>
void check_distinct(const std::vector<Named>& all) { // few: compared in pairs, without copies
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (all[i].key == all[j].key)
        throw std::invalid_argument{"a transition names a key twice"};
}

/// Alone it must be a valid batch, whatever it is merged with (S-11).
void check_fragment(const fragment& what) {
  std::size_t bytes = 0;
  for (const auto& mutation : what.mutations) {
    check_store_key(mutation.key);
    if (mutation.put && mutation.put->size() > store_bounds::value_bytes)
      throw std::invalid_argument{"a record has " + std::to_string(mutation.put->size()) + " bytes; at most 1048576 are allowed"};
    bytes += encoded_size(mutation);
  }
  for (const auto& condition : what.conditions) {
    check_store_key(condition.key);
    bytes += encoded_size(condition);
  }
  check_distinct(what.mutations);
  check_distinct(what.conditions);
  if (bytes > fragment_bytes)
    throw std::invalid_argument{"a transition has " + std::to_string(bytes) + " bytes; at most 3145728 are allowed"};
}

/// What became of a fragment whose batch had an unclear end, by its row (S-156). Unchanged is asked first: a fence puts
/// the bytes that were there before.
fragment_result settled(const fragment& what, const store_read_result& seen) {
  fragment_result result;
  result.now = seen.now;
  const auto& row = what.mutations.front();
  for (const auto& condition : what.conditions)
    if (condition.key == row.key && holds(condition, seen)) {
      result.what = fragment_outcome::not_applied;
      return result;
    }
  const bool there = row.put ? seen.found && seen.found->bytes == *row.put : !seen.found;
  result.what = there ? fragment_outcome::applied : fragment_outcome::conflict;
  if (there && seen.found)
    result.row_version = seen.found->version;
  return result;
}

} // namespace

/// What a group shares, to be read after its Conflict: first what batches fold, then what conditions name.
struct transition_batcher::examination {
  group about;
  std::map<std::string, node_identity> capacity; ///< by the record's key
  std::vector<sequence> counters;
  std::vector<store_condition> conditions;
  bool folded_changed = false;
  std::vector<store_condition> wrong;
  store_time now{};
};

/// The fragments of a batch with an unclear end, to be read one by one.
struct transition_batcher::settlement {
  entries members;
  ends ended;
};

transition_batcher::transition_batcher(std::shared_ptr<location_store> store, unique_function<void()> on_stall)
  : store_(std::move(store)), on_stall_(std::move(on_stall)), alive_(std::make_shared<const bool>(true)) {}

transition_batcher::~transition_batcher() = default;

void transition_batcher::add(fragment what, completion done) {
  if (what.mutations.empty())
    throw std::invalid_argument{"a transition changes a row"};
  check_fragment(what);
  waiting_.push_back({std::move(what), std::move(done), ++steps_, false, {}, std::nullopt});
}

void transition_batcher::flush() {
  if (busy_ || waiting_.empty())
    return;
  busy_ = true;
  next();
}

void transition_batcher::resume() {
  if (auto again = std::move(stalled_))
    again();
}

/// The step after a batch, a part of one, or a read has ended.
void transition_batcher::next() {
  if (!parts_.empty()) {
    auto part = std::move(parts_.back());
    parts_.pop_back();
    return send(std::move(part));
  }
  if (waiting_.empty()) {
    copies_.capacity.trim();
    busy_ = false;
    return;
  }
  if (!read_missing() && !read_missing_counter())
    send({take_waiting(), false, 0});
}

/// Starts reading a counter that the next batch needs: one never read, or one that spoke against a fragment.
bool transition_batcher::read_missing_counter() {
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(waiting_.size(), look_ahead));
  bool issues = false;
  const auto wants = [&](sequence which) {
    return std::any_of(waiting_.begin(), end, [&](const entry& one) {
      return one.what.issues != issue::nothing && one.doubted && !is_fresh(counter_key(which), one);
    });
  };
  for (auto one = waiting_.begin(); one != end; ++one)
    issues = issues || one->what.issues != issue::nothing;
  if (issues)
    for (const auto which : {sequence::object, sequence::authority})
      if (!copies_.counters.find(which) || wants(which)) {
        read_counter(which, [this, which, began = ++steps_](bool) {
          just_read_[counter_key(which)] = began;
          next();
        });
        return true;
      }
  return false;
}

/// Starts reading a capacity record that the next batch needs: one never read, or one that spoke against a fragment.
bool transition_batcher::read_missing() {
  const auto count = std::min(waiting_.size(), look_ahead);
  for (std::size_t i = 0; i < count; ++i)
    for (const auto& change : waiting_[i].what.capacity) {
      if (copies_.capacity.find(name_of(change.node))
          && (!waiting_[i].doubted || is_fresh(capacity_key(change.node), waiting_[i])))
        continue;
      auto key = capacity_key(change.node);
      read(key, [this, key, node = change.node, began = ++steps_](store_read_result seen) {
        note_capacity(node, seen);
        just_read_[key] = began;
        next();
      });
      return true;
    }
  return false;
}

transition_batcher::entries transition_batcher::take_waiting() {
  const auto count = static_cast<std::ptrdiff_t>(std::min(waiting_.size(), look_ahead));
  entries taken{std::make_move_iterator(waiting_.begin()), std::make_move_iterator(waiting_.begin() + count)};
  waiting_.erase(waiting_.begin(), waiting_.begin() + count);
  return taken;
}

/// Builds a batch of those that fit and sends it; the others wait for the next one.
void transition_batcher::send(group wanted) {
  auto builder = new_builder();
  group sent{{}, wanted.examined, wanted.retries};
  entries deferred;
  sent.members.reserve(wanted.members.size());
  for (auto& one : wanted.members) {
    const auto how = builder.is_full() ? placing::later : builder.place(one.what);
    if (how != placing::placed)
      judge(one, how);
    (how == placing::placed ? sent.members : deferred).push_back(std::move(one));
  }
  waiting_.insert(waiting_.begin(), std::make_move_iterator(deferred.begin()), std::make_move_iterator(deferred.end()));
  just_read_.clear();
  if (sent.members.empty())
    return next();
  auto built = builder.finish();
  for (std::size_t i = 0; i < sent.members.size(); ++i)
    sent.members[i].numbers = built.rows[i].numbers;
  auto batch = std::move(built.batch);
  write(std::move(batch), [this, sent = std::move(sent), built = std::move(built)](auto outcome) mutable {
    if (!outcome && outcome.failure().what == store_failure_class::not_applied)
      return end_all(sent.members, fragment_outcome::not_applied, {});
    if (!outcome) {
      for (const auto& one : built.capacity)
        copies_.capacity.forget(name_of(one.node));
      copies_.counters.forget();
      return settle(std::make_shared<settlement>(settlement{std::move(sent.members), {}}));
    }
    if (!outcome->applied)
      return on_conflict(std::move(sent), outcome->now);
    on_applied(sent, built, *outcome);
  });
}

/// A fragment that was not placed. Copies may be outdated, so nobody is refused before they were read again; others in
/// the same batch may yet fail, so what only they prevent waits for their end; and a fragment whose row has changed
/// meanwhile is a Conflict whatever the slots say, so its conditions go to the store without it.
void transition_batcher::judge(entry& one, placing why) const {
  if (why == placing::later)
    return;
  one.doubted = true;
  if (!was_just_read(one))
    return;
  switch (new_builder().place(one.what)) {
    case placing::placed:
    case placing::later: return;
    case placing::conflict: one.verdict = fragment_outcome::conflict; break;
    case placing::no_capacity: one.verdict = fragment_outcome::no_capacity; break;
    case placing::corrupt: one.verdict = fragment_outcome::corrupt; break;
    case placing::exhausted: one.verdict = fragment_outcome::exhausted; break;
  }
  one.what.mutations.clear();
  one.what.capacity.clear();
  one.what.issues = issue::nothing;
}

/// Read after whoever made the fragment had read its row.
bool transition_batcher::is_fresh(const std::string& key, const entry& one) const {
  const auto read = just_read_.find(key);
  return read != just_read_.end() && read->second > one.added;
}

bool transition_batcher::was_just_read(const entry& one) const {
  if (one.what.issues != issue::nothing
      && !(is_fresh(counter_key(sequence::object), one) && is_fresh(counter_key(sequence::authority), one)))
    return false;
  return std::all_of(one.what.capacity.begin(), one.what.capacity.end(),
                     [&](const capacity_change& change) { return is_fresh(capacity_key(change.node), one); });
}

void transition_batcher::on_applied(group& sent, const batch_builder::result& built, const store_write_result& result) {
  for (const auto& one : built.capacity)
    copies_.capacity.assign(name_of(one.node), {one.record, result.versions[one.mutation], false});
  for (const auto& one : built.counters)
    copies_.counters.note_issued(one.which, one.next, result.versions[one.mutation]);
  ends ended;
  ended.reserve(sent.members.size());
  for (std::size_t i = 0; i < sent.members.size(); ++i) {
    auto& one = sent.members[i];
    fragment_result end{one.verdict.value_or(fragment_outcome::applied), {}, one.numbers, result.now};
    if (!one.verdict)
      end.row_version = result.versions[built.rows[i].mutation];
    ended.emplace_back(std::move(one.done), std::move(end));
  }
  tell(ended);
  next();
}

void transition_batcher::on_conflict(group sent, store_time now) {
  if (sent.examined && sent.members.size() > 1)
    return split(std::move(sent));
  auto about = std::make_shared<examination>();
  std::unordered_map<std::string_view, std::size_t> holders;
  bool issues = false;
  for (const auto& one : sent.members) {
    issues = issues || one.what.issues != issue::nothing;
    for (const auto& change : one.what.capacity)
      about->capacity.try_emplace(capacity_key(change.node), change.node);
    for (const auto& condition : one.what.conditions)
      if (++holders[condition.key] == std::max<std::size_t>(2, sent.members.size() / shared_part))
        about->conditions.push_back(condition);
  }
  if (issues)
    about->counters = {sequence::object, sequence::authority};
  about->about = std::move(sent);
  about->now = now;
  examine(std::move(about));
}

/// Reads one shared record after the other. What a batch folds is hot: if that has changed, it is reason enough.
void transition_batcher::examine(std::shared_ptr<examination> about) {
  if (!about->counters.empty()) {
    const auto which = about->counters.back();
    about->counters.pop_back();
    return read_counter(which, [this, about](bool changed) {
      about->folded_changed = changed || about->folded_changed;
      examine(about);
    });
  }
  if (!about->capacity.empty()) {
    auto next_record = about->capacity.extract(about->capacity.begin());
    return read(next_record.key(), [this, about, node = std::move(next_record.mapped())](store_read_result seen) {
      about->folded_changed = note_capacity(node, seen) || about->folded_changed;
      about->now = seen.now;
      examine(about);
    });
  }
  const bool again = about->folded_changed && about->about.retries < retry_limit;
  if (!again && !about->conditions.empty()) {
    auto condition = std::move(about->conditions.back());
    about->conditions.pop_back();
    return read(condition.key, [this, about, condition](store_read_result seen) {
      if (!holds(condition, seen))
        about->wrong.push_back(condition);
      about->now = seen.now;
      examine(about);
    });
  }
  conclude(*about);
}

/// Ends those whose shared condition is false; sends the others again if there is a reason to hope, else halves them.
void transition_batcher::conclude(examination& about) {
  auto rest = std::move(about.about);
  const auto first_wrong = std::stable_partition(rest.members.begin(), rest.members.end(),
                                                 [&](const entry& one) { return !has_false(one.what, about.wrong); });
  const bool some_ended = first_wrong != rest.members.end();
  ends ended;
  for (auto i = first_wrong; i != rest.members.end(); ++i)
    ended.emplace_back(std::move(i->done), fragment_result{fragment_outcome::conflict, {}, {}, about.now});
  rest.members.erase(first_wrong, rest.members.end());
  tell(ended);
  if (rest.members.empty())
    return next();
  const bool again = about.folded_changed && rest.retries < retry_limit;
  rest.retries += again;
  rest.examined = !again;
  if (again || some_ended)
    return send(std::move(rest));
  if (rest.members.size() > 1 && !about.folded_changed)
    return split(std::move(rest));
  end_all(rest.members, fragment_outcome::conflict, about.now);
}

void transition_batcher::split(group sent) {
  const auto middle = sent.members.begin() + static_cast<std::ptrdiff_t>(sent.members.size() / 2);
  group second{{std::make_move_iterator(middle), std::make_move_iterator(sent.members.end())}, true, 0};
  sent.members.erase(middle, sent.members.end());
  sent.examined = true;
  sent.retries = 0;
  parts_.push_back(std::move(second));
  parts_.push_back(std::move(sent));
  next();
}

/// Reads the rows of a batch with an unclear end; all end together, so that nobody starts from half of the truth.
void transition_batcher::settle(std::shared_ptr<settlement> about) {
  auto at = about->ended.size();
  for (; at < about->members.size() && about->members[at].verdict; ++at)
    about->ended.emplace_back(std::move(about->members[at].done), fragment_result{});
  if (at == about->members.size()) {
    tell(about->ended);
    return next();
  }
  read(about->members[at].what.mutations.front().key, [this, about, at](store_read_result seen) {
    auto& one = about->members[at];
    auto end = settled(one.what, seen);
    end.numbers = one.numbers;
    about->ended.emplace_back(std::move(one.done), std::move(end));
    settle(about);
  });
}

void transition_batcher::end_all(entries& members, fragment_outcome what, store_time now) {
  ends ended;
  ended.reserve(members.size());
  for (auto& one : members)
    ended.emplace_back(std::move(one.done), fragment_result{what, {}, {}, now});
  tell(ended);
  next();
}

void transition_batcher::tell(ends& ended) {
  for (auto& [done, result] : ended)
    done(std::move(result));
  ended.clear();
}

void transition_batcher::write(store_batch batch, store_completion<store_write_result> then) {
  store_->write(std::move(batch), [alive = std::weak_ptr{alive_}, then = std::move(then)](auto outcome) mutable {
    if (!alive.expired())
      then(std::move(outcome));
  });
}

void transition_batcher::read(std::string key, unique_function<void(store_read_result)> then) {
  store_->read(key, [this, alive = std::weak_ptr{alive_}, key, then = std::move(then)](auto outcome) mutable {
    if (alive.expired())
      return;
    if (outcome)
      return then(std::move(*outcome));
    stalled_ = [this, key = std::move(key), then = std::move(then)]() mutable {
      read(std::move(key), std::move(then));
    };
    on_stall_();
  });
}

bool transition_batcher::note_capacity(const node_identity& node, const store_read_result& seen) {
  capacity_copies::copy copy;
  if (seen.found)
    copy.version = seen.found->version;
  auto record = observe<capacity_record>(seen);
  if (auto* readable = std::get_if<observed<capacity_record>>(&record))
    copy.record = std::move(readable->record);
  else
    copy.unreadable = true;
  return copies_.capacity.assign(name_of(node), std::move(copy));
}

void transition_batcher::read_counter(sequence which, unique_function<void(bool changed)> then) {
  read(counter_key(which), [this, which, then = std::move(then)](store_read_result seen) mutable {
    then(copies_.counters.note(which, seen));
  });
}

} // namespace zlink::placement
