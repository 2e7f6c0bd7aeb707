// What a host does about rows without being asked by a caller: releases dead reservations, finds its own interrupted first
// activations, removes its own rows when it shuts down (S-74, S-116, S-117, C-98).
#pragma once

#include "zlink/placement/ownership.hpp"
#include "zlink/placement/transitions.hpp"
#include "zlink/unique_function.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zlink::placement {

struct sweep_settings {
  std::size_t page_items = 200; ///< 1..1000; rows handled at once
  /// The background pass waits so long between pages and between passes, so that it never loads the store.
  std::chrono::milliseconds page_pause{100};
  std::chrono::milliseconds pass_interval{60'000};
  std::chrono::milliseconds call_timeout{5'000}; ///< of one store call
};

struct sweep_report {
  bool complete = false;     ///< every page was read
  std::uint64_t rows = 0;    ///< seen
  std::uint64_t removed = 0; ///< dead reservations released, or own rows removed
  std::uint64_t unusable =
    0; ///< records that cannot be decoded, or slots that do not match: left as they are (S-21, S-84)
};

/// One per host. Every member is called inside the infrastructure unit. Await `stop()` before destroying it.
class sweep {
public:
  /// A row addressed to an own node lifecycle and the current token, outside of moves: its first activation may
  /// have been interrupted (C-98), or nobody may know of it any more. Every pass reports it again while it stands.
  using own_row = unique_function<void(const std::string& id, const row_record& row)>;

  sweep(detail::infrastructure& unit, repository& records, const ownership& owner, const sweep_settings& settings,
        own_row found);
  ~sweep();
  sweep(const sweep&) = delete;
  sweep& operator=(const sweep&) = delete;

  /// A node lifecycle of this host; before the scan.
  void add_node(node_identity node);

  /// The start scan: all rows once, without pauses. Changes only dead reservations (S-74).
  task<sweep_report> scan();
  /// The same now and from time to time, slowly, while the lease is held, until `stop()`.
  void start();
  task<void> stop();

  /// At orderly shutdown: removes the rows with the host's current token, by page, each under its version and lease. Rows of
  /// a former token stay (S-44). Rows that it has by an aggregate leave that first; a move of theirs is called off. Ends at
  /// `until` at the latest.
  task<sweep_report> remove_own(steady_time until);

private:
  struct context;
  using context_ptr = std::shared_ptr<context>;
  enum class purpose : std::uint8_t { release_dead, remove_own };
  struct pass {
    purpose why = purpose::release_dead;
    std::chrono::milliseconds page_pause{};
    steady_time until = steady_time::max();
    owner_token token;
    std::shared_ptr<sweep_report> report; ///< shared with steps that end after the pass
  };

  task<void> keep();
  void on_keep_end();
  task<sweep_report> run(pass what);
  task<bool> pass_over(const pass& what, object_kind kind);
  std::vector<task<void>> steps_for(const pass& what, object_kind kind, const store_scan_result& page);
  bool is_own(const row_record& row, const owner_token& token) const;
  static task<void> release_dead(context_ptr on, object_kind kind, std::string id,
                                 std::shared_ptr<sweep_report> report);
  static task<void> let_leave(context_ptr on, object_kind kind, std::string id, owner_token token, bool by_force);
  static task<void> remove_one(context_ptr on, object_kind kind, std::string id, owner_token token,
                               std::shared_ptr<sweep_report> report);
  static task<bool> apply(context_ptr on, decision decided, std::shared_ptr<sweep_report> report);
  task<void> run_all(std::vector<task<void>> steps, steady_time until);

  const ownership& owner_;
  const sweep_settings settings_;
  own_row found_;
  std::vector<node_identity> nodes_;
  context_ptr context_; ///< what steps need; they may end after the sweep if the store hangs
  bool running_ = false;
  std::vector<detail::counted_ptr<detail::operation<void>>> waiting_for_end_;
};

} // namespace zlink::placement
