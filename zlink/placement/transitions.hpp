// The ways a row changes, and no other (S-71). Each is a function from what was read to the conditions and changes of
// one atomic step, or to the reason why there is none. They do no I/O: `transition_batcher` brings a fragment to the
// store.
#pragma once

#include "zlink/placement/capacity.hpp"
#include "zlink/placement/records.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace zlink::placement {

/// Which numbers a transition issues (S-30, S-31).
enum class issue : std::uint8_t {
  nothing,
  authority, ///< another owner of the same incarnation, or of an aggregate
  both,      ///< a new incarnation
};

/// One transition. The first mutation is that of its row. Capacity records and counters are left to the batcher, which
/// folds the steps of many fragments into one.
struct fragment {
  std::vector<store_condition> conditions;
  std::vector<store_mutation> mutations;
  std::vector<capacity_change> capacity;
  /// Stamped into the row by whoever builds the batch, which advances the counters as well.
  issue issues = issue::nothing;
  /// The numbers of the row that is replaced; new ones are larger, or a counter is corrupt (C-120).
  new_generations above = {};
};

/// How a fragment ended at the store (S-156, S-157). Nothing but `applied` changed anything that the caller can see.
enum class fragment_outcome : std::uint8_t {
  applied,
  conflict,    ///< a condition is false, or the node whose slots it needs is gone: read again (S-73)
  no_capacity, ///< over a limit by a capacity record just read, though its conditions hold (S-82)
  corrupt,     ///< so read, slots are missing that the row has, or a shared record is unreadable (S-84, S-21)
  exhausted,   ///< a counter has no number left, for ever (S-30)
  not_applied, ///< the store failed and it is not there: may be repeated inside the caller's deadline (S-157)
};

struct fragment_result {
  fragment_outcome what = fragment_outcome::not_applied;
  std::string row_version; ///< of the first mutation if it was applied; empty for a removed row
  new_generations numbers; ///< issued for the row, if it was applied and issues any
  store_time now{};        ///< of the commit or of the read that decided; zero if there was none
};

enum class refusal : std::uint8_t {
  conflict,          ///< what was read is nothing this step can start from: read again (S-73)
  row_exists,        ///< Reserve: somebody was first; follow that row (C-41)
  entry_id_taken,    ///< Reserve: the id is that of an Entry Spot (S-77)
  other_incarnation, ///< the exact ref names another one (C-113)
  owner_live,        ///< whose owner or target still runs is not released (S-74, S-79)
  corrupt,           ///< a record that must not be (S-52, S-84): reported, nothing written
  impossible,        ///< the inputs contradict each other: an error of this layer, found before any I/O (S-71)
};

/// The same reservation with the same content is there already (S-75).
struct already_reserved {
  detail::object_generation generation;
  detail::authority_generation authority;
  std::string version;
};

using decision = std::variant<fragment, refusal>;
using reserve_decision = std::variant<fragment, refusal, already_reserved>;

/// The target of a reservation as its descriptor was read (S-72).
struct descriptor_stamp {
  node_identity node;
  std::string version;
};

// -- creation -------------------------------------------------------------------------------------------------------

/// An Actor or User Spot is reserved with its request, an Instance Spot with the receipt of its stored root (C-95).
using reserved_content = std::variant<request_content, recovery_root>;

struct reserve_request {
  object_kind kind = object_kind::instance_spot;
  std::string id;
  std::string stable_type;
  detail::unique_id reservation;
  std::chrono::milliseconds patience{}; ///< how long somebody waits for its end
  owner_token target_owner;
  descriptor_stamp target;
  capacity_limits limits; ///< `limits_of` the target's descriptor
  reserved_content content;
  std::string request_apart; ///< the request's bytes if it is stored apart
};
/// Missing to reserved. `seen` is what stands under `object_key(kind, id)`.
reserve_decision reserve(const observed_object& seen, const reserve_request& request);
/// The row of that reservation with the numbers it got.
row_record reserved_row(const reserve_request& request, const new_generations& numbers);

/// Where and for how long the result of a creation is kept (C-74).
struct kept_terminal {
  std::string key;
  creation_terminal record;
  std::chrono::milliseconds retention{};
};
/// Retention until five minutes after a deadline that is `left` away.
constexpr std::chrono::milliseconds terminal_retention(std::chrono::milliseconds left) noexcept {
  return (left.count() > 0 ? left : std::chrono::milliseconds::zero()) + std::chrono::minutes{5};
}

