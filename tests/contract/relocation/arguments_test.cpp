// What relocate() takes and answers.
#include "tests/contract/relocation/leaving_host.hpp"

namespace host_relocate_test {
namespace {

TEST_CASE("L-210 options that contradict themselves are argument errors, and change nothing") {
  scene s{{.adjust = [](std::size_t, zlink::host_options& options) { options.application_version = 7; }}};
  relocate_options planned_with_version;
  planned_with_version.target_version = 8;
  relocate_options rolling_without;
  rolling_without.mode = relocate_mode::rolling_update;
  relocate_options unknown;
  unknown.mode = static_cast<relocate_mode>(9);
  for (const auto& wrong : {planned_with_version, rolling_without, update_to(7), update_to(6), within(0ms), within(-1ms), unknown}) {
    CHECK_THROWS_AS(static_cast<void>(s.leaving().relocate(wrong)), std::invalid_argument);
    CHECK(s.state() == host_state::serving);
  }
  CHECK(s.traces.empty());
  CHECK_FALSE(s.leaving().status().last_relocation);
}

TEST_CASE("L-210 L-211 a result has all four, whatever came of it") {
  scene s{{.adjust = [](std::size_t, zlink::host_options& options) { options.application_version = 7; }}};
  s.fill();
  const auto blocked = s.relocate(update_to(9, 1s));
  CHECK(blocked.mode == relocate_mode::rolling_update);
  CHECK(blocked.target_version == 9);
  CHECK(blocked.outcome == relocate_outcome::blocked);
  CHECK(blocked.reason == relocate_reason::target_unavailable);
  const auto relocated = s.relocate();
  CHECK(relocated.mode == relocate_mode::planned_maintenance);
  CHECK(relocated.target_version == 7);
  CHECK(relocated.outcome == relocate_outcome::relocated);
  CHECK(relocated.reason == relocate_reason::none);
  REQUIRE(s.leaving().status().last_relocation);
  CHECK(s.leaving().status().last_relocation->outcome == relocate_outcome::relocated);
}

TEST_CASE("L-211 L-212 numbers and names are fixed") {
  CHECK(relocate_mode{0} == relocate_mode::planned_maintenance);
  CHECK(relocate_mode{1} == relocate_mode::rolling_update);
  CHECK(relocate_outcome{0} == relocate_outcome::relocated);
  CHECK(relocate_outcome{1} == relocate_outcome::blocked);
  const std::vector<std::string> reasons{"none",          "target_unavailable", "store_unavailable",
                                         "relocation_disabled", "state_incompatible", "deadline_exceeded",
                                         "relocation_failed",   "runtime_not_ready",  "manual_topology_unsupported",
                                         "shutdown_requested",  "operation_in_progress"};
  for (std::size_t i = 0; i < reasons.size(); ++i)
    CHECK(to_string(relocate_reason{static_cast<std::uint8_t>(i)}) == reasons[i]);
  CHECK(to_string(relocate_reason{11}) == std::string{"unknown"});
  CHECK(to_string(relocate_mode::rolling_update) == std::string{"rolling_update"});
  CHECK(to_string(relocate_outcome::blocked) == std::string{"blocked"});
}

} // namespace
} // namespace host_relocate_test
