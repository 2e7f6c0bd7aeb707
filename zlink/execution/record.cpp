#include "zlink/execution/record.hpp"

#include "zlink/execution/job_permits.hpp"

#include <cassert>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define ZLINK_POOL_RECORDS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ZLINK_POOL_RECORDS 0
#endif
#endif
#ifndef ZLINK_POOL_RECORDS
#define ZLINK_POOL_RECORDS 1
#endif

namespace zlink::detail {

namespace {

std::atomic<std::int64_t> live_count{0};

#if ZLINK_POOL_RECORDS

constexpr int batch = 64;

/// Free records by the batch, shared by all threads.
class shared_pool {
public:
  /// A list of `batch` free places.
  inbox_node* take() {
    std::lock_guard guard{mutex_};
    if (lists_.empty())
      return nullptr;
    auto* list = lists_.back();
    lists_.pop_back();
    return list;
  }
  void give(inbox_node* list) {
    std::lock_guard guard{mutex_};
    lists_.push_back(list);
  }

private:
  std::mutex mutex_;
  std::vector<inbox_node*> lists_;
};

/// Never destroyed: records may be freed while other statics go.
shared_pool& pool() {
  static auto* the_pool = new shared_pool;
  return *the_pool;
}

/// A place for one record while it is free.
struct free_place {
  free_place* next;
};

struct thread_cache {
  free_place* first = nullptr;
  int count = 0;
  std::int64_t live = 0; ///< difference not yet added to `live_count`
};

constinit thread_local thread_cache cache;

/// Returns a thread's records when it ends.
struct cache_reaper {
  ~cache_reaper() {
    live_count.fetch_add(std::exchange(cache.live, 0), std::memory_order_relaxed);
    while (cache.first != nullptr)
      ::operator delete(std::exchange(cache.first, cache.first->next), std::align_val_t{alignof(record)});
    cache.count = 0;
  }
};

void refill() {
  thread_local cache_reaper reaper;
  (void)reaper;
  if (auto* list = reinterpret_cast<free_place*>(pool().take())) {
    cache.first = list;
    cache.count = batch;
    return;
  }
  for (int i = 0; i < batch; ++i) {
    auto* place = static_cast<free_place*>(::operator new(sizeof(record), std::align_val_t{alignof(record)}));
    place->next = cache.first;
    cache.first = place;
  }
  cache.count = batch;
}

void spill() {
  auto* list = cache.first;
  auto* last = list;
  for (int i = 1; i < batch; ++i)
    last = last->next;
  cache.first = last->next;
  last->next = nullptr;
  cache.count -= batch;
  pool().give(reinterpret_cast<inbox_node*>(list));
}

void* take_place() {
  if (cache.first == nullptr)
    refill();
  auto* place = cache.first;
  cache.first = place->next;
  --cache.count;
  ++cache.live;
  return place;
}

void give_place(void* place) noexcept {
  cache.first = ::new (place) free_place{cache.first};
  --cache.live;
  if (++cache.count == 3 * batch)
    spill();
}

#else

void* take_place() {
  live_count.fetch_add(1, std::memory_order_relaxed);
  return ::operator new(sizeof(record), std::align_val_t{alignof(record)});
}

void give_place(void* place) noexcept {
  live_count.fetch_sub(1, std::memory_order_relaxed);
  ::operator delete(place, std::align_val_t{alignof(record)});
}

#endif

} // namespace

record* make_record(record_kind kind) {
  auto* r = ::new (take_place()) record;
  r->kind = kind;
  return r;
}

void give_back_permit(record& r) noexcept {
  if (auto* permits = std::exchange(r.permit, nullptr))
    permits->release();
}

void free_record(record* r) noexcept {
  give_back_permit(*r);
  assert(r->reply.receiver == nullptr && "a request must be answered before it is freed");
  r->~record();
  give_place(r);
}

std::int64_t live_records() noexcept {
#if ZLINK_POOL_RECORDS
  return live_count.load(std::memory_order_relaxed) + cache.live;
#else
  return live_count.load(std::memory_order_relaxed);
#endif
}

void send_reply(record* r) noexcept {
  auto* receiver = std::exchange(r->reply.receiver, nullptr);
  if (receiver == nullptr) {
    free_record(r);
    return;
  }
  give_back_permit(*r);
  r->kind = record_kind::completion;
  r->target = nullptr;
  receiver->receive_reply(r);
  receiver->unref_receiver();
}

void refuse(record* r, error what) noexcept {
  r->body.reset();
  r->body.emplace<error>(std::move(what));
  send_reply(r);
}

} // namespace zlink::detail
