// Scans of the embedded Location Store: each sees one point in time, while the rows go on changing. Not thread-safe.
#pragma once

#include "adapters/location/embedded_table.hpp"

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace zlink::adapters {

/// The version text that the interface shows for a row's number: short enough to need no allocation.
std::string format_version(std::uint64_t version);

/// A snapshot copies nothing when it is taken. A row that changes afterwards leaves its former state in every live
/// snapshot that covers it, so a page is the present rows overlaid with those former states. Live snapshots and what
/// they retain are bounded; one that had to go answers its later pages with Expired (S-14).
class embedded_snapshots {
public:
  static constexpr std::size_t live_limit = 16;
  static constexpr std::size_t retained_bytes_limit = 64 * 1024 * 1024; ///< of one snapshot
  static constexpr std::chrono::seconds idle_limit{60};                 ///< unused for so long, it is dropped

  /// The first page; makes a snapshot if it is not the only one. The arguments are within bounds.
  store_scan_result first_page(const embedded_table& table, std::string prefix, std::size_t limit, store_time now);
  /// A later page, or Expired.
  store_scan_result next_page(const embedded_table& table, std::string_view prefix, std::string_view cursor,
                              std::size_t limit, store_time now);
  /// Must be called before the state of `key` changes. `row` is its present row, if any.
  void before_change(std::string_view key, const embedded_row* row, store_time now) {
    if (!live_.empty())
      retain(key, row, now);
  }

private:
  struct former_state {
    store_bytes bytes;
    std::uint64_t version = 0;
    store_time expires_at = never_expires;
  };
  struct snapshot {
    std::uint64_t id = 0;
    std::string prefix;
    store_time fixed_at{};
    store_time used_at{};
    std::map<std::string, std::optional<former_state>, std::less<>> changed; // empty state: was not there
    std::size_t retained_bytes = 0;
  };
  class reader;

  static store_scan_result page(const embedded_table& table, const snapshot& from, std::string_view after,
                                std::size_t limit);
  void retain(std::string_view key, const embedded_row* row, store_time now);

  std::list<snapshot> live_; // least recently used first
};

} // namespace zlink::adapters
