#include "zlink/objects/object_queries.hpp"

#include "zlink/objects/entered_call.hpp"
#include "zlink/placement/lease.hpp"

#include <stdexcept>

namespace zlink {

const char* to_string(listed_state state) noexcept {
  switch (state) {
    case listed_state::creating: return "creating";
    case listed_state::ready: return "ready";
    case listed_state::unavailable: return "unavailable";
  }
  return "unknown";
}

task<std::optional<listed_object>> operator_queries::find_spot(std::string spot_id) const {
  return detail::enter_call<std::optional<listed_object>>(
    *host_, "look-up of spot", spot_id, host_->default_request_timeout(), {}, [host = host_, spot_id] {
      return host->queries.find(placement::object_kind::instance_spot, spot_id);
    });
}

task<std::optional<listed_object>> operator_queries::find_actor(std::string actor_id) const {
  return detail::enter_call<std::optional<listed_object>>(
    *host_, "look-up of actor", actor_id, host_->default_request_timeout(), {}, [host = host_, actor_id] {
      return host->queries.find(placement::object_kind::actor, actor_id);
    });
}

task<object_page> operator_queries::list(object_query query) const {
  if (query.page_size == 0 || query.page_size > store_bounds::page_items)
    throw std::invalid_argument{"a page takes 1 to 1000 objects, got " + std::to_string(query.page_size)};
  if (query.continuation.size() > store_bounds::cursor_bytes)
    throw std::invalid_argument{"a continuation has 4096 bytes at most, got "
                                + std::to_string(query.continuation.size())};
  return detail::enter_call<object_page>(*host_, "list of objects", {}, host_->default_request_timeout(), {},
                                         [host = host_, query] { return host->queries.list(query); });
}

task<std::vector<listed_node>> operator_queries::nodes(std::string mesh_name) const {
  return detail::enter_call<std::vector<listed_node>>(*host_, "list of nodes", mesh_name,
                                                      host_->default_request_timeout(), {}, [host = host_, mesh_name] {
                                                        return host->queries.nodes(mesh_name);
                                                      });
}

task<mesh_summary> operator_queries::summary(std::string mesh_name) const {
  return detail::enter_call<mesh_summary>(*host_, "summary of mesh", mesh_name, host_->default_request_timeout(), {},
                                          [host = host_, mesh_name] { return host->queries.summary(mesh_name); });
}

namespace detail {

namespace {

/// Pages of the store that one answer looks through at most: a filter that hardly anything passes ends early, with a
/// continuation.
constexpr int most_scans = 16;
constexpr std::size_t scan_items = 500;

[[noreturn]] void fail(error_kind kind, const char* what) { throw operation_failed{error{kind, what}}; }
[[noreturn]] void no_answer() { fail(error_kind::unavailable, "the Location Store does not answer"); }
[[noreturn]] void damaged() {
  fail(error_kind::internal_failure, "the Location Store holds a record that cannot be used");
}

/// What the read shows, or the caller's error.
template <class Record>
const placement::observed<Record>& required(const placement::read_outcome<Record>& outcome) {
  if (std::holds_alternative<placement::record_fault>(outcome))
    damaged();
  const auto* seen = placement::seen_in(outcome);
  if (seen == nullptr)
    no_answer();
  return *seen;
}

const char* name_of(placement::node_state state) noexcept {
  switch (state) {
    case placement::node_state::claimed: return "claimed";
    case placement::node_state::preparing: return "preparing";
    case placement::node_state::serving: return "serving";
    case placement::node_state::relocating: return "relocating";
    case placement::node_state::relocated: return "relocated";
    case placement::node_state::draining: return "draining";
    case placement::node_state::error: return "error";
    default: return "stopped";
  }
}

} // namespace

task<bool> object_queries::owner_lives(const placement::owner_token& owner, known_leases& known) {
  auto at = known.find(owner.owner);
  if (at == known.end()) {
    auto reading = host_.repository->read<placement::lease_record>(placement::lease_key(owner.owner));
    const auto outcome = co_await std::move(reading);
    at = known.emplace(owner.owner, required(outcome)).first;
  }
  switch (placement::judge_lease(at->second, owner)) {
    case placement::lease_health::live: co_return true;
    case placement::lease_health::over: co_return false;
    case placement::lease_health::corrupt: break;
  }
  damaged();
}

task<listed_object> object_queries::describe(std::string id, const placement::row_record& row, known_leases& known) {
  listed_object one{std::move(id), std::to_string(row.generation.value), row.node.mesh_name,
                    row.node.node_rid, listed_state::creating, row.stable_type};
  if (row.state == placement::allocation_state::reserved)
    co_return one;
  auto judging = owner_lives(row.owner, known);
  const bool lives = co_await std::move(judging);
  one.state = lives && !row.closing ? listed_state::ready : listed_state::unavailable;
  co_return one;
}

task<std::optional<listed_object>> object_queries::find(placement::object_kind key_space, std::string id) {
  if (!is_valid_id(id))
    co_return std::nullopt;
  auto reading = host_.repository->read_effective(placement::object_key(key_space, id));
  const auto outcome = co_await std::move(reading);
  const auto* row = placement::row_in(required(outcome));
  if (row == nullptr)
    co_return std::nullopt;
  known_leases known;
  auto describing = describe(std::move(id), *row, known);
  co_return co_await std::move(describing);
}

/// Owner and node of a listed row as its aggregate says (S-88); false: it has gone meanwhile.
task<bool> object_queries::complete(std::string key, placement::row_record& row, known_aggregates& known) {
  auto at = known.find(row.aggregate);
  if (at == known.end()) {
    auto reading = host_.repository->read<placement::aggregate_record>(placement::aggregate_key(row.aggregate));
    const auto outcome = co_await std::move(reading);
    at = known.emplace(row.aggregate, required(outcome).record).first;
  }
  if (at->second) {
    placement::take_effective(row, *at->second);
    co_return true;
  }
  auto reading = host_.repository->read_effective(std::move(key)); // it may have left since it was listed
  const auto outcome = co_await std::move(reading);
  const auto* now = placement::row_in(required(outcome));
  const bool there = now != nullptr && now->generation == row.generation;
  if (there)
    row = *now;
  co_return there;
}

task<object_page> object_queries::list(object_query query) {
  const auto kind = static_cast<placement::object_kind>(query.kind);
  const auto prefix = kind == placement::object_kind::actor ? placement::actor_prefix() : placement::spot_prefix();
  object_page page;
  page.continuation = std::move(query.continuation);
  known_leases known;
  known_aggregates aggregates;
  for (int scans = 0; scans < most_scans && page.objects.size() < query.page_size; ++scans) {
    // Never more than fit into the page: a continuation stands between two pages of the store.
    const auto limit = std::min(scan_items, query.page_size - page.objects.size());
    auto scanning = host_.repository->scan(prefix, page.continuation, limit);
    const auto answer = co_await std::move(scanning);
    if (!answer)
      no_answer();
    if (answer->expired)
      fail(error_kind::unavailable, "the continuation is too old; begin again without it");
    for (const auto& item : answer->items) {
      auto record = placement::decode<placement::object_record>(item.value.bytes);
      if (std::holds_alternative<placement::record_fault>(record))
        damaged();
      auto* row = std::get_if<placement::row_record>(&std::get<placement::object_record>(record));
      if (row == nullptr || row->kind != kind || (query.stable_type && row->stable_type != *query.stable_type))
        continue;
      if (row->aggregate) {
        auto completing = complete(item.key, *row, aggregates);
        if (!co_await std::move(completing))
          continue;
      }
      if (query.mesh_name && row->node.mesh_name != *query.mesh_name)
        continue;
      auto describing = describe(std::string{placement::id_in_key(item.key)}, *row, known);
      auto one = co_await std::move(describing);
      page.objects.push_back(std::move(one));
    }
    page.continuation = answer->next;
    if (page.continuation.empty())
      break;
  }
  co_return page;
}

task<std::vector<placement::descriptor_record>> object_queries::descriptors(std::string mesh_name) {
  constexpr int attempts = 8; // lists whose snapshot got lost (S-55)
  for (int i = 0; i < attempts; ++i) {
    std::vector<placement::descriptor_record> all;
    std::string cursor;
    bool expired = false;
    do {
      auto scanning = host_.repository->scan(placement::descriptor_prefix(mesh_name), cursor, store_bounds::page_items);
      const auto page = co_await std::move(scanning);
      if (!page)
        no_answer();
      expired = page->expired;
      for (const auto& item : page->items) {
        auto record = placement::decode<placement::descriptor_record>(item.value.bytes);
        if (std::holds_alternative<placement::record_fault>(record))
          damaged();
        auto& descriptor = std::get<placement::descriptor_record>(record);
        if (descriptor.state != placement::node_state::claimed) // which is no descriptor (S-47)
          all.push_back(std::move(descriptor));
      }
      cursor = page->next;
    } while (!expired && !cursor.empty());
    if (!expired)
      co_return all;
  }
  no_answer();
}

task<std::vector<listed_node>> object_queries::nodes(std::string mesh_name) {
  auto listing = descriptors(std::move(mesh_name));
  const auto all = co_await std::move(listing);
  std::vector<listed_node> nodes;
  known_leases known;
  for (const auto& d : all) {
    auto judging = owner_lives(d.owner, known);
    const bool lives = co_await std::move(judging);
    nodes.push_back({d.node.mesh_name, d.node.node_rid, d.endpoint, d.entry_spot_id, name_of(d.state),
                     d.revision.value, d.placement_weight, lives});
  }
  co_return nodes;
}

task<mesh_summary> object_queries::summary(std::string mesh_name) {
  auto listing = nodes(std::move(mesh_name));
  const auto all = co_await std::move(listing);
  mesh_summary sum;
  for (const auto& node : all)
    ++(node.live ? sum.ready : sum.stopped);
  sum.total = sum.ready + sum.stopped;
  co_return sum;
}

} // namespace detail
} // namespace zlink
