// Moving everything off a host while it runs: what is asked for and what came of it (chapter 06, section 18).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace zlink {

/// L-210. Values are fixed.
enum class relocate_mode : std::uint8_t {
  planned_maintenance = 0, ///< to nodes of exactly this host's application version
  rolling_update = 1,      ///< to nodes of exactly `target_version`, which is greater
};

/// L-211. Values are fixed.
enum class relocate_outcome : std::uint8_t {
  relocated = 0, ///< nothing of this host is dispatched here any more
  blocked = 1,   ///< an answer, not an error: the host serves on with what is still here
};

/// L-212. Values are fixed.
enum class relocate_reason : std::uint8_t {
  none = 0,
  target_unavailable = 1,
  store_unavailable = 2,
  relocation_disabled = 3,
  state_incompatible = 4,
  deadline_exceeded = 5,
  relocation_failed = 6,
  runtime_not_ready = 7,
  manual_topology_unsupported = 8,
  shutdown_requested = 9,
  operation_in_progress = 10,
};

const char* to_string(relocate_mode mode) noexcept;
const char* to_string(relocate_outcome outcome) noexcept;
const char* to_string(relocate_reason reason) noexcept;

struct relocate_options {
  relocate_mode mode = relocate_mode::planned_maintenance;
  /// Required for `rolling_update`, not allowed otherwise.
  std::optional<std::uint64_t> target_version = std::nullopt;
  /// Until then units may start and waits go on; > 0.
  std::chrono::milliseconds deadline{30'000};
};

/// Always all four (L-211).
struct relocate_result {
  relocate_mode mode = relocate_mode::planned_maintenance;
  std::uint64_t target_version = 0; ///< the effective one
  relocate_outcome outcome = relocate_outcome::relocated;
  relocate_reason reason = relocate_reason::none;
};

} // namespace zlink
