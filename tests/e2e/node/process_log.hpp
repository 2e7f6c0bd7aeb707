// The evidence that this process leaves (tests/e2e/evidence.hpp).
#pragma once

#include "tests/e2e/evidence.hpp"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

namespace zlink::test {

class process_log {
public:
  process_log(std::string name, const std::filesystem::path& directory)
    : turns(directory / (name + ".turns")), calls(directory / (name + ".calls")), name_(std::move(name)) {}

  const std::string& name() const noexcept { return name_; }
  /// Numbers the instances that are built here.
  std::uint64_t next_tag() noexcept { return tags_.fetch_add(1) + 1; }
  /// As it stands in a line.
  std::string now() const { return std::to_string(clock_.now().time_since_epoch().count()); }

  const log_file turns;
  const log_file calls;

private:
  std::string name_;
  std::atomic<std::uint64_t> tags_{0};
  system_clock clock_;
};

} // namespace zlink::test