/// Who ends a reservation, and by which evidence.
struct reservation_end {
  std::string id;
  detail::unique_id reservation;
  owner_token target_owner;
  descriptor_stamp target;
  std::optional<kept_terminal> terminal;
};
/// Reserved to active. An Actor gets its first membership; an Instance Spot keeps its root with `cursor` 0 (C-96).
decision commit(const observed_object& seen, const reservation_end& end, std::optional<spot_membership> membership);
/// Reserved to Missing, by the same reservation.
decision abort(const observed_object& seen, const reservation_end& end);

/// Whether the lifecycle that a reserved row names is over, by these reads of its lease and descriptor (S-74).
struct lifecycle_evidence {
  observed_lease lease;
  observed_descriptor descriptor;
};
/// Reserved to Missing, by anybody, when the target's lifecycle is over (S-74, C-79).
decision release(const observed_object& seen, const std::string& id, const lifecycle_evidence& evidence);

// -- the owner's steps ----------------------------------------------------------------------------------------------

/// The object that its owner changes.
struct owned_object {
  object_kind kind = object_kind::instance_spot;
  std::string id;
  owner_token owner;
};
/// Active to active, internal data only (Preserve). The row's new version is a fence, and no reservation of a move counts
/// any more: MoveReserve and commit of its attempt are impossible for ever; its slots stay until MoveRelease (S-100).
decision preserve(const observed_object& seen, const owned_object& object);
/// Preserve with the Closing mark; a row in a move that is not over is not closed.
decision mark_closing(const observed_object& seen, const owned_object& object);
/// Preserve with a larger replay cursor.
decision advance_cursor(const observed_object& seen, const owned_object& object, std::uint64_t cursor);
/// Preserve without the root, whose first record was handled (C-97).
decision retire_root(const observed_object& seen, const owned_object& object);
/// Preserve with the mark that a stored payload is lost (S-129).
decision mark_payload_lost(const observed_object& seen, const owned_object& object);
/// Preserve with the next move progress that the owner writes alone: none, `preparing`, `captured`, none; and
/// `committed`, `completed`, none (S-96). A new `preparing` takes the place of a move that is over.
decision set_move_progress(const observed_object& seen, const owned_object& object, std::optional<move_progress> move);
/// Membership: an Actor joins or leaves on this node. `spot` is the row of its new User Spot, or the claim of its
/// Entry Spot.
decision change_membership(const observed_object& seen, const owned_object& actor, const spot_membership& membership,
                           const observed_object& spot);
/// Closing to active: a new incarnation of an Instance Spot in place of its removal (C-117).
decision reincarnate(const observed_object& seen, const owned_object& object);
/// Active or Closing to Missing (Delete), also for the owner's shutdown sweep (S-78, S-117).
decision remove(const observed_object& seen, const owned_object& object);

/// Active to Missing when the owner's lease is over: explicit close or destroy with the exact ref, by anybody (S-79).
decision release_dead_owner(const observed_object& seen, object_kind kind, const std::string& id,
                            detail::object_generation exact, const observed_lease& owner_lease);

// -- moves of one object --------------------------------------------------------------------------------------------

struct move_target {
  object_kind kind = object_kind::instance_spot;
  std::string id;
  detail::unique_id relocation;
  detail::attempt_generation attempt;
  detail::unique_id reservation;
  owner_token owner;
  descriptor_stamp node;
  capacity_limits limits;
};
/// Slots on the target, noted in the row (MoveReserve). `seen` is what the target read first. Preparing again on the
/// same target replaces the attempt and takes no second slots (S-96).
decision reserve_move(const observed_object& seen, const move_target& target);
/// The row that it leaves.
row_record prepared_row(const row_record& row, const move_target& target);
/// Gives those slots back (MoveRelease); needs no lease (S-99).
decision release_move(const observed_object& seen, object_kind kind, const std::string& id,
                      const detail::unique_id& relocation, detail::attempt_generation attempt);
/// The target becomes the owner (NewOwner). `seen` is the version of its own MoveReserve (S-100).
decision change_owner(const observed_object& seen, const move_target& target,
                      std::optional<spot_membership> membership);

} // namespace zlink::placement
