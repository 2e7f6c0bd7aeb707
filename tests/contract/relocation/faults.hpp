// What goes wrong between a source and a target, and how much of a long table of that is done where a sanitizer makes everything
// slow; `tests/run --long` does all of it.
#pragma once

#include "tests/contract/relocation/move_scene.hpp"

#include <cstdlib>
#include <optional>

namespace relocation_test {

enum class fault { kill_source, kill_target, lose_link, cut_source_store, cut_target_store, partition };
inline constexpr fault all_faults[] = {fault::kill_source,      fault::kill_target,      fault::lose_link,
                                       fault::cut_source_store, fault::cut_target_store, fault::partition};
inline const char* to_string(fault what) {
  static constexpr const char* names[] = {"kill the source",         "kill the target",         "lose the link",
                                          "cut the source's store", "cut the target's store", "part source and target"};
  return names[static_cast<std::size_t>(what)];
}

/// The host that it kills, if it kills one.
inline std::optional<std::size_t> strike(mesh& net, fault what, std::size_t from, std::size_t to) {
  switch (what) {
    case fault::kill_source: net.kill(from); return from;
    case fault::kill_target: net.kill(to); return to;
    case fault::lose_link: net.lose_links(from, to); break;
    case fault::cut_source_store: net.cut_store(from); break;
    case fault::cut_target_store: net.cut_store(to); break;
    case fault::partition: net.partition({from}, {to}); break;
  }
  return std::nullopt;
}

inline bool is_slow_build() {
#if defined(__SANITIZE_ADDRESS__)
  constexpr bool sanitized = true;
#elif defined(__has_feature)
  constexpr bool sanitized = __has_feature(address_sanitizer);
#else
  constexpr bool sanitized = false;
#endif
  return sanitized && std::getenv("ZLINK_TEST_LONG") == nullptr;
}
/// One in three remains: every step, and every fault, but not each with all others.
inline bool is_left_out(std::size_t step, fault what, std::size_t course = 0) {
  return is_slow_build() && (step + static_cast<std::size_t>(what) + course) % 3 != 0;
}

} // namespace relocation_test
