// From an id to where it lives: route cache, then Location Store (M-74 to M-79, S-105).
#pragma once

#include "zlink/clock.hpp"
#include "zlink/error.hpp"
#include "zlink/identity.hpp"
#include "zlink/placement/records.hpp"
#include "zlink/task.hpp"

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace zlink::detail {

class host_runtime;

/// Where a Ready object lives, with the fences of what was read. Never kept without them (M-74).
struct object_route {
  std::string mesh_name;
  std::string node_rid;
  object_generation object;
  authority_generation authority;
  steady_time usable_until{}; ///< of the owner's lease, by the local admission deadline (M-76)
  bool exact = false; ///< of a session: to that incarnation and no later one (N-83)
};

enum class resolved : std::uint8_t {
  ready,       ///< `route` says where
  missing,     ///< no authority: only this may create
  creating,    ///< reserved by somebody
  closing,     ///< the owner in `route` is closing it
  entry,       ///< an Entry Spot of the node in `route`
  unavailable, ///< owned, but the owner cannot be used
  unknown,     ///< the store did not answer, or holds something that must not be
};

struct resolution {
  resolved what = resolved::unknown;
  object_route route;
  placement::observed_object seen;
  std::string why; ///< for the text of errors
  error_kind kind = error_kind::unavailable; ///< of `unknown`: `internal_failure` for what must not be (S-158)
};

/// Positive results only (C-65). Any thread.
class route_cache {
public:
  explicit route_cache(std::chrono::milliseconds max_age) noexcept : max_age_(max_age) {}
  /// Null: none is known.
  std::shared_ptr<const object_route> find(std::string_view id, steady_time now);
  void put(std::string_view id, object_route route, steady_time now);
  /// Forgets the route that was found to lead nowhere, not one that was learned since (M-82, M-85).
  void erase(std::string_view id, object_generation object, authority_generation authority) noexcept;
  /// The store shows `row` under the id now, or nothing: an older route is forgotten (M-79).
  void row_seen(std::string_view id, const placement::row_record* row) noexcept;
  /// Store recovery and lease invalidation empty it (M-79).
  void clear() noexcept;

private:
  /// Finds a text without a copy of it.
  struct text_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  struct shard {
    std::mutex mutex;
    std::unordered_map<std::string, std::shared_ptr<const object_route>, text_hash, std::equal_to<>> routes;
  };
  static constexpr std::size_t shards = 16;
  shard& shard_of(std::string_view id) noexcept { return shards_[std::hash<std::string_view>{}(id) % shards]; }
  std::array<shard, shards> shards_;
  const std::chrono::milliseconds max_age_;
};

class resolver {
public:
  resolver(host_runtime& host, std::chrono::milliseconds cache_age) noexcept : cache(cache_age), host_(host) {}
  /// Reads the store. Inside the infrastructure unit.
  task<resolution> resolve(std::string id);
  /// What a row that was read means: its owner may be gone. Inside the unit.
  task<resolution> judge_row(placement::observed_object seen);

  route_cache cache;

private:
  resolution judge_entry(const placement::entry_claim& claim, std::string_view id);

  host_runtime& host_;
};

} // namespace zlink::detail
