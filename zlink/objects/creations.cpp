#include "zlink/objects/creations.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/call_start.hpp"
#include "zlink/objects/ready_row.hpp"
#include "zlink/objects/stored_request.hpp"
#include "zlink/placement/pause.hpp"

#include <algorithm>

namespace zlink {

const char* to_string(spot_create_state state) noexcept {
  switch (state) {
    case spot_create_state::existing: return "existing";
    case spot_create_state::created: return "created";
    case spot_create_state::rejected: return "rejected";
  }
  return "unknown";
}

namespace detail {

namespace {

actor_create_result as_actor(spot_create_result made) {
  auto& ref = made.spot;
  return {{std::move(ref.spot_id), ref.object_generation, std::move(ref.mesh_name), std::move(ref.node_rid)}, made.state,
          std::move(made.reply)};
}

const char* name_of(placement::object_kind kind) noexcept {
  switch (kind) {
    case placement::object_kind::actor: return "actor";
    case placement::object_kind::user_spot: return "user spot";
    case placement::object_kind::instance_spot: return "instance spot";
  }
  return "object";
}

error type_error(const std::string& id, const placement::row_record& row, placement::object_kind kind, const std::string& wanted) {
  return {error_kind::type_mismatch, '"' + id + "\" is an existing " + name_of(row.kind) + " of type \"" + row.stable_type
                                       + "\", asked for was " + name_of(kind) + " type \"" + wanted + '"'};
}

} // namespace

// -- create -------------------------------------------------------------------------------------------------------------

struct creations::creation {
  placement::object_kind kind = placement::object_kind::user_spot;
  bool exclusive = false; ///< what is there is no reason to take it (C-61, C-122)
  std::string id;
  std::string type;
  std::optional<std::string> mesh;
  placement::request_content request;
  steady_time due{};
  counted_ptr<operation_base> ended;
  operation_id operation;
  const gate* held = nullptr; ///< by the handler that waits; compared only
  std::vector<placement::node_identity> excluded;
  reply_route route;
};

void creations::create(create_call call, counted_ptr<operation_base> ended, turn_use use, std::stop_token cancel) {
  const bool issued = call.what_ == created_object::issued_spot;
  const bool actor = call.what_ == created_object::actor || call.what_ == created_object::actor_if_missing;
  ended->verb = actor ? "creation of actor" : "creation of spot";
  std::optional<error> mistake;
  if (call.started_)
    mistake = error{error_kind::invalid_operation, "this call was started before; make a new one"};
  else if (call.twice_)
    mistake = error{error_kind::invalid_operation, "an option was set twice on one create call"};
  else if (!actor && is_entry_spot_format(call.id_))
    mistake = error{error_kind::invalid_operation, '"' + call.id_ + "\" has the form of an Entry Spot id, which only the layer issues"};
  auto c = std::make_shared<creation>();
  if (!mistake)
    c->request = encode_request(call.request_.value_or(message{}), host_);
  call_start starting{host_, *ended, use, std::move(cancel)};
  if (!starting.allowed(std::move(mistake), true))
    return;
  c->kind = actor ? placement::object_kind::actor : placement::object_kind::user_spot;
  c->exclusive = issued || call.what_ == created_object::actor;
  c->id = issued ? format_uuid_v4(host_.random->next_id()) : std::move(call.id_);
  c->type = std::move(call.type_);
  c->mesh = std::move(call.mesh_);
  c->operation = host_.random->next_id();
  if (const auto* t = current_turn(); t != nullptr && use == turn_use::submit)
    c->held = t->home;
  const auto timeout = call.timeout_.value_or(host_.default_request_timeout());
  c->due = host_.time->now() + timeout;
  ended->subject = c->id;
  c->ended = std::move(ended);
  c->route = starting.enter_operation(timeout);
  starting.launch([this, c] { host_.infra->post([this, c] { start_coroutine(run(c), [](result<void>) {}); }); });
}

task<void> creations::run(std::shared_ptr<creation> c) {
  std::chrono::milliseconds pause{2};
  std::optional<result<spot_create_result>> outcome;
  while (!outcome && !c->ended->done()) {
    auto trying = attempt(*c);
    outcome = co_await std::move(trying);
    if (outcome || c->ended->done())
      break;
    if (host_.time->now() >= c->due)
      break; // the operation's own deadline tells the caller
    auto pausing = placement::pause(*host_.infra, pause);
    co_await std::move(pausing);
    pause = std::min(pause * 2, std::chrono::milliseconds{50});
  }
  auto* r = make_record(record_kind::completion);
  r->reply.id = c->route.id;
  if (!outcome)
    r->body.emplace<error>(c->ended->timeout_error());
  else if (!*outcome)
    r->body.emplace<error>(outcome->error());
  else if (c->kind == placement::object_kind::actor)
    r->body.emplace<actor_create_result>(as_actor(std::move(**outcome)));
  else
    r->body.emplace<spot_create_result>(std::move(**outcome));
  c->route.receiver->receive_reply(r);
  c->route.receiver->unref_receiver();
}

/// One look at the id: an outcome, or nothing if it is to be looked at again.
task<std::optional<result<spot_create_result>>> creations::attempt(creation& c) {
  using outcome = result<spot_create_result>;
  if (auto why = host_.refuse_owned_work())
    co_return outcome{std::move(*why)}; // nothing is reserved past the deadline (S-40, S-41)
  const auto address = placement::address_of(c.kind, c.id);
  auto reading = host_.repository->read_object(address);
  auto read = co_await std::move(reading);
  const auto* seen = placement::seen_in(read);
  if (seen == nullptr)
    co_return outcome{error{error_kind::internal_failure, "the Location Store does not tell who owns \"" + c.id + '"'}};
  if (placement::claim_in(*seen) != nullptr)
    co_return outcome{error{error_kind::type_mismatch, '"' + c.id + "\" is an entry spot"}};
  host_.messages.routes.cache.row_seen(address, placement::row_in(*seen));
  if (const auto* row = placement::row_in(*seen)) {
    if (row->kind != c.kind || row->stable_type != c.type)
      co_return outcome{type_error(c.id, *row, c.kind, c.type)};
    if (row->state == placement::allocation_state::reserved) {
      auto releasing = release_if_dead(address, *seen);
      const bool released = co_await std::move(releasing);
      if (c.exclusive && !released)
        co_return outcome{error{error_kind::already_exists, described(address) + " is being created"}};
      co_return std::nullopt;
    }
    if (c.exclusive)
      co_return outcome{error{error_kind::already_exists, described(address) + " is there already"}};
    const auto existing = ref_of(c.id, *row);
    auto judging = host_.messages.routes.judge_row(*seen);
    const auto found = co_await std::move(judging);
    if (found.what == resolved::closing)
      co_return std::nullopt;
    if (found.what == resolved::ready)
      co_return outcome{spot_create_result{existing, spot_create_state::existing, std::nullopt}};
    if (found.what == resolved::unavailable)
      co_return outcome{error{error_kind::unavailable, described(address) + " cannot be used: " + found.why}};
    co_return outcome{error{error_kind::internal_failure, found.why}};
  }
  auto reserving = reserve(c, *seen);
  co_return co_await std::move(reserving);
}

task<bool> creations::release_if_dead(std::string address, placement::observed_object seen) {
  const auto& row = *placement::row_in(seen);
  const auto lease_of = placement::lease_key(row.owner.owner);
  const auto descriptor_of = placement::descriptor_key(row.node);
  placement::lifecycle_evidence evidence;
  auto reading_lease = host_.repository->read<placement::lease_record>(lease_of);
  auto lease = co_await std::move(reading_lease);
  auto reading_descriptor = host_.repository->read<placement::descriptor_record>(descriptor_of);
  auto descriptor = co_await std::move(reading_descriptor);
  const auto* seen_lease = placement::seen_in(lease);
  const auto* seen_descriptor = placement::seen_in(descriptor);
  if (seen_lease == nullptr || seen_descriptor == nullptr)
    co_return false;
  evidence.lease = *seen_lease;
  evidence.descriptor = *seen_descriptor;
  auto releasing = host_.repository->apply_if(placement::release(seen, std::string{id_in(address)}, evidence));
  const auto applied = co_await std::move(releasing);
  co_return applied && applied->what == placement::fragment_outcome::applied;
}

task<std::optional<result<spot_create_result>>> creations::reserve(creation& c, const placement::observed_object& seen) {
  using outcome = result<spot_create_result>;
  auto chosen = host_.node_for(c.mesh);
  if (auto* why = std::get_if<error>(&chosen))
    co_return outcome{std::move(*why)};
  auto& node = *std::get<node_runtime*>(chosen);
  // Here on_create_actor would need the gate that whoever waits for it holds.
  const bool not_here = c.kind == placement::object_kind::actor && node.entry && c.held == &node.entry->home();
  if (not_here && std::ranges::find(c.excluded, node.identity) == c.excluded.end())
    c.excluded.push_back(node.identity);
  auto choosing = choose_target(node, c);
  auto target = co_await std::move(choosing);
  if (!target && not_here)
    co_return outcome{error{error_kind::invalid_operation, "a handler of the Entry Spot cannot wait for an Actor that comes into being "
                                                           "there; create it from outside, or from another Spot"}};
  if (!target)
    co_return outcome{target.error()};
  placement::reserve_request wish;
  wish.kind = c.kind;
  wish.id = c.id;
  wish.stable_type = c.type;
  wish.reservation = host_.random->next_id();
  wish.patience = std::chrono::duration_cast<std::chrono::milliseconds>(c.due - host_.time->now());
  wish.target_owner = target->descriptor->owner;
  wish.target = target->stamp();
  wish.limits = placement::limits_of(*target->descriptor, placement::slots_of(wish.kind, c.type));
  wish.content = c.request;
  if (c.request.is_apart()) {
    auto request = c.request;
    wish.request_apart = std::exchange(request.bytes, {});
    wish.content = std::move(request);
  }
  auto decided = placement::reserve(seen, wish);
  auto* step = std::get_if<placement::fragment>(&decided);
  if (step == nullptr)
    co_return std::nullopt;
  auto applying = host_.repository->apply(std::move(*step));
  const auto applied = co_await std::move(applying);
  switch (applied.what) {
    case placement::fragment_outcome::applied: break;
    case placement::fragment_outcome::no_capacity:
      c.excluded.push_back(target->descriptor->node);
      co_return std::nullopt;
    case placement::fragment_outcome::conflict: co_return std::nullopt;
    case placement::fragment_outcome::exhausted:
      co_return outcome{error{error_kind::internal_failure, "no generation is left for the id \"" + c.id + '"'}};
    default:
      co_return outcome{error{error_kind::internal_failure, "the store did not carry out the reservation of \"" + c.id + '"'}};
  }
  reservation made{c.kind, c.id, c.type, wish.reservation, applied.numbers.object, applied.numbers.authority, applied.row_version, c.operation,
                   node.identity, c.due};
  if (target->descriptor->node.node_rid == node.rid()) {
    auto building = build_here(node, std::move(made));
    co_return co_await std::move(building);
  }
  auto asking = ask_target(node, target->descriptor->node, std::move(made));
  co_return co_await std::move(asking);
}

task<result<placement::live_node>> creations::choose_target(node_runtime& node, creation& c) {
  auto refreshed = placement::refresh_outcome::complete;
  for (bool fresh = false;; fresh = true) {
    const auto snapshot = node.peers_known->snapshot();
    placement::placement_wish wish{node.mesh_name(), c.kind, c.type, placement::slots_of(c.kind, c.type), c.excluded};
    if (host_.refuse(host_work::placement_here)) // what the list shows of this node may be older
      wish.excluded.push_back(node.identity);
    auto choice = placement::choose_node(snapshot->candidates(host_.time->now()), wish, *host_.random);
    if (const auto* chosen = std::get_if<const placement::descriptor_record*>(&choice))
      co_return *snapshot->find((*chosen)->node.node_rid);
    if (fresh) {
      const auto& none = std::get<placement::no_candidate>(choice);
      // Without an answer an old list does not show that nobody is there (S-68).
      if (refreshed == placement::refresh_outcome::unavailable && none.kind() == error_kind::not_found)
        co_return error{error_kind::unavailable, "the Location Store does not tell which nodes there are"};
      co_return error{none.kind(), std::string{name_of(c.kind)} + " type \"" + c.type + "\": " + placement::to_string(none.cause)};
    }
    auto refreshing = node.peers_known->refresh();
    refreshed = co_await std::move(refreshing);
  }
}

} // namespace detail
} // namespace zlink
