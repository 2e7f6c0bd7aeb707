#include "adapters/location/embedded_snapshots.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>

namespace zlink::adapters {

namespace {

/// Ids are issued for the whole process: a cursor of another embedded store is never mistaken for one of ours.
std::uint64_t next_snapshot_id() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

/// A cursor names the snapshot and the last key delivered, so a page can be asked for again.
std::string format_cursor(std::uint64_t snapshot, std::string_view last_key) {
  return std::to_string(snapshot).append(1, ':').append(last_key);
}

struct parsed_cursor {
  std::uint64_t snapshot = 0; // 0: not a cursor
  std::string_view last_key;
};

parsed_cursor parse_cursor(std::string_view cursor) noexcept {
  std::uint64_t id = 0;
  const auto [end, failed] = std::from_chars(cursor.data(), cursor.data() + cursor.size(), id);
  const auto digits = static_cast<std::size_t>(end - cursor.data());
  if (failed != std::errc{} || digits == cursor.size() || cursor[digits] != ':')
    return {};
  return {id, cursor.substr(digits + 1)};
}

} // namespace

std::string format_version(std::uint64_t version) {
  char text[16];
  const auto end = std::to_chars(text, text + sizeof text, version, 36).ptr;
  return {text, end};
}

/// Walks present rows and former states side by side, in key order; a former state hides the present one.
class embedded_snapshots::reader {
public:
  reader(const embedded_table& table, const snapshot& from, std::string_view after)
    : snapshot_(from),
      row_(after.empty() ? table.from(from.prefix) : table.after(after)),
      rows_end_(table.end()),
      changed_(after.empty() ? from.changed.begin() : from.changed.upper_bound(after)) {
    skip();
  }
  bool done() const noexcept { return key_.data() == nullptr; }
  std::string_view key() const noexcept { return key_; }
  std::size_t size() const noexcept {
    return key_.size() + (formerly_ ? formerly_->bytes.size() : row_->bytes.size()) + sizeof(std::uint64_t) * 2;
  }
  store_scan_item item() const {
    const auto expires_at = formerly_ ? formerly_->expires_at : row_->expires_at;
    store_scan_item found;
    found.key = key_;
    found.value.bytes = formerly_ ? formerly_->bytes : row_->bytes;
    found.value.version = format_version(formerly_ ? formerly_->version : row_->version);
    if (expires_at != never_expires)
      found.value.expires_at = expires_at;
    return found;
  }
  void next() {
    advance();
    skip();
  }

private:
  /// Stops at the next one that the snapshot sees.
  void skip() {
    for (;; advance()) {
      select();
      if (done()
          || (formerly_ ? formerly_->expires_at > snapshot_.fixed_at : !hidden_ && row_->is_live(snapshot_.fixed_at)))
        return;
    }
  }
  void select() {
    const bool has_row = row_ != rows_end_ && row_->key().starts_with(snapshot_.prefix);
    const bool has_change = changed_ != snapshot_.changed.end();
    key_ = {};
    formerly_ = nullptr;
    hidden_ = false;
    if (has_change && (!has_row || changed_->first <= row_->key())) {
      key_ = changed_->first;
      formerly_ = changed_->second ? &*changed_->second : nullptr;
      hidden_ = !changed_->second;
    } else if (has_row) {
      key_ = row_->key();
    }
  }
  void advance() {
    const auto left = key_;
    if (row_ != rows_end_ && row_->key() == left)
      ++row_;
    if (changed_ != snapshot_.changed.end() && changed_->first == left)
      ++changed_;
  }

  const snapshot& snapshot_;
  embedded_table::const_iterator row_;
  embedded_table::const_iterator rows_end_;
  decltype(snapshot::changed)::const_iterator changed_;
  std::string_view key_;
  const former_state* formerly_ = nullptr;
  bool hidden_ = false; // the key was not there when the snapshot was taken
};

store_scan_result embedded_snapshots::first_page(const embedded_table& table, std::string prefix, std::size_t limit,
                                                 store_time now) {
  snapshot fresh;
  fresh.id = next_snapshot_id();
  fresh.prefix = std::move(prefix);
  fresh.fixed_at = fresh.used_at = now;
  auto result = page(table, fresh, {}, limit);
  result.now = now;
  if (!result.next.empty()) {
    if (live_.size() == live_limit)
      live_.pop_front();
    live_.push_back(std::move(fresh));
  }
  return result;
}

store_scan_result embedded_snapshots::next_page(const embedded_table& table, std::string_view prefix,
                                                std::string_view cursor, std::size_t limit, store_time now) {
  const auto wanted = parse_cursor(cursor);
  const auto found =
    std::find_if(live_.begin(), live_.end(), [&](const snapshot& s) { return s.id == wanted.snapshot; });
  if (found == live_.end() || found->prefix != prefix || wanted.last_key.empty()) {
    store_scan_result lost;
    lost.expired = true;
    lost.now = now;
    return lost;
  }
  found->used_at = now;
  live_.splice(live_.end(), live_, found);
  auto result = page(table, *found, wanted.last_key, limit);
  result.now = now;
  if (result.next.empty())
    live_.erase(found);
  return result;
}

store_scan_result embedded_snapshots::page(const embedded_table& table, const snapshot& from, std::string_view after,
                                           std::size_t limit) {
  store_scan_result result;
  std::size_t bytes = 0;
  reader at{table, from, after};
  for (; !at.done() && result.items.size() < limit; at.next()) {
    bytes += at.size();
    if (bytes > store_bounds::page_bytes && !result.items.empty())
      break;
    result.items.push_back(at.item());
  }
  if (!at.done())
    result.next = format_cursor(from.id, result.items.back().key);
  return result;
}

void embedded_snapshots::retain(std::string_view key, const embedded_row* row, store_time now) {
  for (auto i = live_.begin(); i != live_.end();) {
    auto& s = *i;
    if (s.retained_bytes > retained_bytes_limit || now - s.used_at > idle_limit) {
      i = live_.erase(i);
      continue;
    }
    ++i;
    if (!key.starts_with(s.prefix) || s.changed.find(key) != s.changed.end())
      continue;
    std::optional<former_state> former;
    if (row)
      former = former_state{row->bytes, row->version, row->expires_at};
    s.retained_bytes += key.size() + (row ? row->bytes.size() : 0) + sizeof(former_state);
    s.changed.emplace(key, std::move(former));
  }
}

} // namespace zlink::adapters
