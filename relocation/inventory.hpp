// What there is to move on a host, and in which order (L-10 to L-12, L-222).
#pragma once

#include "relocation/unit.hpp"
#include "zlink/membership/actor_object.hpp"
#include "zlink/objects/spot_object.hpp"
#include "zlink/placement/capacity.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace zlink::detail {

class host_runtime;

/// What stands in the object table at one moment, Entry Spots left out: they are never moved (L-11).
class inventory {
public:
  static inventory of(host_runtime& host);

  bool empty() const noexcept { return spots_.empty() && actors_.empty(); }
  /// One whose factory says that it does not move (L-21); nothing: there is none.
  counted_ptr<hosted_object> find_fixed() const noexcept;
  /// Each object in one unit (L-12).
  std::vector<relocation_unit> units(host_runtime& host) const;
  /// As far as the table shows.
  const std::vector<counted_ptr<actor_object>>& members_of(const hosted_object& spot) const noexcept;

private:
  std::vector<counted_ptr<spot_object>> spots_;
  std::vector<counted_ptr<actor_object>> actors_;
  std::map<const hosted_object*, std::vector<counted_ptr<actor_object>>> members_;
};

/// What it is at the head of; nothing for an Actor that goes with its SpotWide Spot.
std::optional<unit_kind> unit_kind_of(const hosted_object& object);
/// 1 to 3 (L-222).
int batch_of(unit_kind kind) noexcept;
const char* to_string(unit_kind kind) noexcept;
const char* execution_mode_of(unit_kind kind) noexcept;

/// What a node must have for a unit, and for those that come after it because it is there.
struct unit_needs {
  struct type {
    placement::object_kind kind;
    std::string name;
  };
  const node_runtime* node = nullptr;
  std::vector<type> types; ///< each once
  placement::slot_bundle slots;
};
unit_needs needs_of(const relocation_unit& unit, const inventory& all);

} // namespace zlink::detail
