// Looking up and closing User Spots by their refs (C-66, C-112, C-113, S-79).
#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/mesh_links.hpp"
#include "zlink/objects/entered_call.hpp"
#include "zlink/objects/creations.hpp"
#include "zlink/objects/ready_row.hpp"
#include "zlink/placement/aggregates.hpp"
#include "zlink/placement/pause.hpp"

namespace zlink::detail {

task<std::optional<spot_ref>> creations::find(std::string spot_id, std::stop_token cancel) {
  return enter_call<std::optional<spot_ref>>(host_, "find of spot", spot_id, host_.default_request_timeout(),
                                             std::move(cancel), [this, spot_id] { return look_up(spot_id); });
}

task<std::optional<spot_ref>> creations::look_up(std::string id) {
  auto looking = ready_row(host_, id);
  const auto row = co_await std::move(looking);
  if (!row)
    co_return std::nullopt;
  co_return ref_of(std::move(id), *row);
}

task<std::optional<placement::row_record>> ready_row(host_runtime& host, std::string address) {
  auto resolving = host.messages.routes.resolve(address);
  const auto found = co_await std::move(resolving);
  if (found.what == resolved::unknown)
    throw operation_failed{error{found.kind, found.why}};
  if (found.what != resolved::ready)
    co_return std::nullopt;
  co_return *placement::row_in(found.seen);
}

task<bool> creations::close(spot_ref spot, std::stop_token cancel) {
  const auto timeout = host_.default_request_timeout();
  const auto id = spot.spot_id;
  return enter_call<bool>(host_, "close of spot", id, timeout, std::move(cancel),
                          [this, spot = std::move(spot), due = host_.time->now() + timeout] {
                            return close_exactly(spot, due);
                          });
}

task<bool> creations::close_exactly(spot_ref spot, steady_time due) {
  auto reading = host_.repository->read_object(spot.spot_id);
  auto read = co_await std::move(reading);
  const auto* seen = placement::seen_in(read);
  if (std::holds_alternative<placement::record_fault>(read))
    throw operation_failed{error{error_kind::internal_failure, "the record of \"" + spot.spot_id + "\" in the Location Store cannot be used"}};
  if (seen == nullptr)
    throw operation_failed{error{error_kind::unavailable, "the Location Store does not tell who owns \"" + spot.spot_id + '"'}};
  if (placement::claim_in(*seen) != nullptr)
    throw operation_failed{error{error_kind::invalid_operation, "an Entry Spot is not closed; it ends with its node"}};
  const auto* row = placement::row_in(*seen);
  host_.messages.routes.cache.row_seen(spot.spot_id, row);
  if (row == nullptr || row->state == placement::allocation_state::reserved)
    co_return false;
  if (row->generation.value != spot.object_generation)
    throw operation_failed{error{error_kind::invalid_operation, "the ref of \"" + spot.spot_id + "\" names another incarnation"}};
  auto judging = host_.messages.routes.judge_row(*seen);
  const auto found = co_await std::move(judging);
  if (found.what == resolved::unavailable) {
    auto releasing = release_dead(spot.spot_id, {spot.object_generation}, *seen);
    co_return co_await std::move(releasing);
  }
  const auto* own_node = host_.find_node(row->node.mesh_name);
  const bool here = own_node != nullptr && own_node->identity == row->node;
  if (here && host_.recovery.keeps(spot.spot_id, row->generation)) { // lost on its way to another node (L-164)
    auto releasing = host_.recovery.release(spot.spot_id, row->generation, due);
    co_return co_await std::move(releasing);
  }
  if (row->kind != placement::object_kind::user_spot) {
    if (!here && (own_node == nullptr || !own_node->links->ready_link(row->node.node_rid))) // perhaps dead: the lease tells (S-79)
      throw operation_failed{error{error_kind::unavailable, "the owner of \"" + spot.spot_id + "\" cannot be reached, and its lease is not over"}};
    if (here) // else its owner says so, unless it has lost it (L-164)
      throw operation_failed{error{error_kind::invalid_operation, "an Instance Spot closes itself, from its own context"}};
  }
  if (auto object = host_.objects.find(spot.spot_id); object && object->generation().value == spot.object_generation) {
    auto closing = host_.closings.close(object, spot_close_reason::explicit_close, due, nullptr);
    co_return co_await std::move(closing);
  }
  if (here) {
    // Here, and gone since the row was read: what became of it the row tells in a moment (C-113).
    if (host_.time->now() >= due)
      throw operation_failed{error{error_kind::unavailable, '"' + spot.spot_id + "\" is ending"}};
    auto pausing = placement::pause_before_retry(*host_.infra, *host_.random);
    co_await std::move(pausing);
    auto again = close_exactly(std::move(spot), due);
    co_return co_await std::move(again);
  }
  auto asking = ask_owner(*seen, control_command::close_spot, spot.spot_id, due);
  const bool closed = co_await std::move(asking);
  if (closed)
    host_.messages.routes.cache.erase(spot.spot_id, found.route.object, found.route.authority);
  co_return closed;
}

task<bool> creations::release_dead(std::string address, object_generation generation, placement::observed_object seen) {
  const auto& row = *placement::row_in(seen);
  if (row.aggregate) {
    auto releasing = placement::release_dead_member(*host_.repository, row.kind, std::string{id_in(address)}, generation);
    if (const auto released = co_await std::move(releasing); released == placement::step_end::done)
      co_return true;
    throw operation_failed{error{error_kind::unavailable, "the owner of " + described(address) + " cannot be reached, or the Location Store does not answer"}};
  }
  const auto key = placement::lease_key(row.owner.owner);
  const auto kind = row.kind;
  auto reading = host_.repository->read<placement::lease_record>(key);
  auto read = co_await std::move(reading);
  const auto* lease = placement::seen_in(read);
  if (lease == nullptr)
    throw operation_failed{error{error_kind::unavailable, "the Location Store does not answer"}};
  auto decided = placement::release_dead_owner(seen, kind, std::string{id_in(address)}, generation, *lease);
  auto* step = std::get_if<placement::fragment>(&decided);
  if (step == nullptr)
    throw operation_failed{error{error_kind::unavailable, "the owner of " + described(address) + " cannot be reached"}};
  auto applying = host_.repository->apply(std::move(*step));
  const auto applied = co_await std::move(applying);
  if (applied.what == placement::fragment_outcome::applied)
    co_return true;
  auto looking = host_.repository->read_object(address);
  const auto looked = co_await std::move(looking);
  const auto* now = placement::seen_in(looked);
  if (now != nullptr && (placement::row_in(*now) == nullptr || placement::row_in(*now)->generation != generation))
    co_return false; // somebody else has released it
  throw operation_failed{error{error_kind::unavailable, "the Location Store did not carry out the release of " + described(address)}};
}

} // namespace zlink::detail
