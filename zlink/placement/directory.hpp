// The nodes of one mesh, found by polling the store (S-50 to S-56, S-68, S-69).
#pragma once

#include "zlink/defaults.hpp"
#include "zlink/placement/candidates.hpp"
#include "zlink/placement/store_calls.hpp"
#include "zlink/unique_function.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace zlink::placement {

struct directory_settings {
  std::chrono::milliseconds polling_interval = defaults::discovery_polling_interval;
  std::chrono::milliseconds call_timeout{5'000}; ///< of one store call
  std::chrono::milliseconds lease_ttl = defaults::lease_ttl;
  std::chrono::milliseconds lease_margin = defaults::lease_fencing_margin;
  std::chrono::milliseconds failure_grace = defaults::store_failure_grace;
  std::size_t page_items = store_bounds::page_items; ///< 1..1000
};

/// A node whose published descriptor passed the live test (S-51).
struct live_node {
  std::shared_ptr<const descriptor_record> descriptor;
  std::string version;
  /// Until then it may be selected without another read of its lease (S-53).
  steady_time usable_until{};
  /// It was missing in a list read soon after the store came back: its connect intent stays, it is no candidate (S-69).
  bool lingering = false;

  descriptor_stamp stamp() const { return {descriptor->node, version}; }
  bool usable(steady_time now) const noexcept { return !lingering && now < usable_until; }
};

/// What one complete read showed. Immutable.
class directory_snapshot {
public:
  directory_snapshot() = default;
  explicit directory_snapshot(std::vector<live_node> nodes, bool damaged = false);

  /// In byte order of their RIDs.
  const std::vector<live_node>& nodes() const noexcept { return nodes_; }
  /// Null if there is no such node.
  const live_node* find(std::string_view node_rid) const noexcept;
  /// The node whose published descriptor names this Entry Spot; null if none does (S-47).
  const live_node* find_entry_spot(std::string_view spot_id) const noexcept;
  /// A descriptor or lease in the store cannot be used: what was read changed nothing, awaited selections end
  /// `internal_failure` (S-52, S-21).
  bool damaged() const noexcept { return damaged_; }
  /// For `choose_node` and `infer_instance_type`. Valid as long as the snapshot.
  std::vector<candidate> candidates(steady_time now) const;

private:
  std::vector<live_node> nodes_;
  bool damaged_ = false;
  std::unordered_map<std::string_view, std::size_t> by_entry_spot_; ///< keys point into the descriptors
};

enum class store_health : std::uint8_t {
  unknown, ///< nothing was read yet
  healthy,
  degraded, ///< the last read failed: the last list stays (S-68)
  failed,   ///< for longer than the grace; changes nothing but this word (S-68)
};

struct directory_status {
  store_health health = store_health::unknown;
  std::optional<steady_time> refreshed_at; ///< when the last complete read began
};

enum class refresh_outcome : std::uint8_t {
  complete,
  damaged,     ///< `internal_failure` (S-52)
  unavailable, ///< the store did not answer, or `stop()` came first
};

/// One per mesh. Every member is called inside the infrastructure unit unless said otherwise. Await `stop()` before
/// destroying it, if `start()` was called.
class directory {
public:
  using snapshot_ptr = std::shared_ptr<const directory_snapshot>;
  /// Called inside the unit when nodes came, went or changed; not when only their `usable_until` did.
  using listener = unique_function<void(const snapshot_ptr&)>;

  directory(detail::infrastructure& unit, repository& records, std::string mesh_name,
            const directory_settings& settings);
  ~directory();
  directory(const directory&) = delete;
  directory& operator=(const directory&) = delete;

  /// Before `start()`.
  void add_listener(listener told) { listeners_.push_back(std::move(told)); }
  /// Called inside the unit when the store answers again after reads that failed. Before `start()`.
  void on_recovery(unique_function<void()> told) { recovered_ = std::move(told); }
  /// Reads at once, then every polling interval (S-56).
  void start();
  task<void> stop();

  /// A complete read that begins after this call, every lease included. Callers that come together share one. Ends with
  /// `unavailable` if the directory is not running.
  task<refresh_outcome> refresh();

  /// Any thread. Never null.
  snapshot_ptr snapshot() const;
  /// Any thread. A copy, since the list may change meanwhile.
  std::optional<live_node> find(std::string_view node_rid) const;
  std::optional<live_node> find_entry_spot(std::string_view spot_id) const;
  /// Any thread.
  directory_status status() const;

  const std::string& mesh_name() const noexcept { return mesh_name_; }

private:
  /// One descriptor of a list that is being read.
  struct found_node {
    live_node node;
    bool live = false;
  };
  struct listing {
    std::vector<found_node> found;
    bool damaged = false;
  };
  using refresh_waiter = detail::counted_ptr<detail::operation<refresh_outcome>>;

  task<void> poll();
  void on_poll_end();
  task<refresh_outcome> read_all(bool every_lease);
  task<bool> list(listing& into);
  task<refresh_outcome> judge_leases(listing& all, bool every_lease);
  task<refresh_outcome> read_lease(found_node& one);
  void take_item(listing& into, const store_scan_item& item) const;
  bool is_known(found_node& one, steady_time now) const;
  bool shows_emptied_store(const listing& all) const;
  void apply(listing& all, steady_time began);
  void install(std::vector<live_node> nodes, bool damaged);
  void note_failure();
  void note_answer();

  const std::string mesh_name_;
  const directory_settings settings_;
  store_calls calls_;
  std::vector<listener> listeners_;
  unique_function<void()> recovered_;
  std::unordered_map<std::string, std::string> dead_; ///< RID to descriptor version whose owner's lease is over
  std::vector<refresh_waiter> waiting_;
  std::optional<steady_time> failing_since_;
  std::optional<steady_time> linger_until_; ///< what is missing in lists that are read before then stays (S-69)
  bool running_ = false;
  std::vector<detail::counted_ptr<detail::operation<void>>> waiting_for_end_;

  mutable std::mutex mutex_; // guards what any thread may ask for
  snapshot_ptr snapshot_;
  directory_status status_;
};

} // namespace zlink::placement
