// Whether a provider does what everything above relies on: conditional batches, versions, expiry and a clock (S-20).
#pragma once

#include "zlink/clock.hpp"
#include "zlink/placement/repository.hpp"

#include <string>

namespace zlink::placement {

enum class probe_outcome : std::uint8_t {
  good,
  wrong,      ///< it answers, but not as a Location Store must: a configuration error, see `mistake`
  unanswered, ///< it does not answer now: to be probed again when it does
};

struct probe_result {
  probe_outcome what = probe_outcome::unanswered;
  std::string mistake; ///< what it did wrong, as text for a configuration error
};

/// Writes, reads and deletes a key of its own that nobody else uses; at most until `until`. Inside the unit.
task<probe_result> probe_store(detail::infrastructure& unit, std::shared_ptr<location_store> store,
                               random_source& random, steady_time until);

} // namespace zlink::placement
