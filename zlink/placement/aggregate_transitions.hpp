// How an aggregate record changes, and how rows enter and leave it (S-86 to S-91, S-100). Like the transitions of rows:
// functions of what was read, without I/O.
//
// The way of a move: pages, `create_aggregate`, each row by `enter_aggregate`, `reserve_aggregate_move` by the target,
// `change_aggregate_owner`; then each row by `leave_aggregate`, and `drop_aggregate`. A move that is called off ends by
// `set_aggregate_progress(nothing)` or `release_aggregate_move`, and then in the same way.
#pragma once

#include "zlink/placement/transitions.hpp"

#include <optional>
#include <string>

namespace zlink::placement {

/// The same request was carried out before (S-90).
struct already_prepared {
  std::string version;
};
using prepare_decision = std::variant<fragment, refusal, already_prepared>;

/// What the source prepares. `slots`, `participants` and `authority_before` are those of `encode_participants`.
struct aggregate_request {
  detail::unique_id id;
  detail::aggregate_generation generation;
  detail::unique_id relocation;
  owner_token owner;
  node_identity node;
  slot_bundle slots;
  participant_root participants;
  detail::authority_generation authority_before;
};
/// Missing to `preparing`, by the source. The pages are stored before. Changes no owner: rows enter one by one.
prepare_decision create_aggregate(const observed_aggregate& seen, const aggregate_request& request);

/// Preserve that puts a row of the source into its aggregate, while that is `preparing`. The row must be what the list says
/// of it (S-85), active, neither closing nor moving nor in an aggregate. From then on nothing else changes it.
decision enter_aggregate(const observed_object& seen, const participant& one, const observed_aggregate& aggregate);

/// The progress that an owner writes alone: `captured`, or none, before the target prepared; `completed`, or none, after its
/// commit (S-96).
decision set_aggregate_progress(const observed_aggregate& seen, const owner_token& owner,
                                std::optional<move_stage> stage);

struct aggregate_target {
  detail::unique_id id;
  detail::aggregate_generation generation;
  detail::unique_id relocation;
  detail::attempt_generation attempt;
  detail::unique_id reservation;
  owner_token owner;
  descriptor_stamp node;
  capacity_limits limits;        ///< `limits_of` the target's descriptor and the aggregate's slots
  participant_root participants; ///< as the target verified it; another one is `corrupt` (L-151)
};
/// The slots of all participants on the target, all or none (MoveReserve, L-59). Again on the same target replaces the
/// attempt and takes no second slots (S-96); the very same again is `already_prepared` (S-90).
prepare_decision reserve_aggregate_move(const observed_aggregate& seen, const aggregate_target& target);
/// Gives those slots back and ends the move (MoveRelease); needs no lease (S-99).
decision release_aggregate_move(const observed_aggregate& seen, const detail::unique_id& relocation,
                                detail::attempt_generation attempt);
/// The target becomes the owner of all participants: one record, one number, two capacity records, however many they are
/// (S-88, S-91). `seen` is the version of its own MoveReserve (S-100).
decision change_aggregate_owner(const observed_aggregate& seen, const aggregate_target& target);

/// The source's fence: new version, no reservation that counts, all else as it was. MoveReserve and commit of the attempt
/// before it are impossible for ever; its slots stay until MoveRelease (S-100).
decision preserve_aggregate(const observed_aggregate& seen, const owner_token& owner);
/// Ends the move of an aggregate whose owner's lease is over, by anybody, so that its rows can be released (S-79).
decision abandon_aggregate_move(const observed_aggregate& seen, const observed_lease& owner_lease);

/// Gives a row back to itself, with the owner, node and authority that it has by its aggregate, and the slots it has. By
/// that owner, once the move is over. An aggregate without a record decides nothing any more.
decision leave_aggregate(const observed_object& seen, object_kind kind, const std::string& id,
                         const observed_aggregate& aggregate, const owner_token& by);
/// Deletes the record, by its owner, once the move is over. After a commit every row must have left before: without the
/// record those that name it have the owner that they had.
decision drop_aggregate(const observed_aggregate& seen, const owner_token& owner);

/// `release_dead_owner` of a row in an aggregate: both are as read, and the lease of the owner by the aggregate is over.
decision release_from_aggregate(const observed_object& seen, object_kind kind, const std::string& id,
                                detail::object_generation exact, const observed_aggregate& aggregate,
                                const observed_lease& owner_lease);

} // namespace zlink::placement
