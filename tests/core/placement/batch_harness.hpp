// A world with one node and what became of the fragments that a test gave to its batcher.
#pragma once

#include "tests/core/placement/world.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zlink::placement::test {

inline constexpr auto spot = object_kind::user_spot;

inline std::string name(int i) { return "x" + std::to_string(i); }

/// What became of the fragments, in the order of `add`.
struct outcomes {
  std::vector<std::optional<fragment_result>> all;
  std::size_t count(fragment_outcome what) const {
    return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [&](const auto& one) { return one && one->what == what; }));
  }
};

struct harness {
  world w;
  test_node node = w.add_node("a");
  outcomes ends;

  fragment reserve_step(int i) { return reserve_step(w.wish(spot, name(i), node)); }
  fragment reserve_step(const reserve_request& request) {
    return std::get<fragment>(reserve(w.see(request.kind, request.id), request));
  }
  void add(fragment what) {
    const auto at = ends.all.size();
    ends.all.emplace_back();
    w.batcher.add(std::move(what), [this, at](fragment_result result) {
      CHECK(!ends.all[at]); // exactly once
      ends.all[at] = std::move(result);
    });
  }
  void run() {
    w.batcher.flush();
    w.posting->run();
  }
  std::size_t writes() { return w.faults->count(store_operation::write); }
  std::size_t reads() { return w.faults->count(store_operation::read); }
  bool exists(int i) { return row_in(w.see(spot, name(i))) != nullptr; }
};

} // namespace zlink::placement::test
