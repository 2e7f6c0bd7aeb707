#include "zlink/placement/batch_builder.hpp"

#include "zlink/placement/record_codec.hpp"
#include "zlink/placement/record_keys.hpp"

#include <algorithm>

namespace zlink::placement {

namespace {

// A batch is full a little below the store's bounds: one more fragment of ordinary size could not be sure to fit.
constexpr std::size_t ordinary_keys = 8;
constexpr std::size_t ordinary_bytes = 4 * 1024;
// A type bucket with the longest name.
constexpr std::size_t type_growth = 255 + 16;

bool is_same(const store_condition& a, const store_condition& b) noexcept {
  return a.what == b.what && a.operand == b.operand;
}

/// Slots of a lifecycle that ended are gone with it; freeing them frees nothing (S-83).
bool is_freeing(slot_step step) noexcept { return step == slot_step::free_reserved || step == slot_step::free_active; }

} // namespace

const capacity_copies::copy* capacity_copies::find(const std::string& key) const {
  const auto found = copies_.find(key);
  return found == copies_.end() ? nullptr : &found->second;
}

bool capacity_copies::assign(const std::string& key, copy seen) {
  const auto [at, added] = copies_.try_emplace(key);
  if (!added && at->second.version == seen.version)
    return false;
  at->second = std::move(seen);
  return true;
}

placing batch_builder::place(const fragment& what) {
  std::size_t new_keys = 0;
  std::size_t new_bytes = 0;
  if (!fits(what, new_keys, new_bytes))
    return placing::later;
  if (const auto folded = fold(what); folded != placing::placed)
    return folded;
  for (const auto& condition : what.conditions) {
    auto& use = keys_[condition.key];
    if (!use.condition) {
      use.condition = &condition;
      conditions_.push_back(&condition);
    }
  }
  row_mutation_.push_back(mutations_.size());
  for (const auto& mutation : what.mutations) {
    keys_[mutation.key].changed = true;
    mutations_.push_back(&mutation);
  }
  bytes_ += new_bytes;
  ++fragments_;
  return placing::placed;
}

/// No key clash with what is placed, and room for it.
bool batch_builder::fits(const fragment& what, std::size_t& keys, std::size_t& bytes) const {
  for (const auto& mutation : what.mutations) {
    if (keys_.contains(mutation.key))
      return false;
    ++keys;
    bytes += encoded_size(mutation);
  }
  for (const auto& condition : what.conditions) {
    const auto found = keys_.find(condition.key);
    if (found == keys_.end()) {
      ++keys; // a key that is also mutated counts twice here, which errs on the safe side
      bytes += encoded_size(condition);
    } else if (found->second.changed || !is_same(*found->second.condition, condition)) {
      return false;
    }
  }
  for (const auto& change : what.capacity) {
    const auto key = capacity_key(change.node);
    const auto* copy = copies_.find(key);
    const bool fresh = !capacity_.contains(key);
    keys += fresh;
    bytes += type_growth + (fresh && copy && copy->record ? encode(*copy->record).size() : 0);
  }
  return fragments_ == 0
         || (keys_.size() + capacity_.size() + keys <= store_bounds::batch_keys
             && bytes_ + bytes <= store_bounds::batch_bytes);
}

/// Applies the fragment's capacity changes to the working records, all of them or none.
placing batch_builder::fold(const fragment& what) {
  std::vector<std::pair<std::string, folding>> next;
  for (const auto& change : what.capacity) {
    auto key = capacity_key(change.node);
    auto at = std::find_if(next.begin(), next.end(), [&](const auto& one) { return one.first == key; });
    if (at == next.end()) {
      folding start;
      if (const auto known = capacity_.find(key); known != capacity_.end())
        start = known->second;
      else if (const auto* copy = copies_.find(key))
        start = {copy, copy->record, false};
      else
        return placing::later;
      at = next.insert(next.end(), {std::move(key), std::move(start)});
    }
    auto& folded = at->second;
    if (folded.before->unreadable)
      return placing::corrupt;
    if (!folded.after || folded.after->lifecycle != change.node.lifecycle) {
      if (is_freeing(change.step))
        continue;
      return placing::conflict;
    }
    switch (apply(*folded.after, change)) {
      case capacity_outcome::done: folded.changed = true; break;
      case capacity_outcome::no_capacity: return placing::no_capacity;
      case capacity_outcome::corrupt: return placing::corrupt;
    }
  }
  for (auto& [key, folded] : next)
    capacity_[key] = std::move(folded);
  return placing::placed;
}

bool batch_builder::is_full() const noexcept {
  return keys_.size() + capacity_.size() + ordinary_keys > store_bounds::batch_keys
         || bytes_ + ordinary_bytes > store_bounds::batch_bytes;
}

batch_builder::result batch_builder::finish() {
  result made;
  made.row_mutation = std::move(row_mutation_);
  made.batch.conditions.reserve(conditions_.size() + capacity_.size());
  made.batch.mutations.reserve(mutations_.size() + capacity_.size());
  for (const auto* condition : conditions_)
    made.batch.conditions.push_back(*condition);
  for (const auto* mutation : mutations_)
    made.batch.mutations.push_back(*mutation);
  for (auto& [key, folded] : capacity_) {
    made.batch.conditions.push_back(folded.before->record
                                      ? store_condition{store_condition::test::version, key, folded.before->version}
                                      : store_condition{store_condition::test::missing, key, {}});
    if (!folded.changed)
      continue;
    const auto place = made.batch.mutations.size();
    made.batch.mutations.push_back({key, encode(*folded.after), std::nullopt});
    made.capacity.push_back({key, std::move(*folded.after), place});
  }
  return made;
}

} // namespace zlink::placement
