// Memory that is made here and freed there.
#include "zlink/execution/counted.hpp"
#include "zlink/execution/place_pool.hpp"
#include "zlink/execution/pooled.hpp"
#include "zlink/unique_function.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace pooled_test {

using namespace zlink::detail;

bool is_aligned(const void* place, std::size_t to) { return reinterpret_cast<std::uintptr_t>(place) % to == 0; }

TEST_CASE("pooled memory of any size is aligned, its own, and goes back with the size it had") {
  std::mt19937_64 draw{11};
  std::vector<std::pair<unsigned char*, std::size_t>> held;
  for (int i = 0; i < 20'000; ++i) {
    if (held.size() < 50 || draw() % 2 == 0) {
      const std::size_t size = draw() % 8 == 0 ? draw() % 10'000 : draw() % 2'100;
      auto* place = static_cast<unsigned char*>(take_pooled(size));
      REQUIRE(is_aligned(place, alignof(std::max_align_t)));
      std::memset(place, static_cast<int>(size % 251), size);
      held.emplace_back(place, size);
    } else {
      auto& one = held[draw() % held.size()];
      for (std::size_t at = 0; at < one.second; at += 97)
        REQUIRE(one.first[at] == one.second % 251);
      give_pooled(one.first, one.second);
      one = held.back();
      held.pop_back();
    }
  }
  for (const auto& [place, size] : held)
    give_pooled(place, size);
}

struct alignas(64) wide {
  std::array<unsigned char, 64> bytes{};
};
struct holder final : counted {
  wide value;
};

TEST_CASE("what needs a large alignment has it in counted things and in captures") {
  std::vector<counted_ptr<holder>> held;
  std::vector<zlink::unique_function<const wide*()>> functions;
  for (int i = 0; i < 100; ++i) {
    held.push_back(new_counted<holder>());
    CHECK(is_aligned(&held.back()->value, 64));
    functions.emplace_back([value = wide{}] { return &value; });
    CHECK(is_aligned(functions.back()(), 64));
  }
}

#if ZLINK_POOL_PLACES
TEST_CASE("a thread that only gives back leaves nothing behind when it ends") {
  using pool = place_pool<480, 16, 1>;
  const auto before = pool::in_use();
  for (int round = 0; round < 20; ++round) {
    std::vector<void*> places;
    for (int i = 0; i < 150; ++i)
      places.push_back(pool::take());
    std::thread{[&places] {
      for (auto* place : places)
        pool::give(place);
    }}.join();
    CHECK(pool::in_use() == before); // exact only if the thread has told what it took back
  }
}
#endif

} // namespace pooled_test
