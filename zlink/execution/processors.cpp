#include "zlink/execution/processors.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <string>
#include <system_error>

namespace zlink::detail {

namespace {

std::optional<std::uint64_t> take_positive(std::string_view& text) noexcept {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value == 0)
    return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::uint32_t whole_processors(const cpu_quota& quota) noexcept {
  const auto whole = std::max<std::uint64_t>(quota.quota / quota.period, 1);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(whole, std::numeric_limits<std::uint32_t>::max()));
}

/// The group of this process in the version 2 hierarchy; none without one.
std::optional<std::filesystem::path> own_group() {
  constexpr std::string_view prefix = "0::";
  std::ifstream file{"/proc/self/cgroup"};
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(prefix))
      return line.substr(prefix.size());
  return std::nullopt;
}

} // namespace

std::uint32_t effective_processors(const processor_facts& facts) noexcept {
  constexpr auto unknown = std::numeric_limits<std::uint32_t>::max();
  auto least = unknown;
  for (const auto known : {facts.logical_cpus, facts.affinity_cpus, facts.caf_max_workers})
    if (known > 0)
      least = std::min(least, known);
  if (facts.quota)
    least = std::min(least, whole_processors(*facts.quota));
  return least == unknown ? 1 : least;
}

std::optional<cpu_quota> parse_cpu_max(std::string_view text) noexcept {
  const auto quota = take_positive(text);
  if (!quota || !text.starts_with(' '))
    return std::nullopt;
  text.remove_prefix(1);
  const auto period = take_positive(text);
  if (!period || !(text.empty() || text == "\n"))
    return std::nullopt;
  return cpu_quota{*quota, *period};
}

std::optional<cpu_quota> read_cpu_quota(const std::filesystem::path& mount, std::filesystem::path group) {
  std::optional<cpu_quota> tightest;
  for (group = group.relative_path().lexically_normal();; group = group.parent_path()) {
    std::ifstream file{mount / group / "cpu.max"};
    std::string line;
    std::getline(file, line);
    const auto found = parse_cpu_max(line);
    if (found && (!tightest || whole_processors(*found) < whole_processors(*tightest)))
      tightest = found;
    if (group.empty())
      return tightest;
  }
}

processor_facts read_processor_facts(std::uint32_t caf_max_workers) {
  processor_facts facts;
  facts.logical_cpus = static_cast<std::uint32_t>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 0L));
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    facts.affinity_cpus = static_cast<std::uint32_t>(CPU_COUNT(&allowed));
  if (const auto group = own_group())
    facts.quota = read_cpu_quota("/sys/fs/cgroup", *group);
  facts.caf_max_workers = caf_max_workers;
  return facts;
}

} // namespace zlink::detail
