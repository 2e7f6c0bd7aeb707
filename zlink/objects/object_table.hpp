// Who is here: address -> Spot or Actor. Finding and appending are one step under the shard's lock, so a record never reaches an
// object that has left.
#pragma once

#include "zlink/execution/counted.hpp"
#include "zlink/execution/job_permits.hpp"
#include "zlink/membership/actor_object.hpp"
#include "zlink/objects/detour.hpp"
#include "zlink/objects/spot_object.hpp"

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
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
    counted_ptr<detour> follow = {}; ///< the message is its business, and `r` still the caller's
  };

  /// Appends `r` to the object's application lane if it is here and admits it; otherwise `r` stays with the caller.
  /// `may_stage`: the record carries Instance intent.
  /// From another node lack of room is no reason. A detour at the address has the first word (L-101).
  template <class Prepare>
  delivery deliver(std::string_view address, record* r, bool may_stage, const passage& how, Prepare before_submit) noexcept {
    job_permits* permit = nullptr; // given back outside of the lock: that takes in what has waited for it
    delivery done;
    {
      const hashed_address key{address};
      auto& part = shard_of(key);
      std::lock_guard guard{part.mutex};
      done = deliver_in(part, key, r, may_stage, how, before_submit, permit);
    }
    if (permit != nullptr)
      permit->release();
    return done;
  }

  // -- while objects move (L-101, L-157) ---------------------------------------------------------------------------------

  /// From now on that detour stands at the address, instead of any other, which is returned.
  counted_ptr<detour> divert(std::string_view address, counted_ptr<detour> by);
  /// That detour is gone, if it is still the one that stands there. `last`, under the lock, takes what it has kept to where
  /// everything else goes from then on.
  template <class F>
  bool end_detour(std::string_view address, const detour& which, F last) {
    counted_ptr<detour> gone; // released outside of the lock
    const hashed_address key{address};
    auto& part = shard_of(key);
    std::lock_guard guard{part.mutex};
    const auto i = part.detours.find(address);
    if (i == part.detours.end() || i->second.get() != &which)
      return false;
    last();
    gone = std::move(i->second);
    part.detours.erase(i);
    return true;
  }
  /// The same, and another one stands in its place; none: nothing.
  void replace_detour(std::string_view address, const detour& which, counted_ptr<detour> by);
  /// The same, and the object stands there in its place; also in that of an earlier instance, which has left and does not know
  /// yet that this one has come back.
  template <class F>
  bool take_over(counted_ptr<hosted_object> object, const detour& which, F last) {
    counted_ptr<hosted_object> former; // released outside of the lock
    auto* added = object.get();
    return end_detour(added->address(), which, [&] {
      last();
      const hashed_address key{*added};
      auto& objects = shard_of(key).objects;
      if (const auto i = objects.find(key); i != objects.end()) {
        former = *i;
        objects.erase(i);
        removed(*former);
      }
      objects.insert(std::move(object));
      this->added(*added);
    });
  }

  /// The object, or null.
  counted_ptr<hosted_object> find_any(std::string_view address) const noexcept {
    const hashed_address key{address};
    auto& part = shard_of(key);
    std::lock_guard guard{part.mutex};
    const auto i = part.objects.find(key);
    return i == part.objects.end() ? counted_ptr<hosted_object>{} : *i;
  }
  counted_ptr<spot_object> find(std::string_view spot_id) const noexcept {
    auto found = find_any(spot_id);
    if (!found || found->is_actor()) // an address of the other kind was asked for
      return {};
    return counted_ptr<spot_object>::adopt(static_cast<spot_object*>(found.release()));
  }
  counted_ptr<actor_object> find_actor(std::string_view actor_id) const {
    return counted_ptr<actor_object>::adopt(static_cast<actor_object*>(find_any(actor_address(actor_id)).release()));
  }

  /// Adds the object with `first` in its application lane, before anybody can find it. False, and nothing happens, if
  /// there is an object of that id.
  bool insert(counted_ptr<hosted_object> object, record* first = nullptr) {
    auto& part = shard_of(hashed_address{*object});
    std::lock_guard guard{part.mutex};
    auto* added = object.get();
    if (!part.objects.insert(std::move(object)).second)
      return false;
    this->added(*added);
    if (first != nullptr)
      added->submit_unchecked(first, true);
    return true;
  }
  /// Takes `out` from the table and puts `in` in its place, as one step for arrivals.
  void replace(hosted_object& out, counted_ptr<hosted_object> in);
  bool erase(hosted_object& object) noexcept;

  /// Spots and Actors.
  std::size_t size() const noexcept;
  std::size_t spots() const noexcept { return size() - actors(); }
  std::size_t actors() const noexcept { return actors_.load(std::memory_order_acquire); }
  /// A copy of the references, shard by shard; objects come and go meanwhile.
  std::vector<counted_ptr<spot_object>> snapshot() const;
  std::vector<counted_ptr<actor_object>> actor_snapshot() const;

