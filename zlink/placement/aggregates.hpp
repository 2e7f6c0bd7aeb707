// The asynchronous side of aggregates: their lists in the store, and all their rows entering or leaving, as coroutines of
// the infrastructure unit.
#pragma once

#include "zlink/placement/aggregate_transitions.hpp"
#include "zlink/placement/participants.hpp"
#include "zlink/placement/repository.hpp"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace zlink::placement {

/// How steps at the store ended that are repeated while others are quicker.
enum class step_end : std::uint8_t {
  done,    ///< by this call, or it was so already
  failed,  ///< the store did not tell, or others were quicker again and again: may be repeated
  refused, ///< what the store holds is nothing this can start from
};

/// Stores the pages of a list, each for good. `refused`: other content stands there.
task<step_end> store_participants(repository& records, detail::unique_id aggregate, std::vector<std::string> pages);

/// The list, verified against its root, or nothing of it: `lost` if anything is missing or different (S-87, L-151).
using participants_outcome = std::variant<std::vector<participant>, payload_fault>;
task<participants_outcome> read_participants(repository& records, detail::unique_id aggregate, participant_root root);

/// Every row of the list enters, also from a former aggregate of its owner that is over. `refused`: one of them is not what the
/// list says (S-85), or may not move now.
task<step_end> enter_all(repository& records, detail::unique_id aggregate, std::vector<participant> list);
/// Every row of the list that is still in this aggregate of `by` leaves it, once its move is over; what is in another one has
/// left.
task<step_end> leave_all(repository& records, detail::unique_id aggregate, std::vector<participant> list, owner_token by);
/// A row leaves whatever aggregate of `by` it is in.
task<step_end> leave_one(repository& records, object_kind kind, std::string id, owner_token by);

/// Calls off the move, whatever its stage before the commit, for ever (S-89). `refused`: it is another's.
task<step_end> end_aggregate_move(repository& records, detail::unique_id aggregate, owner_token by);

/// What is left to do with an aggregate whose move is over: all its rows leave, by the list in the store, then record and
/// list are deleted. Done, too, if there is no record. `refused`: it is another's, its move is not over, or its list is lost.
task<step_end> dissolve(repository& records, detail::unique_id aggregate, owner_token by);
/// Deletes record and list. By its owner, after `leave_all`; pages that stay behind harm nobody.
task<step_end> drop_all(repository& records, detail::unique_id aggregate, owner_token by);

/// Removes the row of a dead owner's object in an aggregate, which ends the move of that aggregate (S-79). `refused`: the
/// owner lives, or the id has another incarnation or none.
task<step_end> release_dead_member(repository& records, object_kind kind, std::string id,
                                   detail::object_generation exact);

} // namespace zlink::placement
