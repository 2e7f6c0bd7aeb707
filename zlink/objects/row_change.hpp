// One change of a row of this host, tried again until it is known how it ended.
#pragma once

#include "zlink/placement/transitions.hpp"
#include "zlink/task.hpp"
#include "zlink/unique_function.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace zlink::detail {

class host_runtime;

enum class row_end : std::uint8_t {
  applied,
  settled, ///< nothing was left to be done
  refused, ///< the row is nothing this change can start from
  failed,  ///< the store can never carry it out
  unknown, ///< given up; it may even be carried out later
};

struct row_outcome {
  row_end how = row_end::unknown;
  placement::observed_object seen; ///< what the change was made from, or what settled or refused it
  placement::fragment_result step; ///< of an applied one
};

/// What is to be done with a row as it was seen: a step, or `settled`, or `refused`.
using row_judgement = std::variant<placement::fragment, row_end>;
inline row_judgement judged(placement::decision decided) {
  if (auto* step = std::get_if<placement::fragment>(&decided))
    return std::move(*step);
  return row_end::refused;
}

struct row_change {
  std::string id;
  std::optional<placement::observed_object> seen; ///< nothing: it is read first
  unique_function<row_judgement(const placement::observed_object&)> judge;
  /// Asked after each attempt that came to nothing, so there is one at least. `answered`: the store did, with a Conflict.
  unique_function<bool(bool answered)> give_up;
};

/// Inside the infrastructure unit. While the host may not change rows (S-40) it waits, as for a store that does not answer.
task<row_outcome> change_row(host_runtime& host, row_change change);

} // namespace zlink::detail
