// Merges fragments into one store batch: shared conditions once, capacity records folded, bounds respected.
#pragma once

#include "zlink/placement/transitions.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace zlink::placement {

/// The capacity records that this host wrote or read last, by key. They may be outdated, which a Conflict shows.
class capacity_copies {
public:
  struct copy {
    std::optional<capacity_record> record; ///< absent: there is none
    std::string version;
    bool unreadable = false; ///< there is one that this layer cannot decode
  };
  /// Null if the record was never read, or was forgotten. Good until the next `assign` or `forget`.
  const copy* find(const std::string& key) const;
  /// True if that is another version than before.
  bool assign(const std::string& key, copy seen);
  void forget(const std::string& key) { copies_.erase(key); }
  /// Nodes come and go: when there are very many copies, all are read again.
  void trim() {
    if (copies_.size() > copies_limit)
      copies_.clear();
  }

private:
  static constexpr std::size_t copies_limit = 4096;
  std::unordered_map<std::string, copy> copies_;
};

/// How a fragment fits into the batch under construction.
enum class placing : std::uint8_t {
  placed,
  later,       ///< shares a key that one of the two changes, or there is no room left: next batch
  conflict,    ///< the node lifecycle whose slots it needs is gone
  no_capacity, ///< by the capacity copies, including what was placed before
  corrupt,     ///< by the capacity copies: slots are missing that a row has, or the record is unreadable
};

/// Copies and the vectors inside the fragments must stay as they are until `finish`. Two fragments are merged only if
/// neither changes what the other looks at, so that one batch means the same as one after the other.
class batch_builder {
public:
  explicit batch_builder(const capacity_copies& copies) : copies_(copies) {}

  placing place(const fragment& what);
  /// No other fragment will fit: stop trying.
  bool is_full() const noexcept;
  std::size_t fragments() const noexcept { return fragments_; }

  struct folded_capacity {
    std::string key;
    capacity_record record;
    std::size_t mutation = 0; ///< its place in the batch
  };
  struct result {
    store_batch batch;
    std::vector<std::size_t> row_mutation; ///< of each placed fragment, in order
    std::vector<folded_capacity> capacity; ///< the records that the batch writes
  };
  result finish();

private:
  struct key_use {
    const store_condition* condition = nullptr;
    bool changed = false;
  };
  struct folding {
    const capacity_copies::copy* before = nullptr;
    std::optional<capacity_record> after;
    bool changed = false;
  };

  bool fits(const fragment& what, std::size_t& keys, std::size_t& bytes) const;
  placing fold(const fragment& what);

  const capacity_copies& copies_;
  std::unordered_map<std::string_view, key_use> keys_;
  std::map<std::string, folding> capacity_;
  std::vector<const store_condition*> conditions_;
  std::vector<const store_mutation*> mutations_;
  std::vector<std::size_t> row_mutation_;
  std::size_t fragments_ = 0;
  std::size_t bytes_ = 0;
};

} // namespace zlink::placement
