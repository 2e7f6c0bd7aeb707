// What a row of the store says to those who look objects up by id.
#pragma once

#include "zlink/identity.hpp"
#include "zlink/placement/records.hpp"
#include "zlink/task.hpp"

#include <optional>
#include <string>
#include <utility>

namespace zlink::detail {

class host_runtime;

inline spot_ref ref_of(std::string spot_id, const placement::row_record& row) {
  return {std::move(spot_id), row.generation.value, row.node.mesh_name, row.node.node_rid};
}

/// The row of the Ready object under that address, or nothing. Throws the caller's error if nobody can tell. Inside the unit.
task<std::optional<placement::row_record>> ready_row(host_runtime& host, std::string address);

} // namespace zlink::detail
