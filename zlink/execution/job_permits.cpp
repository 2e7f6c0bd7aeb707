#include "zlink/execution/job_permits.hpp"

#include "zlink/error.hpp"

#include <string>
#include <utility>
#include <vector>

namespace zlink::detail {

namespace {

void require_valid(pressure_thresholds thresholds) {
  std::vector<std::string> mistakes;
  const auto demand = [&](bool good, const char* key, int value, const char* range) {
    if (!good)
      mistakes.push_back("execution.job_queue." + std::string{key} + ": " + std::to_string(value) + " is not " + range);
  };
  demand(thresholds.pause_percent >= 1 && thresholds.pause_percent <= 100, "pause_percent", thresholds.pause_percent,
         "within 1..100");
  demand(thresholds.resume_percent >= 0 && thresholds.resume_percent <= 99, "resume_percent", thresholds.resume_percent,
         "within 0..99");
  demand(thresholds.resume_percent < thresholds.pause_percent, "resume_percent", thresholds.resume_percent,
         "below pause_percent");
  if (!mistakes.empty())
    throw configuration_error{std::move(mistakes)};
}

std::uint64_t hundredths(std::uint32_t permits, int percent) noexcept {
  return std::uint64_t{permits} * static_cast<std::uint64_t>(percent);
}

} // namespace

job_permits::job_permits(std::uint32_t permits, pressure_thresholds thresholds, pressure_listener on_pressure)
  : limit_(permits), on_pressure_(std::move(on_pressure)) {
  require_valid(thresholds);
  pause_at_ = static_cast<std::uint32_t>((hundredths(permits, thresholds.pause_percent) + 99) / 100);
  resume_at_ = static_cast<std::uint32_t>(hundredths(permits, thresholds.resume_percent) / 100);
}

bool job_permits::acquire(limit_waiter& source) {
  if (!limit_.enter(source))
    return false;
  settle_pressure();
  return true;
}

bool job_permits::try_acquire() {
  if (!limit_.try_enter())
    return false;
  settle_pressure();
  return true;
}

void job_permits::release() {
  limit_.leave();
  settle_pressure();
}

void job_permits::release_here() {
  limit_.leave_here();
  settle_pressure();
}

job_permits::pressure job_permits::state() const {
  std::lock_guard guard{pressure_mutex_};
  return {paused_.load(), version_};
}

void job_permits::settle_pressure() {
  if (!must_flip(paused_.load())) // nearly always, and without the lock
    return;
  // Each pass looks at the count after the flip it made: a thread that changed the count before it could see that flip
  // relied on this look.
  for (;;) {
    std::unique_lock lock{pressure_mutex_};
    const bool paused = paused_.load();
    if (!must_flip(paused))
      return;
    paused_.store(!paused);
    const auto version = ++version_;
    lock.unlock();
    if (on_pressure_)
      on_pressure_(!paused, version);
  }
}

} // namespace zlink::detail
