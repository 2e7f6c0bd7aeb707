// Rules over the evidence of a run. Each returns what breaks it, in words; nothing if it holds. That they can fail is
// shown in checker_test.cpp.
#pragma once

#include "tests/e2e/evidence.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace zlink::test {

using findings = std::vector<std::string>;

/// Turns of an id never overlap, and once a later incarnation has begun one, no earlier one begins any (S-2, S-44). Later
/// is who has the larger generation (C-120). A turn that its process's freeze cut in two counts up to the freeze (S-40).
findings one_incarnation_at_a_time(const evidence& seen);

/// Inside an incarnation the messages of a sender run in the order of their numbers, and no message runs twice anywhere
/// (M-5, M-148).
findings in_order_and_once(const evidence& seen);

/// Every call of a process that lived to the end has exactly one of the `allowed` outcomes, at its timeout plus `slack` at
/// the latest; calls of others have one at most (M-130). A freeze of the caller moves its deadlines.
findings named_outcomes(const evidence& seen, const std::set<std::string>& allowed, std::chrono::milliseconds slack);

/// A request that was answered ran, in the incarnation that the answer names, between its start and its end (M-139).
findings answers_are_true(const evidence& seen);

/// Calls under way at `instant` or started after it, of those that `concerned` says, end within `limit` of it or of their
/// start, in one of `outcomes`.
findings end_quickly(const evidence& seen, const std::function<bool(const call&)>& concerned, steady_time instant,
                     std::chrono::milliseconds limit, const std::set<std::string>& outcomes);

/// No turn of those that `concerned` says begins in that time.
findings no_turns(const evidence& seen, const std::function<bool(const turn&)>& concerned, steady_time from, steady_time to);

/// Resident memory of one process, sampled from its warm state on.
struct memory_samples {
  std::string process;
  std::vector<std::size_t> bytes;
};
/// No sample is larger than the first one and `growth`.
findings bounded_memory(const std::vector<memory_samples>& seen, std::size_t growth);

/// For a failed check: the first few of them, one a line.
std::string to_text(const findings& all);

} // namespace zlink::test
