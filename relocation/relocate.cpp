// What `relocate()` takes and answers, as texts and as arguments.
#include "zlink/relocate.hpp"

#include "relocation/host_relocate.hpp"

#include <stdexcept>

namespace zlink {

const char* to_string(relocate_mode mode) noexcept {
  switch (mode) {
    case relocate_mode::planned_maintenance: return "planned_maintenance";
    case relocate_mode::rolling_update: return "rolling_update";
  }
  return "unknown";
}

const char* to_string(relocate_outcome outcome) noexcept {
  switch (outcome) {
    case relocate_outcome::relocated: return "relocated";
    case relocate_outcome::blocked: return "blocked";
  }
  return "unknown";
}

const char* to_string(relocate_reason reason) noexcept {
  switch (reason) {
    case relocate_reason::none: return "none";
    case relocate_reason::target_unavailable: return "target_unavailable";
    case relocate_reason::store_unavailable: return "store_unavailable";
    case relocate_reason::relocation_disabled: return "relocation_disabled";
    case relocate_reason::state_incompatible: return "state_incompatible";
    case relocate_reason::deadline_exceeded: return "deadline_exceeded";
    case relocate_reason::relocation_failed: return "relocation_failed";
    case relocate_reason::runtime_not_ready: return "runtime_not_ready";
    case relocate_reason::manual_topology_unsupported: return "manual_topology_unsupported";
    case relocate_reason::shutdown_requested: return "shutdown_requested";
    case relocate_reason::operation_in_progress: return "operation_in_progress";
  }
  return "unknown";
}

namespace detail {

std::uint64_t effective_version(const relocate_options& options, std::uint64_t own) {
  const auto& target = options.target_version;
  if (options.deadline.count() <= 0)
    throw std::invalid_argument{"relocate: deadline must be positive"};
  switch (options.mode) {
    case relocate_mode::planned_maintenance:
      if (target)
        throw std::invalid_argument{"relocate: target_version is for rolling_update; planned_maintenance goes to hosts of the own version "
                                    + std::to_string(own)};
      return own;
    case relocate_mode::rolling_update:
      if (!target)
        throw std::invalid_argument{"relocate: rolling_update needs target_version"};
      if (*target <= own)
        throw std::invalid_argument{"relocate: target_version " + std::to_string(*target) + " is not greater than the own version "
                                    + std::to_string(own)};
      return *target;
  }
  throw std::invalid_argument{"relocate: unknown mode"};
}

} // namespace detail
} // namespace zlink
