// What the store says of a move, as its source writes it: progress in the one row of the unit, or an aggregate record over all
// of its rows (S-88, S-96, S-100).
#pragma once

#include "relocation/unit.hpp"
#include "zlink/placement/records.hpp"
#include "zlink/placement/transitions.hpp"
#include "zlink/task.hpp"
#include "zlink/unique_function.hpp"

#include <memory>
#include <string>
#include <vector>

namespace zlink::detail {

class host_runtime;

/// Inside the infrastructure unit. Shared with what goes on in the background.
class source_record final : public std::enable_shared_from_this<source_record> {
public:
  source_record(host_runtime& host, unique_id move, unit_kind kind, counted_ptr<hosted_object> lead);

  enum class prepare_end : std::uint8_t {
    done,
    pending, ///< its first message has not been served yet: later (L-199)
    refused, ///< the row is nothing that can move
    unknown, ///< the store did not carry it out in time, and still may: `forget` it
  };
  /// The store answers at the moment.
  task<bool> can_be_read();
  /// The row says that this move is under way; work goes on.
  task<prepare_end> prepare(steady_time until);
  /// The rows of all of them name an aggregate record that says so. `parts`: the Spot, then its members, as they are now.
  task<prepare_end> prepare_all(std::vector<counted_ptr<hosted_object>> parts, steady_time until);
  /// Zero: the row decides by itself.
  unique_id aggregate() const noexcept { return aggregate_; }

  enum class fence_end : std::uint8_t { won, target_owns, unclear };
  /// A write on the version that the target's commit depends on: exactly one of the two comes first (S-100). The move is taken
  /// out of the record with it, slots that the target had secured included. `given_up`: nobody waits for the answer any more.
  task<fence_end> fence(unique_function<bool()> given_up);
  /// The row shows another owner now, or is gone.
  task<bool> is_over();
  /// The move is taken out of the store in the background, whatever that takes while the lease is held, and what `then` does
  /// comes behind it.
  void forget(unique_function<void()> then);

  placement::owned_object owned() const;
  bool holds_lease() const;

private:
  task<fence_end> fence_row(unique_function<bool()> given_up);
  task<fence_end> fence_aggregate(unique_function<bool()> given_up);
  task<void> clear();
  bool owned_by_another(const placement::row_record* row) const;

  host_runtime& host_;
  const unique_id move_;
  const unit_kind kind_;
  const counted_ptr<hosted_object> lead_;
  const placement::owner_token owner_;
  unique_id aggregate_;
  std::string doubtful_; ///< the version of the row that a write of unknown end started from
};

} // namespace zlink::detail
