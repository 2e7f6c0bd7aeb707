#include "adapters/location/embedded_store.hpp"

#include <stdexcept>

namespace zlink {

namespace adapters {

namespace {

/// Every write drops at most this many expired rows: more than it adds on average, and no long stall.
constexpr int drops_per_write = 4;

store_time time_of(const clock& time) noexcept {
  return store_time{std::chrono::duration_cast<std::chrono::microseconds>(time.now().time_since_epoch())};
}

/// `now + retention`, or the last instant there is.
store_time expiry_after(store_time now, std::chrono::milliseconds retention) noexcept {
  constexpr auto last = store_time::max() - std::chrono::microseconds{1}; // the very last means "never"
  return retention < std::chrono::floor<std::chrono::milliseconds>(last - now) ? now + retention : last;
}

} // namespace

// -- Location Store -------------------------------------------------------------------------------------------------

embedded_location_store::embedded_location_store(std::shared_ptr<const clock> time) : time_(std::move(time)) {}

void embedded_location_store::read(std::string key, store_completion<store_read_result> done) {
  check_store_key(key);
  store_read_result result;
  {
    const std::lock_guard guard{mutex_};
    result.now = time_of(*time_);
    if (const auto* row = table_.find(key); row && row->is_live(result.now)) {
      auto& found = result.found.emplace();
      found.bytes = row->bytes;
      found.version = format_version(row->version);
      if (row->expires_at != never_expires)
        found.expires_at = row->expires_at;
    }
  }
  done(std::move(result));
}

void embedded_location_store::write(store_batch batch, store_completion<store_write_result> done) {
  check_store_batch(batch);
  store_write_result result;
  result.applied = true;
  {
    const std::lock_guard guard{mutex_};
    result.now = time_of(*time_);
    for (const auto& condition : batch.conditions)
      if (!holds(condition, result.now)) {
        result.applied = false;
        break;
      }
    if (result.applied) {
      result.versions.reserve(batch.mutations.size());
      for (auto& mutation : batch.mutations)
        result.versions.push_back(apply(mutation, result.now));
      drop_expired(result.now);
    }
  }
  done(std::move(result));
}

void embedded_location_store::scan(std::string prefix, std::string cursor, std::size_t limit,
                                   store_completion<store_scan_result> done) {
  check_store_scan(prefix, cursor, limit);
  store_scan_result result;
  {
    const std::lock_guard guard{mutex_};
    const auto now = time_of(*time_);
    result = cursor.empty() ? snapshots_.first_page(table_, std::move(prefix), limit, now)
                            : snapshots_.next_page(table_, prefix, cursor, limit, now);
  }
  done(std::move(result));
}

std::size_t embedded_location_store::size() const {
  const std::lock_guard guard{mutex_};
  return table_.size();
}

bool embedded_location_store::holds(const store_condition& condition, store_time now) {
  const auto* row = table_.find(condition.key);
  const bool live = row && row->is_live(now);
  switch (condition.what) {
    case store_condition::test::missing: return !live;
    case store_condition::test::version: return live && format_version(row->version) == condition.operand;
    case store_condition::test::value: return live && row->bytes == condition.operand;
  }
  return false;
}

std::string embedded_location_store::apply(store_mutation& mutation, store_time now) {
  auto* row = table_.find(mutation.key);
  if (!mutation.put) {
    if (row) {
      snapshots_.before_change(mutation.key, row, now);
      table_.erase(*row);
    }
    return {};
  }
  snapshots_.before_change(mutation.key, row, now);
  if (!row)
    row = &table_.insert(mutation.key);
  const auto expires_at = mutation.retention ? expiry_after(now, *mutation.retention) : never_expires;
  table_.assign(*row, std::move(*mutation.put), ++last_version_, expires_at);
  return format_version(last_version_);
}

void embedded_location_store::drop_expired(store_time now) {
  for (int i = 0; i < drops_per_write; ++i) {
    auto* row = table_.first_expired(now);
    if (!row)
      return;
    snapshots_.before_change(row->key(), row, now);
    table_.erase(*row);
  }
}

// -- Relocation Store -----------------------------------------------------------------------------------------------

embedded_relocation_store::embedded_relocation_store(std::shared_ptr<const clock> time) : time_(std::move(time)) {}

void embedded_relocation_store::put(std::string reference, store_bytes bytes, std::chrono::milliseconds retention,
                                    store_completion<blob_put_result> done) {
  check_blob_put(reference, bytes, retention);
  const auto content = std::make_shared<const store_bytes>(std::move(bytes));
  auto result = blob_put_result::stored;
  std::shared_ptr<const store_bytes> present;
  {
    const std::lock_guard guard{mutex_};
    const auto now = time_of(*time_);
    drop_expired(now);
    if (const auto found = find_live(reference, now); found != blobs_.end()) {
      present = found->second.bytes;
    } else {
      const auto added = blobs_.emplace(std::move(reference), blob{content, expiry_after(now, retention)}).first;
      expiring_.emplace(added->second.expires_at, &*added);
    }
  }
  if (present)
    result = *present == *content ? blob_put_result::already_stored : blob_put_result::conflict;
  done(result);
}

void embedded_relocation_store::read_blob(std::string reference, store_completion<std::optional<blob_value>> done) {
  check_blob_reference(reference);
  std::shared_ptr<const store_bytes> content;
  blob_value value;
  {
    const std::lock_guard guard{mutex_};
    value.now = time_of(*time_);
    if (const auto found = find_live(reference, value.now); found != blobs_.end()) {
      content = found->second.bytes;
      value.expires_at = found->second.expires_at;
    }
  }
  std::optional<blob_value> result;
  if (content) {
    value.bytes = *content;
    result = std::move(value);
  }
  done(std::move(result));
}

void embedded_relocation_store::renew(std::string reference, std::chrono::milliseconds retention,
                                      store_completion<bool> done) {
  check_blob_reference(reference);
  check_blob_retention(retention);
  bool renewed = false;
  {
    const std::lock_guard guard{mutex_};
    const auto now = time_of(*time_);
    if (const auto found = find_live(reference, now); found != blobs_.end()) {
      expiring_.erase({found->second.expires_at, &*found});
      found->second.expires_at = expiry_after(now, retention);
      expiring_.emplace(found->second.expires_at, &*found);
      renewed = true;
    }
  }
  done(renewed);
}

void embedded_relocation_store::erase(std::string reference, store_completion<std::monostate> done) {
  check_blob_reference(reference);
  {
    const std::lock_guard guard{mutex_};
    if (const auto found = blobs_.find(reference); found != blobs_.end())
      drop(found);
  }
  done(std::monostate{});
}

std::size_t embedded_relocation_store::size() const {
  const std::lock_guard guard{mutex_};
  return blobs_.size();
}

/// An expired blob counts as absent and makes room for its successor at once.
embedded_relocation_store::blobs::iterator embedded_relocation_store::find_live(const std::string& reference,
                                                                                store_time now) {
  const auto found = blobs_.find(reference);
  if (found == blobs_.end() || found->second.expires_at > now)
    return found;
  drop(found);
  return blobs_.end();
}

void embedded_relocation_store::drop(blobs::iterator which) {
  expiring_.erase({which->second.expires_at, &*which});
  blobs_.erase(which);
}

void embedded_relocation_store::drop_expired(store_time now) {
  for (int i = 0; i < drops_per_write && !expiring_.empty() && expiring_.begin()->first <= now; ++i)
    drop(blobs_.find(expiring_.begin()->second->first));
}

} // namespace adapters

// -- the public handle ----------------------------------------------------------------------------------------------

embedded_store::embedded_store() : embedded_store(std::make_shared<system_clock>()) {}

embedded_store::embedded_store(std::shared_ptr<const clock> time) {
  if (!time)
    throw std::invalid_argument{"embedded store needs a clock"};
  location_ = std::make_shared<adapters::embedded_location_store>(time);
  relocation_ = std::make_shared<adapters::embedded_relocation_store>(std::move(time));
}

} // namespace zlink
