// Memory for the many small things of one operation: coroutine frames, operations, steps. They are made on one thread and
// freed on another all the time, for which a general allocator takes a lock each.
#pragma once

#include <cstddef>
#include <new>

namespace zlink::detail {

/// `size` bytes, aligned for everything that needs no more than `max_align_t`; beyond 2 KiB from the heap. Any thread.
void* take_pooled(std::size_t size);
/// With the same size.
void give_pooled(void* place, std::size_t size) noexcept;

/// The same for any alignment; what needs a larger one than that comes from the heap.
inline void* take_pooled(std::size_t size, std::align_val_t align) {
  return static_cast<std::size_t>(align) <= alignof(std::max_align_t) ? take_pooled(size) : ::operator new(size, align);
}
inline void give_pooled(void* place, std::size_t size, std::align_val_t align) noexcept {
  if (static_cast<std::size_t>(align) <= alignof(std::max_align_t))
    give_pooled(place, size);
  else
    ::operator delete(place, align);
}

/// Base of what lives in such memory. Empty.
struct pooled {
  static void* operator new(std::size_t size) { return take_pooled(size); }
  static void operator delete(void* place, std::size_t size) noexcept { give_pooled(place, size); }
  static void* operator new(std::size_t size, std::align_val_t align) { return take_pooled(size, align); }
  static void operator delete(void* place, std::size_t size, std::align_val_t align) noexcept { give_pooled(place, size, align); }
};

} // namespace zlink::detail
