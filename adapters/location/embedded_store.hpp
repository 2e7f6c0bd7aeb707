// The two stores in the memory of this process (S-147 to S-151), behind the interfaces of zlink/location_store.hpp.
#pragma once

#include "adapters/location/embedded_snapshots.hpp"
#include "adapters/location/embedded_table.hpp"
#include "zlink/clock.hpp"
#include "zlink/location_store.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace zlink::adapters {

/// One mutex for all rows: an operation holds it for well under a microsecond. Completions run on the caller's thread
/// before the call returns, after the mutex was released.
class embedded_location_store final : public location_store {
public:
  explicit embedded_location_store(std::shared_ptr<const clock> time);

  void read(std::string key, store_completion<store_read_result> done) override;
  void write(store_batch batch, store_completion<store_write_result> done) override;
  void scan(std::string prefix, std::string cursor, std::size_t limit,
            store_completion<store_scan_result> done) override;
  bool process_local() const noexcept override { return true; }

  /// Rows in memory, with those that expired and were not dropped yet.
  std::size_t size() const;

private:
  bool holds(const store_condition& condition, store_time now);
  std::string apply(store_mutation& mutation, store_time now);
  void drop_expired(store_time now);

  const std::shared_ptr<const clock> time_;
  mutable std::mutex mutex_; // guards everything below
  embedded_table table_;
  embedded_snapshots snapshots_;
  std::uint64_t last_version_ = 0;
};

/// Blobs are shared with their readers while these copy, so a large one is never copied under the mutex.
class embedded_relocation_store final : public relocation_store {
public:
  explicit embedded_relocation_store(std::shared_ptr<const clock> time);

  void put(std::string reference, store_bytes bytes, std::chrono::milliseconds retention,
           store_completion<blob_put_result> done) override;
  void read_blob(std::string reference, store_completion<std::optional<blob_value>> done) override;
  void renew(std::string reference, std::chrono::milliseconds retention, store_completion<bool> done) override;
  void erase(std::string reference, store_completion<std::monostate> done) override;

  /// Blobs in memory, with those that expired and were not dropped yet.
  std::size_t size() const;

private:
  struct blob {
    std::shared_ptr<const store_bytes> bytes;
    store_time expires_at{};
  };
  using blobs = std::unordered_map<std::string, blob>;

  blobs::iterator find_live(const std::string& reference, store_time now);
  void drop(blobs::iterator which);
  void drop_expired(store_time now);

  const std::shared_ptr<const clock> time_;
  mutable std::mutex mutex_; // guards everything below
  blobs blobs_;
  std::set<std::pair<store_time, const blobs::value_type*>> expiring_;
};

} // namespace zlink::adapters
