// What the store says of a move, as its target reads and writes it: what moves, room for it here, and the change of owner
// (S-88, S-96, L-58, L-120, L-145 to L-151).
#pragma once

#include "relocation/lane_frames.hpp"
#include "relocation/unit.hpp"
#include "zlink/placement/aggregates.hpp"
#include "zlink/placement/transitions.hpp"
#include "zlink/relocate.hpp"
#include "zlink/task.hpp"
#include "zlink/unique_function.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zlink::detail {

class host_runtime;
class node_runtime;

/// Why a move does not go on.
struct move_refusal {
  relocate_reason reason = relocate_reason::relocation_failed;
  error why;
};

/// Inside the infrastructure unit. Shared with what goes on in the background.
class target_record final : public std::enable_shared_from_this<target_record> {
public:
  target_record(host_runtime& host, node_runtime& node, const std::string& source, unique_id move, const restore_request& request);

  /// What the store says of one object of the unit; nothing that the payload says counts (L-120, S-85).
  const placement::participant& part(std::uint32_t index) const { return parts_.at(index); }

  task<std::optional<move_refusal>> read();
  /// Room for all of it, before anybody relies on this node (L-58, L-104). `given_up`: nobody waits any more.
  task<std::optional<move_refusal>> reserve(unique_function<bool()> given_up);
  /// The same write until it is known to be done, or can never be (L-149, L-150). The authority of the new owner, or nothing.
  task<std::optional<authority_generation>> commit(std::optional<placement::spot_membership> membership, unique_function<bool()> given_up);
  /// Room that nobody needs any more is given back; nothing waits for it (S-99).
  void release();
  /// The rows of an aggregate that has been committed stand for themselves again, in the background.
  void settle();

private:
  task<std::optional<move_refusal>> read_row();
  task<std::optional<move_refusal>> read_aggregate();
  task<std::optional<move_refusal>> reserve_row(unique_function<bool()> given_up);
  task<std::optional<move_refusal>> reserve_aggregate(unique_function<bool()> given_up);
  task<std::optional<authority_generation>> commit_row(std::optional<placement::spot_membership> membership, unique_function<bool()> given_up);
  task<std::optional<authority_generation>> commit_aggregate(unique_function<bool()> given_up);
  task<void> release_all();
  task<void> dissolve();
  placement::aggregate_target aggregate_target() const;
  std::string address(std::uint32_t index) const;
  move_refusal unlike(std::uint32_t index, const char* what) const;
  bool matches(std::uint32_t index, const placement::participant& row) const;

  host_runtime& host_;
  node_runtime& node_;
  const std::string& source_;
  const unique_id move_;
  const restore_request request_;
  const unique_id aggregate_;
  std::vector<placement::participant> parts_;
  placement::observed_object row_;             ///< of a unit that has no aggregate
  placement::observed_aggregate aggregate_seen_;
  placement::move_target target_;              ///< both forms take ids, owner and limits from it
  bool reserved_ = false;
};

} // namespace zlink::detail
