// Rules for runs in which objects move: what `checker.hpp` asks of one incarnation, asked of all that an id has in turn.
#pragma once

#include "tests/e2e/checker.hpp"
#include "tests/e2e/tally.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace zlink::test {

/// The sender that a tick of a timer counts as.
inline constexpr const char* ticks = "clock";

/// Turns of an id never overlap, and once an incarnation has had one, no earlier one begins any (L-3). All of an id have
/// one generation (L-13).
findings one_owner_at_a_time(const evidence& seen);

/// Turns of these never overlap, wherever they are: they share a gate (L-3, L-196).
findings one_gate(const evidence& seen, const std::set<std::string>& ids);

/// Nothing ran twice, everything that ended "ok" ran, and no tick is missing (L-2, L-6, L-78). Requests and ticks ran in
/// order; of one-way messages one that was passed on may be behind one that took the new route (M-150).
findings whole_streams(const evidence& seen);

/// What an object says in the end is what its turns amount to, over all its incarnations (L-23). Ticks go on behind that.
findings true_tallies(const evidence& seen, const std::map<std::string, std::string>& told);

/// From the order to end until the process was gone.
struct ending {
  steady_time from;
  steady_time to;
};

/// The run without the calls that a process may cost which ends while others still take their way over it (L-231, L-249):
/// requests that were under way then and ended in `unavailable` or `shutting_down` (L-260), and one-way messages that never
/// ran, sent then or at most `flight` before.
evidence without_excused(const evidence& seen, const std::vector<ending>& endings, std::chrono::milliseconds flight);

/// How long nothing ran where an id changed its incarnation: from the last turn of one to the first of the next. Load that
/// came late is part of it.
struct pauses {
  std::size_t moves = 0; ///< of one id each
  std::chrono::microseconds half{0}; ///< the median
  std::chrono::microseconds most{0};
};
pauses pauses_of(const evidence& seen);

} // namespace zlink::test
