// Questions of operators to the Location Store (S-110 to S-114).
#pragma once

#include "zlink/placement/records.hpp"
#include "zlink/queries.hpp"
#include "zlink/task.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace zlink::detail {

class host_runtime;

/// Every member is a coroutine of the infrastructure unit that throws the caller's error.
class object_queries {
public:
  explicit object_queries(host_runtime& host) noexcept : host_(host) {}
  object_queries(const object_queries&) = delete;
  object_queries& operator=(const object_queries&) = delete;

  task<std::optional<listed_object>> find(placement::object_kind key_space, std::string id);
  task<object_page> list(object_query query);
  task<std::vector<listed_node>> nodes(std::string mesh_name);
  task<mesh_summary> summary(std::string mesh_name);

private:
  /// Leases read for one answer, so that each is read once.
  using known_leases = std::map<unique_id, placement::observed_lease>;
  /// The same of aggregates; nothing: that one has no record.
  using known_aggregates = std::map<unique_id, std::optional<placement::aggregate_record>>;

  task<bool> owner_lives(const placement::owner_token& owner, known_leases& known);
  task<bool> complete(std::string key, placement::row_record& row, known_aggregates& known);
  task<listed_object> describe(std::string id, const placement::row_record& row, known_leases& known);
  task<std::vector<placement::descriptor_record>> descriptors(std::string mesh_name);

  host_runtime& host_;
};

} // namespace zlink::detail
