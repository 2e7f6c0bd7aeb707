// How much of a long table of faults is done where a sanitizer makes everything slow; `tests/run --long` does all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace relocation_test {

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
inline bool is_left_out(std::size_t step, std::size_t fault, std::size_t course = 0) { return is_slow_build() && (step + fault + course) % 3 != 0; }

} // namespace relocation_test
