// How many job permits a host has.
#pragma once

#include <cstdint>
#include <optional>

namespace zlink {

/// Jobs per effective processor: 32, 64, 128, 256.
enum class job_profile : std::uint8_t { compact, low_latency, balanced, throughput };

namespace detail {

/// The permits of a host, fixed at start and never adjusted: the manual value, else jobs per processor times effective
/// processors. Throws `configuration_error` if either is outside 1..2,147,483,647.
std::uint32_t job_permit_count(std::optional<std::int64_t> max_jobs, job_profile profile,
                               std::uint32_t effective_processors);

} // namespace detail
} // namespace zlink
