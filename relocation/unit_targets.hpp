// Where the units of one `relocate()` may go (L-216, L-217).
#pragma once

#include "relocation/inventory.hpp"
#include "zlink/placement/directory.hpp"
#include "zlink/placement/records.hpp"
#include "zlink/task.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace zlink::detail {

class host_runtime;

/// The test that a node fails, in the order of L-216.
enum class obstacle : std::uint8_t {
  nobody, ///< no other node is there
  version,
  not_serving, ///< or no object server
  type,        ///< not registered there
  policy,      ///< registered with another policy, or without the adapter
  capacity,
  wave,
  link,
  weight,
  refused, ///< by that node itself, lately
};
const char* to_string(obstacle what) noexcept;

/// A copy is a plan of its own: what is given away in it counts nowhere else.
class unit_targets {
public:
  unit_targets(host_runtime& host, std::uint64_t version);

  /// Reads how many slots are taken on the nodes of that mesh that come into question. False: the store does not tell.
  /// Inside the unit, as all here.
  task<bool> look(const node_runtime& node);

  /// Of those that take the unit one, drawn by weight, and the slots on it are given away. Nothing: `furthest` says how far
  /// the best of them came.
  std::optional<placement::node_identity> choose(const unit_needs& needs, const std::vector<placement::node_identity>& refused,
                                                 obstacle& furthest);
  /// That very node would take it: for a unit that can go nowhere else.
  bool is_reachable(const node_runtime& from, const placement::node_identity& target) const;

private:
  using place = std::pair<std::string, std::string>; ///< mesh and RID
  /// Nothing: it may be a target, as far as it need not be known what is free there.
  std::optional<obstacle> judge(const placement::live_node& one, const node_runtime& from) const;
  std::optional<obstacle> judge_types(const placement::descriptor_record& other, const unit_needs& needs) const;
  std::optional<obstacle> judge(const placement::live_node& one, const unit_needs& needs,
                                const std::vector<placement::node_identity>& refused) const;
  bool fits(const placement::descriptor_record& other, const unit_needs& needs) const;

  host_runtime* host_;
  std::string version_;
  std::map<place, placement::capacity_record> taken_;
};

} // namespace zlink::detail
