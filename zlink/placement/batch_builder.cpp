#include "zlink/placement/batch_builder.hpp"

#include "zlink/placement/record_codec.hpp"
#include "zlink/placement/record_keys.hpp"

#include <algorithm>

namespace zlink::placement {

namespace {

// A batch is full a little below the store's bounds: one more fragment of ordinary size could not be sure to fit.
constexpr std::size_t ordinary_keys = 8;
constexpr std::size_t ordinary_bytes = 4 * 1024;
// Any batch may issue numbers of both.
constexpr std::size_t counter_keys = 2;
// A type bucket with the longest name.
constexpr std::size_t type_growth = 255 + 16;

bool is_same(const store_condition& a, const store_condition& b) noexcept {
  return a.what == b.what && a.operand == b.operand;
}

template <class Named>
bool names(const std::vector<Named>& all, std::string_view key) noexcept { // a few
  return std::any_of(all.begin(), all.end(), [key](const Named& one) { return one.key == key; });
}

/// Slots of a lifecycle that ended are gone with it; freeing them frees nothing (S-83).
bool is_freeing(slot_step step) noexcept { return step == slot_step::free_reserved || step == slot_step::free_active; }

} // namespace

const capacity_copies::copy* capacity_copies::find(node_name node) const {
  const auto found = copies_.find(node);
  return found == copies_.end() ? nullptr : &found->second;
}

bool capacity_copies::assign(node_name node, copy seen) {
  auto at = copies_.find(node);
  if (at != copies_.end() && at->second.version == seen.version)
    return false;
  if (at == copies_.end())
    at = copies_.try_emplace({std::string{node.mesh}, std::string{node.rid}}).first;
  at->second = std::move(seen);
  return true;
}

void capacity_copies::forget(node_name node) {
  if (const auto at = copies_.find(node); at != copies_.end())
    copies_.erase(at);
}

placing batch_builder::place(fragment& what) {
  std::size_t new_bytes = 0;
  if (!fits(what, new_bytes))
    return placing::later;
  new_generations numbers;
  if (const auto drawn = draw(what, numbers); drawn != placing::placed)
    return drawn;
  if (const auto folded = fold(what); folded != placing::placed)
    return folded;
  for (const auto& condition : what.conditions) {
    if (find_shared(condition.key))
      continue;
    const auto [use, added] = keys_.try_emplace(condition.key);
    if (added) {
      use->second = {&condition, names(what.mutations, condition.key)};
      conditions_.push_back(&condition);
    }
  }
  if (what.issues != issue::nothing) {
    stamp_generations(*what.mutations.front().put, numbers);
    objects_ += what.issues == issue::both;
    ++authorities_;
  }
  rows_.push_back({mutations_.size(), numbers});
  for (const auto& mutation : what.mutations) {
    if (!names(what.conditions, mutation.key))
      keys_[mutation.key].changed = true;
    mutations_.push_back(&mutation);
  }
  bytes_ += new_bytes;
  ++fragments_;
  return placing::placed;
}

/// The next number of a counter after `taken` of this batch; zero: it has ended.
std::uint64_t batch_builder::next_number(sequence which, std::uint64_t taken) const {
  const auto number = first_number(*copies_.counters.find(which), process_local_) + taken;
  return number < generation_limit ? number : 0;
}

/// The numbers for a fragment, or why there are none.
placing batch_builder::draw(const fragment& what, new_generations& numbers) const {
  if (what.issues == issue::nothing)
    return placing::placed;
  if (!copies_.counters.find(sequence::object) || !copies_.counters.find(sequence::authority))
    return placing::later;
  if (copies_.counters.unreadable())
    return placing::corrupt;
  numbers = what.above;
  numbers.authority.value = next_number(sequence::authority, authorities_);
  if (what.issues == issue::both)
    numbers.object.value = next_number(sequence::object, objects_);
  if (!numbers.authority || (what.issues == issue::both && !numbers.object))
    return placing::exhausted;
  const bool larger = numbers.authority > what.above.authority
                      && (what.issues == issue::authority || numbers.object > what.above.object);
  return larger ? placing::placed : placing::corrupt;
}

/// No key clash with what is placed, and room for it.
bool batch_builder::fits(const fragment& what, std::size_t& bytes) {
  // A key that is both in a condition and a mutation, or in what is placed, counts again: that errs on the safe side.
  const auto keys = what.mutations.size() + what.conditions.size() + what.capacity.size();
  for (const auto& mutation : what.mutations) {
    if (!names(what.conditions, mutation.key) && keys_.contains(mutation.key))
      return false;
    bytes += encoded_size(mutation);
  }
  for (const auto& condition : what.conditions) {
    const bool changes = names(what.mutations, condition.key);
    if (const auto* known = find_shared(condition.key)) {
      if (changes || !is_same(*known, condition))
        return false;
      continue;
    }
    const auto found = keys_.find(condition.key);
    if (found == keys_.end()) {
      bytes += encoded_size(condition);
      continue;
    }
    if (changes || found->second.changed || !is_same(*found->second.condition, condition))
      return false;
    note_shared(found->second.condition);
  }
  bytes += what.capacity.size() * type_growth;
  return fragments_ == 0
         || (keys_.size() + capacity_.size() + keys + counter_keys <= store_bounds::batch_keys
             && bytes_ + bytes <= store_bounds::batch_bytes);
}

const store_condition* batch_builder::find_shared(std::string_view key) const noexcept {
  for (const auto* one : shared_)
    if (one->key == key)
      return one;
  return nullptr;
}

void batch_builder::note_shared(const store_condition* condition) {
  constexpr std::size_t few = 8;
  if (shared_.size() < few)
    shared_.push_back(condition);
}

batch_builder::folding* batch_builder::find_folding(node_name node) noexcept {
  for (auto& one : capacity_)
    if (name_of(one.node) == node)
      return &one;
  return nullptr;
}

/// Applies the fragment's capacity changes to the working records, all of them or none.
placing batch_builder::fold(const fragment& what) {
  for (const auto& change : what.capacity) {
    if (find_folding(name_of(change.node)))
      continue;
    const auto* copy = copies_.capacity.find(name_of(change.node));
    if (!copy)
      return placing::later;
    capacity_.push_back({change.node, copy, copy->record, false, false});
    bytes_ += copy->record ? encode(*copy->record).size() : 0;
  }
  if (what.capacity.empty())
    return placing::placed;
  if (what.capacity.size() == 1) // changes all of its record or nothing
    return fold(*find_folding(name_of(what.capacity.front().node)), what.capacity.front());
  auto before = capacity_;
  for (const auto& change : what.capacity)
    if (const auto folded = fold(*find_folding(name_of(change.node)), change); folded != placing::placed) {
      capacity_ = std::move(before);
      return folded;
    }
  return placing::placed;
}

placing batch_builder::fold(folding& at, const capacity_change& change) {
  if (at.before->unreadable)
    return placing::corrupt;
  if (!at.after || at.after->lifecycle != change.node.lifecycle) {
    at.used = at.used || is_freeing(change.step);
    return is_freeing(change.step) ? placing::placed : placing::conflict;
  }
  switch (apply(*at.after, change)) {
    case capacity_outcome::done: at.used = at.changed = true; return placing::placed;
    case capacity_outcome::no_capacity: return placing::no_capacity;
    case capacity_outcome::corrupt: break;
  }
  return placing::corrupt;
}

bool batch_builder::is_full() const noexcept {
  return keys_.size() + capacity_.size() + counter_keys + ordinary_keys > store_bounds::batch_keys
         || bytes_ + ordinary_bytes > store_bounds::batch_bytes;
}

batch_builder::result batch_builder::finish() {
  result made;
  made.rows = std::move(rows_);
  made.batch.conditions.reserve(conditions_.size() + capacity_.size() + counter_keys);
  made.batch.mutations.reserve(mutations_.size() + capacity_.size() + counter_keys);
  for (const auto* condition : conditions_)
    made.batch.conditions.push_back(*condition);
  for (const auto* mutation : mutations_)
    made.batch.mutations.push_back(*mutation);
  for (auto& folded : capacity_) {
    if (!folded.used)
      continue;
    const auto key = capacity_key(folded.node);
    made.batch.conditions.push_back(folded.before->record
                                      ? store_condition{store_condition::test::version, key, folded.before->version}
                                      : store_condition{store_condition::test::missing, key, {}});
    if (!folded.changed)
      continue;
    const auto place = made.batch.mutations.size();
    made.batch.mutations.push_back({key, encode(*folded.after), std::nullopt});
    made.capacity.push_back({std::move(folded.node), std::move(*folded.after), place});
  }
  finish_counter(made, sequence::object, objects_);
  finish_counter(made, sequence::authority, authorities_);
  return made;
}

void batch_builder::finish_counter(result& made, sequence which, std::uint64_t taken) const {
  if (taken == 0)
    return;
  auto advance = advance_counter(which, *copies_.counters.find(which), taken, process_local_);
  made.counters.push_back({which, advance->first + taken, made.batch.mutations.size()});
  made.batch.conditions.push_back(std::move(advance->condition));
  made.batch.mutations.push_back(std::move(advance->mutation));
}

} // namespace zlink::placement
