// Memory for objects of one size that are made on one thread and freed on another all the time: each thread keeps a few
// free places, and places wander between threads by the batch. A general allocator takes a lock for every such object.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define ZLINK_POOL_PLACES 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ZLINK_POOL_PLACES 0
#endif
#endif
#ifndef ZLINK_POOL_PLACES
#define ZLINK_POOL_PLACES 1
#endif

namespace zlink::detail {

/// Places of `Size` bytes. Any thread. What a burst needed beyond about `Kept` bytes goes back to the heap when it is over.
/// Under an address sanitizer every place comes from the heap, so that it sees a use after the end.
template <std::size_t Size, std::size_t Align, std::size_t Kept = std::size_t{64} * 1024 * 1024>
class place_pool {
public:
  static void* take() {
    if constexpr (!pooled)
      return from_heap();
    auto& mine = cache_;
    if (mine.first == nullptr)
      refill(mine);
    auto* place = mine.first;
    mine.first = place->next;
    --mine.count;
    ++mine.taken;
    return place;
  }
  static void give(void* place) noexcept {
    if constexpr (!pooled) {
      to_heap(place);
      return;
    }
    auto& mine = cache_;
    if (mine.first == nullptr)
      watch_end_of_thread();
    mine.first = ::new (place) free_place{mine.first};
    --mine.taken;
    if (++mine.count == 3 * batch)
      spill(mine);
  }
  /// Places in use, as far as other threads have told: exact once they have ended.
  static std::int64_t in_use() noexcept { return taken_.load(std::memory_order_relaxed) + cache_.taken; }

private:
  static constexpr bool pooled = ZLINK_POOL_PLACES != 0;
  static constexpr int batch = 64;
  static constexpr std::size_t kept_lists = std::max<std::size_t>(1, Kept / (Size * batch));

  struct free_place {
    free_place* next;
  };
  static_assert(Size >= sizeof(free_place));

  struct thread_cache {
    free_place* first = nullptr;
    int count = 0;
    std::int64_t taken = 0; ///< difference not yet added to `taken_`
  };

  /// Returns a thread's places when it ends.
  struct cache_reaper {
    ~cache_reaper() {
      taken_.fetch_add(std::exchange(cache_.taken, 0), std::memory_order_relaxed);
      free_all(std::exchange(cache_.first, nullptr));
      cache_.count = 0;
    }
  };

  /// Free places by the batch, shared by all threads.
  struct shared_lists {
    std::mutex mutex;
    std::vector<free_place*> lists;
  };
  /// Never destroyed: places may be given back while other statics go.
  static shared_lists& shared() {
    static auto* the_lists = new shared_lists;
    return *the_lists;
  }

  static void free_all(free_place* list) noexcept {
    while (list != nullptr)
      ::operator delete(std::exchange(list, list->next), std::align_val_t{Align});
  }
  static void* from_heap() {
    taken_.fetch_add(1, std::memory_order_relaxed);
    return ::operator new(Size, std::align_val_t{Align});
  }
  static void to_heap(void* place) noexcept {
    taken_.fetch_sub(1, std::memory_order_relaxed);
    ::operator delete(place, std::align_val_t{Align});
  }
  [[gnu::noinline]] static void watch_end_of_thread() noexcept {
    thread_local cache_reaper reaper;
    (void)reaper;
  }
  [[gnu::noinline]] static void refill(thread_cache& mine) {
    watch_end_of_thread();
    {
      auto& all = shared();
      std::lock_guard guard{all.mutex};
      if (!all.lists.empty()) {
        mine.first = all.lists.back();
        all.lists.pop_back();
        mine.count = batch;
        return;
      }
    }
    for (int i = 0; i < batch; ++i)
      mine.first = ::new (::operator new(Size, std::align_val_t{Align})) free_place{mine.first};
    mine.count = batch;
  }
  [[gnu::noinline]] static void spill(thread_cache& mine) noexcept {
    auto* list = mine.first;
    auto* last = list;
    for (int i = 1; i < batch; ++i)
      last = last->next;
    mine.first = last->next;
    last->next = nullptr;
    mine.count -= batch;
    if (!share(list))
      free_all(list);
  }
  /// False: there are enough.
  static bool share(free_place* list) noexcept {
    auto& all = shared();
    std::lock_guard guard{all.mutex};
    if (all.lists.size() >= kept_lists)
      return false;
    all.lists.push_back(list);
    return true;
  }

  static inline std::atomic<std::int64_t> taken_{0};
  static inline constinit thread_local thread_cache cache_{};
};

} // namespace zlink::detail
