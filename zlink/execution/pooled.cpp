#include "zlink/execution/pooled.hpp"

#include "zlink/execution/place_pool.hpp"

#include <array>
#include <utility>

namespace zlink::detail {

namespace {

constexpr std::size_t step = 32;
constexpr std::size_t most = 2048;
constexpr std::size_t kept = std::size_t{4} * 1024 * 1024; // of each size

struct size_class {
  void* (*take)();
  void (*give)(void*) noexcept;
};

template <std::size_t... I>
constexpr std::array<size_class, sizeof...(I)> classes_of(std::index_sequence<I...>) {
  return {size_class{&place_pool<(I + 1) * step, alignof(std::max_align_t), kept>::take,
                     &place_pool<(I + 1) * step, alignof(std::max_align_t), kept>::give}...};
}

constexpr auto classes = classes_of(std::make_index_sequence<most / step>{});

constexpr std::size_t class_of(std::size_t size) noexcept { return size == 0 ? 0 : (size - 1) / step; }

} // namespace

void* take_pooled(std::size_t size) { return size > most ? ::operator new(size) : classes[class_of(size)].take(); }

void give_pooled(void* place, std::size_t size) noexcept {
  if (size > most)
    ::operator delete(place);
  else
    classes[class_of(size)].give(place);
}

} // namespace zlink::detail