private:
  /// Hashed once for each search.
  struct hashed_address {
    explicit hashed_address(std::string_view text) noexcept : address(text), hash(std::hash<std::string_view>{}(text)) {}
    explicit hashed_address(const hosted_object& object) noexcept
      : address(object.address()), hash(object.address_hash()) {}
    std::string_view address;
    std::size_t hash;
  };
  struct address_hash {
    using is_transparent = void;
    std::size_t operator()(const hashed_address& key) const noexcept { return key.hash; }
    std::size_t operator()(const counted_ptr<hosted_object>& o) const noexcept { return o->address_hash(); }
  };
  struct address_equal {
    using is_transparent = void;
    bool operator()(const hashed_address& key, const counted_ptr<hosted_object>& o) const noexcept {
      return key.hash == o->address_hash() && key.address == o->address();
    }
    bool operator()(const counted_ptr<hosted_object>& o, const hashed_address& key) const noexcept { return (*this)(key, o); }
    bool operator()(const counted_ptr<hosted_object>& a, const counted_ptr<hosted_object>& b) const noexcept {
      return a->address() == b->address();
    }
  };
  struct text_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  struct alignas(64) shard {
    mutable std::mutex mutex;
    std::unordered_set<counted_ptr<hosted_object>, address_hash, address_equal> objects;
    std::unordered_map<std::string, counted_ptr<detour>, text_hash, std::equal_to<>> detours;
  };
  static constexpr std::size_t shards = 64;

  template <class Prepare>
  static delivery deliver_in(shard& part, const hashed_address& key, record* r, bool may_stage, const passage& how,
                             Prepare& before_submit, job_permits*& permit) noexcept {
    const auto i = part.objects.find(key);
    const bool found = i != part.objects.end();
    if (found && !before_submit(**i))
      return {true, admission::sealed};
    if (!part.detours.empty())
      if (const auto by = part.detours.find(key.address); by != part.detours.end()) {
        auto* const held = r->permit;
        switch (by->second->take(r, how)) {
          case detour::answer::taken: permit = held; return {true, admission::admitted};
          case detour::answer::follow: return {true, admission::sealed, by->second};
          case detour::answer::pass: break;
        }
      }
    if (!found)
      return {};
    return {true, how.arrival ? (*i)->submit_arrival(r, may_stage) : (*i)->submit(r, may_stage)};
  }
  shard& shard_of(const hashed_address& key) const noexcept { return shards_[(key.hash >> 7) % shards]; }
  void added(const hosted_object& object) noexcept { actors_.fetch_add(object.is_actor() ? 1 : 0, std::memory_order_acq_rel); }
  void removed(const hosted_object& object) noexcept { actors_.fetch_sub(object.is_actor() ? 1 : 0, std::memory_order_acq_rel); }

  mutable std::array<shard, shards> shards_;
  std::atomic<std::size_t> actors_{0};
};

} // namespace zlink::detail
