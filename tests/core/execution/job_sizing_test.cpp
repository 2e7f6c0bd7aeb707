#include "zlink/execution/job_sizing.hpp"

#include "zlink/error.hpp"
#include "zlink/execution/processors.hpp"

#include <doctest/doctest.h>

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>

using zlink::configuration_error;
using zlink::job_profile;
using zlink::detail::cpu_quota;
using zlink::detail::effective_processors;
using zlink::detail::job_permit_count;
using zlink::detail::parse_cpu_max;
using zlink::detail::processor_facts;
using zlink::detail::read_cpu_quota;

namespace {

constexpr std::int64_t most = 2'147'483'647;

class temporary_folder {
public:
  temporary_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "zlink-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw std::runtime_error{"no temporary folder"};
    path_ = name;
  }
  ~temporary_folder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((path_ / file).parent_path());
    std::ofstream{path_ / file} << text;
  }

private:
  std::filesystem::path path_;
};

} // namespace

TEST_CASE("X-102 effective processors are the smallest known positive fact") {
  CHECK(effective_processors({}) == 1);
  CHECK(effective_processors({.logical_cpus = 8}) == 8);
  CHECK(effective_processors({.logical_cpus = 8, .affinity_cpus = 4}) == 4);
  CHECK(effective_processors({.logical_cpus = 4, .affinity_cpus = 8}) == 4);
  CHECK(effective_processors({.affinity_cpus = 3}) == 3);
  CHECK(effective_processors({.logical_cpus = 8, .quota = cpu_quota{250'000, 100'000}}) == 2); // 2.5, rounded down
  CHECK(effective_processors({.logical_cpus = 8, .quota = cpu_quota{20'000, 100'000}}) == 1);  // 0.2, at least 1
  CHECK(effective_processors({.logical_cpus = 2, .quota = cpu_quota{900'000, 100'000}}) == 2);
  CHECK(effective_processors({.logical_cpus = 8, .caf_max_workers = 5}) == 5);
  CHECK(effective_processors({.logical_cpus = 8, .quota = cpu_quota{1ULL << 40, 1}}) == 8); // beyond 32 bits
}

TEST_CASE("X-102 jobs per processor by profile, or the manual value") {
  CHECK(job_permit_count({}, job_profile::compact, 4) == 128);
  CHECK(job_permit_count({}, job_profile::low_latency, 4) == 256);
  CHECK(job_permit_count({}, job_profile::balanced, 4) == 512);
  CHECK(job_permit_count({}, job_profile::throughput, 4) == 1024);
  CHECK(job_permit_count(1, job_profile::compact, 4) == 1);
  CHECK(job_permit_count(most, job_profile::compact, 4) == most);
  CHECK_THROWS_AS(job_permit_count(0, job_profile::compact, 4), configuration_error);
  CHECK_THROWS_AS(job_permit_count(-1, job_profile::compact, 4), configuration_error);
  CHECK_THROWS_AS(job_permit_count(most + 1, job_profile::compact, 4), configuration_error);
}

TEST_CASE("X-102 a computed number out of range fails, just below it does not") {
  constexpr std::uint32_t last_good = 8'388'607; // times 256 is the largest multiple below 2^31
  CHECK(job_permit_count({}, job_profile::throughput, last_good) == last_good * 256);
  CHECK_THROWS_AS(job_permit_count({}, job_profile::throughput, last_good + 1), configuration_error);
  CHECK_THROWS_AS(job_permit_count({}, job_profile::throughput, std::numeric_limits<std::uint32_t>::max()),
                  configuration_error);
  CHECK_THROWS_AS(job_permit_count({}, job_profile::balanced, 0), configuration_error);
  CHECK(job_permit_count(7, job_profile::throughput, last_good + 1) == 7); // the way out that the message names
}

TEST_CASE("X-102 a control group's limit is read in the form the kernel writes it") {
  const auto half = parse_cpu_max("50000 100000\n");
  REQUIRE(half);
  CHECK(half->quota == 50'000);
  CHECK(half->period == 100'000);
  CHECK(parse_cpu_max("50000 100000"));
  for (const char* none : {"max 100000\n", "", "\n", "0 100000", "50000 0", "50000", "-1 100000", "50000  100000",
                           "50000 100000 7", "99999999999999999999 100000"})
    CHECK_FALSE(parse_cpu_max(none));
}

TEST_CASE("X-102 the tightest limit of a group and the groups above it counts") {
  temporary_folder mount;
  CHECK_FALSE(read_cpu_quota(mount.path(), "/"));
  mount.write("a/b/c/cpu.max", "800000 100000\n");
  mount.write("a/b/cpu.max", "max 100000\n");
  mount.write("a/cpu.max", "300000 100000\n");
  const auto inner = read_cpu_quota(mount.path(), "/a/b/c");
  REQUIRE(inner);
  CHECK(inner->quota == 300'000);
  mount.write("cpu.max", "100000 100000\n");
  CHECK(read_cpu_quota(mount.path(), "/a/b/c/")->quota == 100'000);
  CHECK(read_cpu_quota(mount.path(), "/")->quota == 100'000);
  CHECK(read_cpu_quota(mount.path(), "/not/there")->quota == 100'000);
}

TEST_CASE("X-102 this process has at least one processor and no more than the machine") {
  const auto facts = zlink::detail::read_processor_facts(0);
  CHECK(facts.logical_cpus > 0);
  CHECK(facts.affinity_cpus > 0);
  CHECK(effective_processors(facts) >= 1);
  CHECK(effective_processors(facts) <= facts.logical_cpus);
}
