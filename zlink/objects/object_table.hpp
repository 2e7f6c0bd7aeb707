// Who is here: Spot id -> object. Finding and appending are one step under the shard's lock, so a record never reaches an
// object that has left.
#pragma once

#include "zlink/execution/counted.hpp"
#include "zlink/objects/spot_object.hpp"

#include <array>
#include <mutex>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace zlink::detail {

class object_table {
public:
  object_table() = default;
  object_table(const object_table&) = delete;
  object_table& operator=(const object_table&) = delete;

  /// How a record fared.
  struct delivery {
    bool found = false;
    admission verdict = admission::sealed;
  };

  /// Appends `r` to the Spot's application lane if it is here and admits it; otherwise `r` stays with the caller.
  /// `may_stage`: the record carries Instance intent.
  /// `arrival`: it came from another node, lack of room is no reason.
  template <class Prepare>
  delivery deliver(std::string_view id, record* r, bool may_stage, bool arrival, Prepare before_submit) noexcept {
    const hashed_id key{id};
    auto& part = shard_of(key);
    std::lock_guard guard{part.mutex};
    const auto i = part.spots.find(key);
    if (i == part.spots.end())
      return {};
    spot_object& object = **i;
    if (!before_submit(object))
      return {true, admission::sealed};
    return {true, arrival ? object.submit_arrival(r, may_stage) : object.submit(r, may_stage)};
  }

  /// The object, or null.
  counted_ptr<spot_object> find(std::string_view id) const noexcept {
    const hashed_id key{id};
    auto& part = shard_of(key);
    std::lock_guard guard{part.mutex};
    const auto i = part.spots.find(key);
    return i == part.spots.end() ? counted_ptr<spot_object>{} : *i;
  }

  /// Adds the object with `first` in its application lane, before anybody can find it. False, and nothing happens, if
  /// there is an object of that id.
  bool insert(counted_ptr<spot_object> object, record* first = nullptr) {
    auto& part = shard_of(hashed_id{*object});
    std::lock_guard guard{part.mutex};
    auto* added = object.get();
    if (!part.spots.insert(std::move(object)).second)
      return false;
    if (first != nullptr)
      added->submit_unchecked(first, true);
    return true;
  }
  /// Takes `out` from the table and puts `in` in its place, as one step for arrivals.
  void replace(spot_object& out, counted_ptr<spot_object> in);
  bool erase(spot_object& object) noexcept;

  std::size_t size() const noexcept;
  /// A copy of the references, shard by shard; objects come and go meanwhile.
  std::vector<counted_ptr<spot_object>> snapshot() const;

private:
  /// Hashed once for each search.
  struct hashed_id {
    explicit hashed_id(std::string_view text) noexcept : id(text), hash(std::hash<std::string_view>{}(text)) {}
    explicit hashed_id(const spot_object& object) noexcept : id(object.id()), hash(object.id_hash()) {}
    std::string_view id;
    std::size_t hash;
  };
  struct id_hash {
    using is_transparent = void;
    std::size_t operator()(const hashed_id& key) const noexcept { return key.hash; }
    std::size_t operator()(const counted_ptr<spot_object>& o) const noexcept { return o->id_hash(); }
  };
  struct id_equal {
    using is_transparent = void;
    bool operator()(const hashed_id& key, const counted_ptr<spot_object>& o) const noexcept {
      return key.hash == o->id_hash() && key.id == o->id();
    }
    bool operator()(const counted_ptr<spot_object>& o, const hashed_id& key) const noexcept { return (*this)(key, o); }
    bool operator()(const counted_ptr<spot_object>& a, const counted_ptr<spot_object>& b) const noexcept {
      return a->id() == b->id();
    }
  };
  struct alignas(64) shard {
    mutable std::mutex mutex;
    std::unordered_set<counted_ptr<spot_object>, id_hash, id_equal> spots;
  };
  static constexpr std::size_t shards = 64;

  shard& shard_of(const hashed_id& key) const noexcept { return shards_[(key.hash >> 7) % shards]; }

  mutable std::array<shard, shards> shards_;
};

} // namespace zlink::detail
