// Rows of this host that nothing here belongs to any more: a store's answer got lost and whoever waited for it has given up.
// They are brought to an end, or their activation goes on (S-116, S-156, C-98, C-104).
#pragma once

#include "zlink/clock.hpp"
#include "zlink/identity.hpp"
#include "zlink/placement/records.hpp"
#include "zlink/task.hpp"

#include <string>
#include <unordered_map>

namespace zlink::detail {

class host_runtime;

/// Every member is called inside the infrastructure unit.
class row_recovery {
public:
  explicit row_recovery(host_runtime& host) noexcept : host_(host) {}
  row_recovery(const row_recovery&) = delete;
  row_recovery& operator=(const row_recovery&) = delete;

  /// A pass over the store met a row of this host's token and lifecycle. One that was without an object in the pass before,
  /// too, is settled; a reservation not before its creator has stopped waiting (S-83).
  void note_own_row(const std::string& id, const placement::row_record& row);
  /// It was lost on its way to another node: its row stays until somebody closes or destroys it by its exact ref, or the host
  /// shuts down (L-163, L-164).
  void keep(std::string address, object_generation generation);
  bool keeps(const std::string& address, object_generation generation) const;
  /// Takes away the row of what `keeps` says, and frees its slots. False: somebody else has. Throws `operation_failed`.
  task<bool> release(std::string address, object_generation generation, steady_time due);

private:
  task<void> settle(std::string address, object_generation generation);
  task<void> end_row(std::string id, placement::observed_object seen, bool payload_lost);

  static constexpr std::size_t most_suspects = 4096;

  host_runtime& host_;
  struct suspect {
    object_generation generation;
    steady_time since;
    bool kept = false;
  };
  std::unordered_map<std::string, suspect> suspects_;
};

} // namespace zlink::detail
