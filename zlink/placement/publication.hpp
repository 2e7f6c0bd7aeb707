// Which content of a descriptor may follow which (S-27, S-48, S-49).
#pragma once

#include "zlink/placement/records.hpp"

namespace zlink::placement {

/// What a publication would be, judged without the store (S-27, S-48).
enum class publication : std::uint8_t {
  change,    ///< of what discovery needs: to be published at once (S-49)
  counts,    ///< of capacity counts, activations or update time only: goes with the next publication (S-49)
  replay,    ///< same revision again: ignored
  refused,   ///< immutable field, smaller revision, or the same one with other content
  exhausted, ///< revision beyond 2^63-1
};
/// `next.revision` zero: the next one. Owner and update time are not compared.
publication judge_publication(const descriptor_record& published, const descriptor_record& next);

/// Every reader of the mesh must be able to decode it, and the store to keep it (S-27).
bool is_storable(const descriptor_record& record);

} // namespace zlink::placement
