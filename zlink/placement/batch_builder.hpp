// Merges fragments into one store batch: shared conditions once, capacity records and counters folded, bounds respected.
#pragma once

#include "zlink/placement/generations.hpp"
#include "zlink/placement/transitions.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace zlink::placement {

/// A node by name, as keys of capacity records tell them apart; views of whoever asks.
struct node_name {
  std::string_view mesh;
  std::string_view rid;
  friend bool operator==(const node_name&, const node_name&) = default;
};
inline node_name name_of(const node_identity& node) noexcept { return {node.mesh_name, node.node_rid}; }

/// The capacity records that this host wrote or read last. They may be outdated, which a Conflict shows.
class capacity_copies {
public:
  struct copy {
    std::optional<capacity_record> record; ///< absent: there is none
    std::string version;
    bool unreadable = false; ///< there is one that this layer cannot decode
  };
  /// Null if the record was never read, or was forgotten. Good until the next `assign` or `forget`.
  const copy* find(node_name node) const;
  /// True if that is another version than before.
  bool assign(node_name node, copy seen);
  void forget(node_name node);
  /// Nodes come and go: when there are very many copies, all are read again.
  void trim() {
    if (copies_.size() > copies_limit)
      copies_.clear();
  }

private:
  struct by_name {
    using is_transparent = void;
    static node_name name(const node_name& node) noexcept { return node; }
    static node_name name(const std::pair<std::string, std::string>& node) noexcept { return {node.first, node.second}; }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const noexcept {
      const auto x = name(a);
      const auto y = name(b);
      return std::tie(x.rid, x.mesh) < std::tie(y.rid, y.mesh);
    }
  };
  static constexpr std::size_t copies_limit = 4096;
  std::map<std::pair<std::string, std::string>, copy, by_name> copies_;
};

/// How a fragment fits into the batch under construction.
enum class placing : std::uint8_t {
  placed,
  later,       ///< shares a key that one of the two changes, or there is no room left: next batch
  conflict,    ///< the node lifecycle whose slots it needs is gone
  no_capacity, ///< by the capacity copies, including what was placed before
  corrupt,     ///< by the copies: slots are missing that a row has, or a record is unreadable
  exhausted,   ///< a counter has no number left (S-30)
};

/// What this host knows of the records that many transitions share.
struct shared_copies {
  capacity_copies capacity;
  counter_copies counters;
};

/// Copies and the vectors inside the fragments must stay as they are until `finish`. Two fragments are merged only if
/// neither changes what the other looks at, so that one batch means the same as one after the other.
class batch_builder {
public:
  batch_builder(const shared_copies& copies, bool process_local) : copies_(copies), process_local_(process_local) {}

  /// Stamps the numbers that it issues into the fragment's row.
  placing place(fragment& what);
  /// No other fragment will fit: stop trying.
  bool is_full() const noexcept;
  std::size_t fragments() const noexcept { return fragments_; }

  struct folded_capacity {
    node_identity node;
    capacity_record record;
    std::size_t mutation = 0; ///< its place in the batch
  };
  struct folded_counter {
    sequence which = sequence::object;
    std::uint64_t next = 0;
    std::size_t mutation = 0;
  };
  struct placed_row {
    std::size_t mutation = 0;
    new_generations numbers; ///< issued for it
  };
  struct result {
    store_batch batch;
    std::vector<placed_row> rows; ///< of each placed fragment, in order
    std::vector<folded_capacity> capacity; ///< the records that the batch writes
    std::vector<folded_counter> counters;
  };
  result finish();

private:
  struct key_use {
    const store_condition* condition = nullptr;
    bool changed = false;
  };
  /// A condition that several fragments name, such as the host's lease; null: not met twice so far. None of them is
  /// changed: who changes a key that is placed goes into the next batch.
  const store_condition* find_shared(std::string_view key) const noexcept;
  void note_shared(const store_condition* condition);
  struct folding {
    node_identity node;
    const capacity_copies::copy* before = nullptr;
    std::optional<capacity_record> after;
    bool used = false; ///< by a fragment that was placed
    bool changed = false;
  };

  bool fits(const fragment& what, std::size_t& bytes);
  folding* find_folding(node_name node) noexcept;
  placing fold(const fragment& what);
  placing fold(folding& at, const capacity_change& change);
  placing draw(const fragment& what, new_generations& numbers) const;
  std::uint64_t next_number(sequence which, std::uint64_t taken) const;
  void finish_counter(result& made, sequence which, std::uint64_t taken) const;

  const shared_copies& copies_;
  const bool process_local_;
  std::unordered_map<std::string_view, key_use> keys_;
  std::vector<folding> capacity_; ///< of few nodes: mostly the host's own
  std::vector<const store_condition*> conditions_;
  std::vector<const store_condition*> shared_; ///< a few, asked before the hash table
  std::vector<const store_mutation*> mutations_;
  std::vector<placed_row> rows_;
  std::uint64_t objects_ = 0;     ///< numbers taken from the counter of objects
  std::uint64_t authorities_ = 0; ///< and of their owners
  std::size_t fragments_ = 0;
  std::size_t bytes_ = 0;
};

} // namespace zlink::placement
