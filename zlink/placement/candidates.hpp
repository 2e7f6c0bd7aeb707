// Which node gets a new object: filter, then a weighted draw (C-38 to C-41).
#pragma once

#include "zlink/clock.hpp"
#include "zlink/error.hpp"
#include "zlink/placement/capacity.hpp"
#include "zlink/placement/lease.hpp"
#include "zlink/placement/records.hpp"

#include <string>
#include <variant>
#include <vector>

namespace zlink::placement {

/// A descriptor with the verdict on its owner's lease, read for this selection or still valid by S-53.
struct candidate {
  const descriptor_record* descriptor = nullptr;
  lease_health lease = lease_health::over;
  /// The read that showed the lease live is too old to rely on (S-53): it exists, and is not chosen.
  bool outdated = false;
};

struct placement_wish {
  std::string mesh_name;
  object_kind kind = object_kind::instance_spot;
  std::string stable_type;
  slot_bundle slots;
  std::vector<node_identity> excluded; ///< node lifecycles that already refused this operation (C-41)
};

/// Why nobody was chosen, for the caller's error and the diagnostics (C-40).
enum class placement_cause : std::uint8_t {
  corrupt_lease,  ///< `internal_failure` (S-52)
  not_registered, ///< `not_found`
  outdated,       ///< the rest: `unavailable`
  not_serving,
  no_capacity,
  no_weight,
  refused, ///< all that are left refused already
};

struct no_candidate {
  placement_cause cause = placement_cause::not_registered;
  error_kind kind() const noexcept;
};
/// "no node of the mesh registers the type" and so on; names no node.
const char* to_string(placement_cause cause) noexcept;

using placement_choice = std::variant<const descriptor_record*, no_candidate>;

/// One of `all`, with probability proportional to its placement weight among those that pass. Every lease is judged
/// before anything else: one corrupt lease spoils the selection (S-52). When nobody passes, the cause is that of the
/// node that came furthest in the order of C-38.
placement_choice choose_node(const std::vector<candidate>& all, const placement_wish& wish, random_source& random);

/// Why an Instance type could not be inferred: `not_found` for none, `invalid_operation` for several (C-91), and
/// `internal_failure` for a corrupt lease (S-52).
using inferred_type = std::variant<std::string, error_kind>;

/// The only Instance type that live serving nodes of the mesh provide (C-91).
inferred_type infer_instance_type(const std::vector<candidate>& all, const std::string& mesh_name);

} // namespace zlink::placement
