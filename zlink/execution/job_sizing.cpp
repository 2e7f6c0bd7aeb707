#include "zlink/execution/job_sizing.hpp"

#include "zlink/defaults.hpp"
#include "zlink/error.hpp"

#include <limits>
#include <string>

namespace zlink::detail {

namespace {

constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();

std::int64_t jobs_per_processor(job_profile profile) {
  switch (profile) {
    case job_profile::compact: return defaults::jobs_per_processor_compact;
    case job_profile::low_latency: return defaults::jobs_per_processor_low_latency;
    case job_profile::balanced: return defaults::jobs_per_processor_balanced;
    case job_profile::throughput: return defaults::jobs_per_processor_throughput;
  }
  throw configuration_error{"execution.job_queue.profile: unknown value " + std::to_string(static_cast<int>(profile))};
}

} // namespace

std::uint32_t job_permit_count(std::optional<std::int64_t> max_jobs, job_profile profile,
                               std::uint32_t effective_processors) {
  if (max_jobs) {
    if (*max_jobs < 1 || *max_jobs > most)
      throw configuration_error{"execution.job_queue.max_jobs: " + std::to_string(*max_jobs) + " is not within 1.."
                                + std::to_string(most)};
    return static_cast<std::uint32_t>(*max_jobs);
  }
  const auto computed = jobs_per_processor(profile) * std::int64_t{effective_processors};
  if (computed < 1 || computed > most)
    throw configuration_error{"execution.job_queue: " + std::to_string(effective_processors) + " processors give "
                              + std::to_string(computed) + " jobs, which is not within 1.." + std::to_string(most)
                              + "; set execution.job_queue.max_jobs"};
  return static_cast<std::uint32_t>(computed);
}

} // namespace zlink::detail
