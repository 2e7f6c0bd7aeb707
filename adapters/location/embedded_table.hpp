// The rows of the embedded Location Store: found by hash, kept in key order, dropped when they expire. Not thread-safe.
#pragma once

#include "zlink/location_store.hpp"

#include <boost/intrusive/set.hpp>
#include <boost/intrusive/unordered_set.hpp>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace zlink::adapters {

/// The expiry of a row that has none.
inline constexpr store_time never_expires = store_time::max();

/// One stored value. The key stands behind the object in the same allocation: a store holds a million of these.
class embedded_row
  : public boost::intrusive::unordered_set_base_hook<boost::intrusive::store_hash<true>,
                                                     boost::intrusive::link_mode<boost::intrusive::normal_link>>,
    public boost::intrusive::set_base_hook<boost::intrusive::optimize_size<true>,
                                           boost::intrusive::link_mode<boost::intrusive::normal_link>> {
public:
  static embedded_row* create(std::string_view key);
  static void destroy(embedded_row* row) noexcept;
  embedded_row(const embedded_row&) = delete;
  embedded_row& operator=(const embedded_row&) = delete;

  std::string_view key() const noexcept { return {reinterpret_cast<const char*>(this + 1), key_bytes_}; }
  bool is_live(store_time now) const noexcept { return expires_at > now; }

  std::uint64_t version = 0; ///< never the same twice in one store (S-12)
  store_time expires_at = never_expires;

private:
  explicit embedded_row(std::size_t key_bytes) : key_bytes_(key_bytes) {}
  ~embedded_row() = default;
  std::size_t key_bytes_;

public:
  store_bytes bytes;
};

/// Point operations cost one hash look-up; only a new or a removed key touches the order.
class embedded_table {
public:
  struct by_key {
    using type = std::string_view;
    std::string_view operator()(const embedded_row& row) const noexcept { return row.key(); }
  };
  using ordered_rows = boost::intrusive::set<embedded_row, boost::intrusive::key_of_value<by_key>,
                                             boost::intrusive::constant_time_size<false>>;
  using const_iterator = ordered_rows::const_iterator;

  embedded_table();
  ~embedded_table();
  embedded_table(const embedded_table&) = delete;
  embedded_table& operator=(const embedded_table&) = delete;

  /// Null if there is none; an expired row that was not dropped yet is found like any other.
  embedded_row* find(std::string_view key) noexcept;
  /// `key` must not be there.
  embedded_row& insert(std::string_view key);
  /// Replaces what the row holds.
  void assign(embedded_row& row, store_bytes bytes, std::uint64_t version, store_time expires_at);
  void erase(embedded_row& row) noexcept;

  /// The first row with a key greater than `key`, or not less than it.
  const_iterator after(std::string_view key) const { return ordered_.upper_bound(key); }
  const_iterator from(std::string_view key) const { return ordered_.lower_bound(key); }
  const_iterator end() const noexcept { return ordered_.end(); }

  /// The row that expired first, if one did by `now`.
  embedded_row* first_expired(store_time now) const noexcept;
  std::size_t size() const noexcept { return hashed_.size(); }

private:
  struct hash_key {
    std::size_t operator()(std::string_view key) const noexcept { return std::hash<std::string_view>{}(key); }
  };
  // Incremental: growing by one row never re-links them all at once under the store's mutex.
  using hashed_rows = boost::intrusive::unordered_set<
    embedded_row, boost::intrusive::key_of_value<by_key>, boost::intrusive::hash<hash_key>,
    boost::intrusive::equal<std::equal_to<std::string_view>>, boost::intrusive::power_2_buckets<true>,
    boost::intrusive::incremental<true>, boost::intrusive::compare_hash<true>>;
  using expiring_row = std::tuple<store_time, std::uint64_t, embedded_row*>;

  void make_room();
  void note_expiry(embedded_row& row);
  void forget_expiry(embedded_row& row) noexcept;

  std::vector<hashed_rows::bucket_type> buckets_; // before hashed_, which points into it
  hashed_rows hashed_;
  ordered_rows ordered_;
  std::set<expiring_row> expiring_;
};

} // namespace zlink::adapters
