// Looking up and closing User Spots by their refs (C-66, C-112, C-113, S-79).
#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/call_start.hpp"
#include "zlink/objects/user_spots.hpp"

namespace zlink::detail {

namespace {

spot_ref ref_of(std::string id, const placement::row_record& row) {
  return {std::move(id), row.generation.value, row.node.mesh_name, row.node.node_rid};
}

/// A task that `run(done)` ends from the infrastructure unit; entered like every other call.
template <class T>
struct entered_call {
  counted_ptr<operation<T>> ended = new_counted<operation<T>>();
  reply_route route;

  void end(result<T> outcome) {
    auto* r = make_record(record_kind::completion);
    r->reply.id = route.id;
    if (!outcome)
      r->body.emplace<error>(outcome.error());
    else
      r->body.emplace<T>(std::move(*outcome));
    route.receiver->receive_reply(r);
    route.receiver->unref_receiver();
  }
};

} // namespace

task<std::optional<spot_ref>> user_spots::find(std::string spot_id, std::stop_token cancel) {
  auto call = std::make_shared<entered_call<std::optional<spot_ref>>>();
  call->ended->verb = "find of spot";
  call->ended->subject = spot_id;
  call_start starting{host_, *call->ended, turn_use::submit, std::move(cancel)};
  task<std::optional<spot_ref>> answer{call->ended};
  if (!starting.allowed(std::nullopt, true))
    return answer;
  call->route = starting.enter_operation(host_.default_request_timeout());
  starting.launch([this, call, spot_id = std::move(spot_id)]() mutable {
    host_.infra->post([this, call, spot_id = std::move(spot_id)]() mutable {
      start_coroutine(look_up(std::move(spot_id)), [call](result<std::optional<spot_ref>> outcome) {
        call->end(std::move(outcome));
      });
    });
  });
  return answer;
}

task<std::optional<spot_ref>> user_spots::look_up(std::string id) {
  auto resolving = host_.messages.routes.resolve(id);
  const auto found = co_await std::move(resolving);
  if (found.what == resolved::unknown)
    throw operation_failed{error{error_kind::unavailable, found.why}};
  if (found.what != resolved::ready)
    co_return std::nullopt;
  co_return ref_of(id, *placement::row_in(found.seen));
}

task<bool> user_spots::close(spot_ref spot, std::stop_token cancel) {
  auto call = std::make_shared<entered_call<bool>>();
  call->ended->verb = "close of spot";
  call->ended->subject = spot.spot_id;
  call_start starting{host_, *call->ended, turn_use::submit, std::move(cancel)};
  task<bool> answer{call->ended};
  if (!starting.allowed(std::nullopt, true))
    return answer;
  const auto timeout = host_.default_request_timeout();
  call->route = starting.enter_operation(timeout);
  starting.launch([this, call, spot = std::move(spot), due = host_.time->now() + timeout]() mutable {
    host_.infra->post([this, call, spot = std::move(spot), due]() mutable {
      start_coroutine(close_exactly(std::move(spot), due), [call](result<bool> outcome) { call->end(std::move(outcome)); });
    });
  });
  return answer;
}

task<bool> user_spots::close_exactly(spot_ref spot, steady_time due) {
  auto reading = host_.repository->read_spot(spot.spot_id);
  auto read = co_await std::move(reading);
  const auto* seen = placement::seen_in(read);
  if (seen == nullptr)
    throw operation_failed{error{error_kind::unavailable, "the Location Store does not tell who owns \"" + spot.spot_id + '"'}};
  if (placement::claim_in(*seen) != nullptr)
    throw operation_failed{error{error_kind::invalid_operation, "an Entry Spot is not closed; it ends with its node"}};
  const auto* row = placement::row_in(*seen);
  if (row == nullptr || row->state == placement::allocation_state::reserved)
    co_return false;
  if (row->generation.value != spot.object_generation)
    throw operation_failed{error{error_kind::invalid_operation, "the ref of \"" + spot.spot_id + "\" names another incarnation"}};
  auto judging = host_.messages.routes.judge_row(*seen);
  const auto found = co_await std::move(judging);
  if (found.what == resolved::unavailable) {
    auto releasing = release_dead(*seen, spot);
    co_return co_await std::move(releasing);
  }
  if (row->kind != placement::object_kind::user_spot)
    throw operation_failed{error{error_kind::invalid_operation, "an Instance Spot closes itself, from its own context"}};
  if (auto object = host_.objects.find(spot.spot_id); object && object->generation().value == spot.object_generation) {
    auto closing = host_.closings.close(object, spot_close_reason::explicit_close, due, nullptr);
    co_return co_await std::move(closing);
  }
  auto asking = ask_owner_to_close(found.route, std::move(spot), due);
  co_return co_await std::move(asking);
}

task<bool> user_spots::release_dead(placement::observed_object seen, spot_ref spot) {
  const auto& row = *placement::row_in(seen);
  const auto key = placement::lease_key(row.owner.owner);
  const auto kind = row.kind;
  auto reading = host_.repository->read<placement::lease_record>(key);
  auto read = co_await std::move(reading);
  const auto* lease = placement::seen_in(read);
  if (lease == nullptr)
    throw operation_failed{error{error_kind::unavailable, "the Location Store does not answer"}};
  auto decided = placement::release_dead_owner(seen, kind, spot.spot_id, object_generation{spot.object_generation}, *lease);
  auto* step = std::get_if<placement::fragment>(&decided);
  if (step == nullptr)
    throw operation_failed{error{error_kind::unavailable, "the owner of \"" + spot.spot_id + "\" cannot be reached"}};
  auto applying = host_.repository->apply(std::move(*step));
  const auto applied = co_await std::move(applying);
  co_return applied.what == placement::fragment_outcome::applied;
}

} // namespace zlink::detail
