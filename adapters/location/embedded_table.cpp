#include "adapters/location/embedded_table.hpp"

#include <cstring>
#include <new>

namespace zlink::adapters {

namespace {
constexpr std::size_t first_buckets = 1024; // a power of two
constexpr std::size_t buckets_per_row = 2;  // a look-up is one or two cache misses, hardly ever a walk
} // namespace

embedded_row* embedded_row::create(std::string_view key) {
  void* place = ::operator new(sizeof(embedded_row) + key.size());
  auto* row = ::new (place) embedded_row(key.size());
  std::memcpy(static_cast<void*>(row + 1), key.data(), key.size());
  return row;
}

void embedded_row::destroy(embedded_row* row) noexcept {
  row->~embedded_row();
  ::operator delete(static_cast<void*>(row));
}

embedded_table::embedded_table()
  : buckets_(first_buckets), hashed_(hashed_rows::bucket_traits(buckets_.data(), buckets_.size())) {}

embedded_table::~embedded_table() {
  hashed_.clear();
  ordered_.clear_and_dispose([](embedded_row* row) { embedded_row::destroy(row); });
}

embedded_row* embedded_table::find(std::string_view key) noexcept {
  const auto found = hashed_.find(key);
  return found == hashed_.end() ? nullptr : &*found;
}

embedded_row& embedded_table::insert(std::string_view key) {
  make_room();
  auto* row = embedded_row::create(key);
  hashed_.insert(*row);
  ordered_.insert(*row);
  return *row;
}

void embedded_table::assign(embedded_row& row, store_bytes bytes, std::uint64_t version, store_time expires_at) {
  forget_expiry(row);
  if (bytes.capacity() > bytes.size() + bytes.size() / 4 + 64)
    bytes.shrink_to_fit(); // encoders reserve generously; here the slack would stay for hours
  row.bytes = std::move(bytes);
  row.version = version;
  row.expires_at = expires_at;
  note_expiry(row);
}

void embedded_table::erase(embedded_row& row) noexcept {
  forget_expiry(row);
  hashed_.erase(hashed_.iterator_to(row));
  ordered_.erase(ordered_.iterator_to(row));
  embedded_row::destroy(&row);
}

embedded_row* embedded_table::first_expired(store_time now) const noexcept {
  if (expiring_.empty() || std::get<store_time>(*expiring_.begin()) > now)
    return nullptr;
  return std::get<embedded_row*>(*expiring_.begin());
}

/// A few more buckets for one more row; twice the bucket array when all are in use.
void embedded_table::make_room() {
  while (hashed_.size() * buckets_per_row >= hashed_.split_count()) {
    if (hashed_.incremental_rehash())
      continue;
    std::vector<hashed_rows::bucket_type> wider(buckets_.size() * 2);
    hashed_.incremental_rehash(hashed_rows::bucket_traits(wider.data(), wider.size()));
    buckets_.swap(wider);
  }
}

void embedded_table::note_expiry(embedded_row& row) {
  if (row.expires_at != never_expires)
    expiring_.emplace(row.expires_at, row.version, &row);
}

void embedded_table::forget_expiry(embedded_row& row) noexcept {
  if (row.expires_at != never_expires)
    expiring_.erase(expiring_row{row.expires_at, row.version, &row});
}

} // namespace zlink::adapters
