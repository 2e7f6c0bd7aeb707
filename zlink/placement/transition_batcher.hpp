// Brings the transitions of one host to the store: many at once, one batch at a time (D-19).
#pragma once

#include "zlink/placement/batch_builder.hpp"
#include "zlink/placement/transitions.hpp"
#include "zlink/unique_function.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace zlink::placement {

/// Collects fragments, merges them into batches, tells each its own end. A failing fragment fails no other one: after a
/// Conflict whatever the fragments share is read again, and the rest is halved until the culprits are alone. While a
/// batch is under way the next one collects.
///
/// Belongs to one thread. The store must answer on that thread and not from inside the call (the owner posts
/// completions to its loop). Completions of fragments may call `add` and `flush`, but not destroy the batcher. How
/// many fragments wait is bounded by the operations the host admits.
class transition_batcher {
public:
  using completion = unique_function<void(fragment_result)>;

  /// `store` is shared so that it outlives its answers. `on_stall` is called when the store does not even answer the
  /// reads that shall settle an unclear result: after some time the owner calls `resume`.
  transition_batcher(std::shared_ptr<location_store> store, unique_function<void()> on_stall);
  ~transition_batcher();
  transition_batcher(const transition_batcher&) = delete;
  transition_batcher& operator=(const transition_batcher&) = delete;

  /// Takes part in the next batch. `done` is called once, unless the batcher is destroyed before. Throws
  /// `std::invalid_argument` if the fragment alone is no valid batch, or has more than 3 MiB.
  void add(fragment what, completion done);
  /// Starts a batch if none is under way. Later ones start by themselves while fragments wait.
  void flush();
  /// Asks the store again after a stall.
  void resume();
  bool is_stalled() const noexcept { return static_cast<bool>(stalled_); }
  bool is_idle() const noexcept { return !busy_ && waiting_.empty(); }

private:
  struct entry {
    fragment what;
    completion done;
    std::uint64_t added = 0; ///< in the order of additions and of reads that began
    bool doubted = false; ///< copies spoke against it: decide by records just read
    new_generations numbers; ///< of the batch under way
    /// Records just read spoke against it: its end, if its conditions turn out to hold. Only these are left of it.
    std::optional<fragment_outcome> verdict;
  };
  using entries = std::vector<entry>;
  /// Fragments that go to the store together, if they can.
  struct group {
    entries members;
    bool examined = false; ///< after a Conflict, what many of them share was found in order
    int retries = 0;       ///< how often the records that they share had changed
  };
  using ends = std::vector<std::pair<completion, fragment_result>>;
  struct examination;
  struct settlement;

  void next();
  bool read_missing();
  bool read_missing_counter();
  entries take_waiting();
  void send(group wanted);
  void judge(entry& one, placing why) const;
  bool was_just_read(const entry& one) const;
  bool is_fresh(const std::string& key, const entry& one) const;
  void on_applied(group& sent, const batch_builder::result& built, const store_write_result& result);
  void on_conflict(group sent, store_time now);
  void examine(std::shared_ptr<examination> about);
  void conclude(examination& about);
  void split(group sent);
  void settle(std::shared_ptr<settlement> about);
  void end_all(entries& members, fragment_outcome what, store_time now);
  static void tell(ends& ended);

  void write(store_batch batch, store_completion<store_write_result> then);
  /// Asks until there is an answer, with a stall after each failure.
  void read(std::string key, unique_function<void(store_read_result)> then);
  bool note_capacity(const node_identity& node, const store_read_result& seen);
  void read_counter(sequence which, unique_function<void(bool changed)> then);
  batch_builder new_builder() const { return {copies_, store_->process_local()}; }

  const std::shared_ptr<location_store> store_;
  unique_function<void()> on_stall_;
  shared_copies copies_;
  std::uint64_t steps_ = 0;
  /// Capacity records and counters read since the last batch was built, and when each read began: what is older than a
  /// fragment says nothing about it.
  std::unordered_map<std::string, std::uint64_t> just_read_;
  std::deque<entry> waiting_;
  std::vector<group> parts_; ///< of a batch that met a Conflict, still to be tried; the next one last
  bool busy_ = false;
  unique_function<void()> stalled_;
  std::shared_ptr<const bool> alive_; ///< answers that come after the destructor find it gone
};

} // namespace zlink::placement
