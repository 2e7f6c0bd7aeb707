// How many processors this process really has: fewer than the machine when its affinity, its control group or CAF's own
// configuration says so.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace zlink::detail {

/// CPU time allowed per period, both in the same unit, both positive.
struct cpu_quota {
  std::uint64_t quota = 0;
  std::uint64_t period = 0;
};

/// What is known; 0 or none where it is not.
struct processor_facts {
  std::uint32_t logical_cpus = 0;
  std::uint32_t affinity_cpus = 0;
  std::optional<cpu_quota> quota = std::nullopt;
  std::uint32_t caf_max_workers = 0;
};

/// The smallest of the known facts, the quota as whole processors but at least 1; 1 if none is known.
std::uint32_t effective_processors(const processor_facts& facts) noexcept;

/// A cgroup v2 `cpu.max`, for example "150000 100000"; none if it says "max" or is not of that form.
std::optional<cpu_quota> parse_cpu_max(std::string_view text) noexcept;

/// The tightest `cpu.max` of a control group and the groups above it, below `mount`. Unreadable ones do not count.
std::optional<cpu_quota> read_cpu_quota(const std::filesystem::path& mount, std::filesystem::path group);

/// Of this process and thread. `caf_max_workers` comes from CAF's configuration.
processor_facts read_processor_facts(std::uint32_t caf_max_workers);

} // namespace zlink::detail
