// What the Location Store shows to operators: objects by id and by page, nodes, sums (S-110 to S-114). No input for
// routing: what a query tells may be over a moment later.
#pragma once

#include "zlink/task.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zlink {

namespace detail {
class host_runtime;
}

/// Kinds of objects that have a row of their own; an Entry Spot belongs to its node.
enum class listed_kind : std::uint8_t { actor = 1, user_spot = 2, instance_spot = 3 };

enum class listed_state : std::uint8_t {
  creating,
  ready,
  unavailable, ///< it ends, or its owner is not alive
};
const char* to_string(listed_state state) noexcept;

/// One object as its row shows it.
struct listed_object {
  std::string id;
  std::string object_generation; ///< decimal, since not every tool holds 63 bits (S-111)
  std::string mesh_name;
  std::string node_rid;
  listed_state state = listed_state::creating;
  std::string stable_type;
  friend bool operator==(const listed_object&, const listed_object&) = default;
};

struct object_query {
  listed_kind kind = listed_kind::instance_spot;
  std::optional<std::string> stable_type = {};
  std::optional<std::string> mesh_name = {};
  std::size_t page_size = 100; ///< 1..1000
  std::string continuation = {}; ///< of the page before; empty: the first
};

/// A page may be shorter than asked for, even empty, and not be the last.
struct object_page {
  std::vector<listed_object> objects;
  std::string continuation; ///< at most 4,096 bytes, to be handed back as it is; empty: that was the last page
};

/// A node as it published itself.
struct listed_node {
  std::string mesh_name;
  std::string node_rid;
  std::string endpoint;
  std::string entry_spot_id;
  std::string state; ///< "serving" and so on
  std::uint64_t revision = 0;
  std::uint32_t placement_weight = 0;
  bool live = false; ///< its host holds its lease
};

struct mesh_summary {
  std::size_t ready = 0;   ///< nodes whose host lives
  std::size_t stopped = 0; ///< all others
  std::size_t total = 0;
  std::size_t errors = 0;
};

/// A handle by value; it must not outlive its host. Usable from any thread. All or nothing: a failure of the store is
/// `unavailable`, a record that cannot be used `internal_failure`, and there is never a part of a result (S-112).
class operator_queries {
public:
  /// Nothing: there is no such object. Spots and Actors have separate ids (S-110).
  task<std::optional<listed_object>> find_spot(std::string spot_id) const;
  task<std::optional<listed_object>> find_actor(std::string actor_id) const;
  /// All pages of one cycle show the ids of one point in time, none twice. `unavailable` also when a continuation got too
  /// old: begin again without it. Throws `std::invalid_argument` for a page size or continuation out of bounds (S-111).
  task<object_page> list(object_query query) const;
  /// The published nodes of a mesh; claims are none (S-113).
  task<std::vector<listed_node>> nodes(std::string mesh_name) const;
  task<mesh_summary> summary(std::string mesh_name) const;

  // -- for the layer ---------------------------------------------------------------------------------------------------
  explicit operator_queries(detail::host_runtime& host) noexcept : host_(&host) {}

private:
  detail::host_runtime* host_;
};

} // namespace zlink
