// The execution environment of a real host: one thread per serial unit, and a worker pool that grows and shrinks. The
// only place in the model that starts threads (D-8).
#pragma once

#include "zlink/execution/executor.hpp"

#include <memory>

namespace zlink::detail {

/// Alarms sleep on CLOCK_BOOTTIME, so a deadline that passed while the machine slept is noticed at once on waking
/// (S-39). A clock that does not advance with it is asked again whenever the sleep ends and after every job; one that
/// is moved by hand is not noticed in between. A job that throws ends the process.
std::shared_ptr<execution_environment> make_system_environment();

} // namespace zlink::detail
