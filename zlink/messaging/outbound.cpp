#include "zlink/messaging/outbound.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/messaging/mesh_links.hpp"
#include "zlink/placement/candidates.hpp"

namespace zlink::detail {

namespace {

error missing_error(std::string_view id) {
  return {error_kind::not_found, "there is no spot \"" + std::string{id}
                                   + "\"; mark the call with instance_spot(type) if it may come to life"};
}

/// What an existing Spot of this kind and type has against a message with intent (C-63, C-90, M-156).
std::optional<error> conflict(spot_kind kind, const std::string& type, const instance_intent* intent,
                              std::string_view id) {
  if (intent == nullptr)
    return std::nullopt;
  if (kind == spot_kind::instance && (!intent->type || *intent->type == type))
    return std::nullopt;
  std::string is = std::string{to_string(kind)} + " spot";
  if (!type.empty())
    is += " of type \"" + type + '"';
  return error{error_kind::type_mismatch, '"' + std::string{id} + "\" is an " + is + ", the call asks for an instance spot"
                                            + (intent->type ? " of type \"" + *intent->type + '"' : std::string{})};
}

/// Passes the reply of a request on that went by a known route. One that says the route cannot be used any more ends it
/// (M-79, M-82): the next call asks the store.
class route_watch final : public counted, public reply_receiver {
public:
  route_watch(route_cache& routes, std::string id, reply_route asked) noexcept
    : routes_(routes), id_(std::move(id)), asked_(asked) {}
  ~route_watch() override {
    if (asked_.receiver != nullptr)
      asked_.receiver->unref_receiver();
  }
  void receive_reply(record* reply) noexcept override {
    if (const auto* failed = reply->body.get<error>(); failed != nullptr && failed->kind() == error_kind::unavailable)
      routes_.erase(id_);
    reply->reply = std::exchange(asked_, reply_route{});
    send_reply(reply);
  }
  void ref_receiver() noexcept override { ref(); }
  void unref_receiver() noexcept override { unref(); }

private:
  route_cache& routes_;
  std::string id_;
  reply_route asked_;
};

} // namespace

outbound::outbound(host_runtime& host) : routes(host, host.options.route_cache_max_age), host_(host) {}

local_verdict outbound::try_local(record* r, std::string_view id, const instance_intent* intent, const gate* forbidden,
                                  std::optional<error>& why, bool arrival) {
  bool same_gate = false;
  const bool no_lease = host_.domain.admission_over.load(std::memory_order_acquire);
  const auto delivery = host_.objects.deliver(id, r, intent != nullptr, arrival, [&](spot_object& object) {
    same_gate = forbidden != nullptr && &object.home() == forbidden;
    if (no_lease)
      why = host_.refuse_owned_work(); // also where the gate is held and its turn would begin much later (S-41)
    if (!why)
      why = conflict(object.factory().kind, object.factory().type, intent, id);
    return !same_gate && !why;
  });
  if (!delivery.found)
    return local_verdict::absent;
  if (same_gate)
    return local_verdict::same_gate;
  if (why)
    return local_verdict::refused;
  switch (delivery.verdict) {
    case admission::admitted: return local_verdict::admitted;
    case admission::no_room: return local_verdict::no_room;
    case admission::staging: why = missing_error(id); return local_verdict::refused;
    case admission::sealed: break;
  }
  if (intent != nullptr)
    return local_verdict::closing;
  why = host_.state.load() == host_state::draining ? error{error_kind::shutting_down, "the host is shutting down"}
                                                   : missing_error(id);
  return local_verdict::refused;
}

bool outbound::is_resolving(std::string_view id) const noexcept {
  if (resolving_.load(std::memory_order_acquire) == 0)
    return false;
  auto& part = shard_of(id);
  std::lock_guard guard{part.mutex};
  return part.waiting.contains(std::string{id});
}

bool outbound::queue_behind(submission& message) {
  if (resolving_.load(std::memory_order_acquire) == 0)
    return false;
  auto& part = shard_of(message.id());
  std::lock_guard guard{part.mutex};
  const auto i = part.waiting.find(message.id());
  if (i == part.waiting.end())
    return false;
  i->second.push_back(std::move(message));
  return true;
}

void outbound::submit(submission message, const gate* forbidden) {
  if (message.over()) {
    message.fail({error_kind::deadline_exceeded, "its call has ended"});
    return;
  }
  if (queue_behind(message))
    return;
  auto* r = message.take();
  admission_notice notice{*r};
  std::optional<error> why;
  const auto verdict = try_local(r, message.id(), message.intent(), forbidden, why);
  if (verdict == local_verdict::admitted)
    return;
  notice.put_back(*r);
  message.put_back(r);
  switch (verdict) {
    case local_verdict::admitted: break;
    case local_verdict::same_gate:
      message.fail({error_kind::invalid_operation, "the request would wait for the turn that makes it; use yield, or send"});
      break;
    case local_verdict::refused: message.fail(std::move(*why)); break;
    case local_verdict::no_room:
      if (auto object = host_.objects.find(message.id()))
        host_.waiting->wait(*object, std::move(message));
      else
        begin_resolving(std::move(message));
      break;
    case local_verdict::closing:
      if (auto object = host_.objects.find(message.id()); object && host_.closings.hold(*object, std::move(message)))
        break;
      if (message.peek() != nullptr) // the close ended in between
        retry_later(std::move(message));
      break;
    case local_verdict::absent: {
      const auto route = routes.cache.find(message.id(), host_.time->now());
      if (route)
        if (auto link = link_to(route->mesh_name, route->node_rid)) {
          const auto intent = message.intent() == nullptr ? std::nullopt : std::optional{*message.intent()};
          send_by_link(std::move(message), *link, &*route, intent ? &*intent : nullptr, nullptr);
          break;
        }
      begin_resolving(std::move(message));
      break;
    }
  }
}

void outbound::retry_later(submission message) {
  host_.infra->post_after(std::chrono::milliseconds{1},
                          [this, message = std::move(message)]() mutable { submit(std::move(message)); });
}

// -- resolving --------------------------------------------------------------------------------------------------------

void outbound::begin_resolving(submission message) {
  const std::string id = message.id();
  {
    auto& part = shard_of(id);
    std::lock_guard guard{part.mutex};
    auto [place, first] = part.waiting.try_emplace(id);
    place->second.push_back(std::move(message));
    if (!first)
      return;
    resolving_.fetch_add(1, std::memory_order_acq_rel);
  }
  host_.infra->post([this, id] { start_coroutine(resolve_all(id), [](result<void>) {}); });
}

std::deque<submission> outbound::take_waiting(const std::string& id) {
  auto& part = shard_of(id);
  std::lock_guard guard{part.mutex};
  return std::exchange(part.waiting[id], {});
}

bool outbound::end_resolving(const std::string& id) {
  auto& part = shard_of(id);
  std::lock_guard guard{part.mutex};
  const auto i = part.waiting.find(id);
  if (!i->second.empty())
    return false;
  part.waiting.erase(i);
  resolving_.fetch_sub(1, std::memory_order_acq_rel);
  return true;
}

task<void> outbound::resolve_all(std::string id) {
  do {
    auto resolving = routes.resolve(id);
    auto found = co_await std::move(resolving);
    auto placing = place_resolved(id, std::move(found), take_waiting(id));
    co_await std::move(placing);
  } while (!end_resolving(id));
}

task<void> outbound::place_resolved(std::string id, resolution found, std::deque<submission> waiting) {
  const auto* row = placement::row_in(found.seen);
  for (auto& message : waiting) {
    if (message.over()) {
      message.fail({error_kind::deadline_exceeded, "its call has ended"});
      continue;
    }
    if (row != nullptr && found.what != resolved::missing)
      if (auto why = conflict(placement::spot_kind_of(row->kind), row->stable_type, message.intent(), id)) {
        message.fail(std::move(*why));
        continue;
      }
    switch (found.what) {
      case resolved::missing: {
        auto placing = place_missing(id, found, std::move(message));
        co_await std::move(placing);
        break;
      }
      case resolved::creating:
        if (message.intent() == nullptr)
          message.fail(missing_error(id));
        else
          hold_for_creation(id, found, std::move(message));
        break;
      case resolved::closing:
        if (message.intent() == nullptr) {
          message.fail(missing_error(id));
          break;
        }
        [[fallthrough]];
      case resolved::ready:
      case resolved::entry: place_owned(found, std::move(message)); break;
      case resolved::unavailable:
        message.fail({error_kind::unavailable, "spot \"" + id + "\" cannot be used: " + found.why});
        break;
      case resolved::unknown: message.fail({error_kind::unavailable, "spot \"" + id + "\": " + found.why}); break;
    }
  }
}

void outbound::place_owned(const resolution& found, submission message) {
  const auto& route = found.route;
  auto* node = host_.find_node(route.mesh_name);
  if (node != nullptr && node->rid() == route.node_rid) {
    place_here(std::move(message));
    return;
  }
  if (found.what == resolved::entry && message.intent() != nullptr) {
    message.fail({error_kind::type_mismatch, '"' + message.id() + "\" is an entry spot, the call asks for an instance spot"});
    return;
  }
  auto link = link_to(route.mesh_name, route.node_rid);
  if (!link) {
    message.fail({error_kind::unavailable, "no link to the owner of spot \"" + message.id() + '"'});
    return;
  }
  if (found.what == resolved::ready)
    routes.cache.put(message.id(), route, host_.time->now());
  const auto intent = message.intent() == nullptr ? std::nullopt : std::optional{*message.intent()};
  send_by_link(std::move(message), *link, found.what == resolved::entry ? nullptr : &route,
               intent ? &*intent : nullptr, nullptr);
}

/// The store says that the Spot lives here.
void outbound::place_here(submission message) {
  auto* r = message.take();
  admission_notice notice{*r};
  std::optional<error> why;
  const auto verdict = try_local(r, message.id(), message.intent(), nullptr, why);
  if (verdict == local_verdict::admitted)
    return;
  notice.put_back(*r);
  message.put_back(r);
  auto object = host_.objects.find(message.id());
  if (verdict == local_verdict::no_room && object)
    host_.waiting->wait(*object, std::move(message));
  else if (verdict == local_verdict::closing && object && host_.closings.hold(*object, std::move(message)))
    return;
  else if (verdict == local_verdict::refused)
    message.fail(std::move(*why));
  else if (verdict == local_verdict::absent)
    message.fail({error_kind::unavailable, "spot \"" + message.id() + "\" is owned by this host but not here"});
  else if (message.peek() != nullptr)
    retry_later(std::move(message));
}

void outbound::hold_for_creation(const std::string& id, const resolution& found, submission message) {
  auto* node = host_.find_node(found.route.mesh_name);
  if (node != nullptr && node->rid() == found.route.node_rid) {
    place_here(std::move(message)); // it is being created here: its lane takes the message
    return;
  }
  (void)id;
  host_.infra->post_after(std::chrono::milliseconds{5},
                          [this, message = std::move(message)]() mutable { submit(std::move(message)); });
}

// -- placing a missing Spot ---------------------------------------------------------------------------------------------

task<void> outbound::place_missing(const std::string& id, const resolution& found, submission message) {
  // An earlier message of this batch may have begun an activation here.
  if (host_.objects.find(id)) {
    place_here(std::move(message));
    co_return;
  }
  if (message.intent() == nullptr) {
    message.fail(missing_error(id));
    co_return;
  }
  auto chosen = host_.node_for(message.intent()->mesh);
  if (auto* why = std::get_if<error>(&chosen)) {
    message.fail(std::move(*why));
    co_return;
  }
  auto& node = *std::get<node_runtime*>(chosen);
  auto choosing = choose_target(node, message.intent()->type);
  auto target = co_await std::move(choosing);
  if (!target) {
    message.fail(target.error());
    co_return;
  }
  if (target->descriptor->node.node_rid != node.rid()) {
    auto link = link_to(node.mesh_name(), target->descriptor->node.node_rid);
    instance_intent wanted{target->type, node.mesh_name()};
    if (link)
      send_by_link(std::move(message), *link, nullptr, &wanted, target->descriptor.get());
    else
      message.fail({error_kind::unavailable, "no link to the node chosen for spot \"" + id + '"'});
    co_return;
  }
  if (host_.objects.find(id)) { // while the choice was made
    place_here(std::move(message));
    co_return;
  }
  const auto* factory = node.find_factory(spot_kind::instance, target->type);
  auto* r = message.take();
  admission_notice notice{*r};
  host_.activations.begin(node, *factory, id, r, found.seen);
}

task<result<outbound::chosen_target>> outbound::choose_target(node_runtime& node, std::optional<std::string> type) {
  auto choice = choose_among(*node.peers_known->snapshot(), node, type);
  if (choice)
    co_return choice;
  auto refreshing = node.peers_known->refresh(); // nobody fits by what was known: look again before saying so
  const auto refreshed = co_await std::move(refreshing);
  choice = choose_among(*node.peers_known->snapshot(), node, type);
  // Without an answer an old list does not show that nobody is there (S-68).
  if (!choice && refreshed == placement::refresh_outcome::unavailable && choice.error().kind() == error_kind::not_found)
    co_return error{error_kind::unavailable, "the Location Store does not tell which nodes there are"};
  co_return choice;
}

result<outbound::chosen_target> outbound::choose_among(const placement::directory_snapshot& snapshot,
                                                       node_runtime& node, const std::optional<std::string>& type) {
  const auto all = snapshot.candidates(host_.time->now());
  chosen_target target;
  if (type) {
    target.type = *type;
  } else {
    auto inferred = placement::infer_instance_type(all, node.mesh_name());
    if (const auto* kind = std::get_if<error_kind>(&inferred)) {
      if (*kind == error_kind::invalid_operation)
        return error{*kind, "mesh \"" + node.mesh_name() + "\" offers several instance spot types; name one: instance_spot(type)"};
      return error{*kind, "mesh \"" + node.mesh_name() + "\" offers no instance spot type"};
    }
    target.type = std::get<std::string>(inferred);
  }
  placement::placement_wish wish{node.mesh_name(), placement::object_kind::instance_spot, target.type,
                                 placement::slots_of(placement::object_kind::instance_spot, target.type), {}};
  auto choice = placement::choose_node(all, wish, *host_.random);
  if (const auto* none = std::get_if<placement::no_candidate>(&choice))
    return error{none->kind(), "instance spot type \"" + target.type + "\": " + placement::to_string(none->cause)};
  const auto* chosen = std::get<const placement::descriptor_record*>(choice);
  target.descriptor = snapshot.find(chosen->node.node_rid)->descriptor;
  return target;
}

// -- links ----------------------------------------------------------------------------------------------------------------

counted_ptr<link_session> outbound::link_to(std::string_view mesh_name, std::string_view rid) {
  auto* node = host_.find_node(mesh_name);
  return node == nullptr || node->links == nullptr ? nullptr : node->links->ready_link(rid);
}

void outbound::send_by_link(submission message, link_session& link, const object_route* route,
                            const instance_intent* intent, const placement::descriptor_record* target) {
  const std::string id = message.id();
  const auto due = message.room_due();
  auto* r = message.take();
  if (route != nullptr && r->kind == record_kind::request && !r->from_link)
    r->reply = {new route_watch{routes.cache, id, r->reply}, 0};
  message_header header;
  header.target = target_kind::spot;
  header.target_id = id;
  header.operation = host_.random->next_id();
  if (route != nullptr)
    header.fence = message_fence{route->object, route->authority};
  if (intent != nullptr) {
    header.instance_intent = true;
    // The two names travel together or not at all: a marker alone goes to an owner who knows its type.
    const std::string* mesh = intent->mesh ? &*intent->mesh : route != nullptr ? &route->mesh_name : nullptr;
    if (intent->type && mesh != nullptr) {
      auto& part = header.activation.emplace();
      part.stable_type = *intent->type;
      part.mesh = *mesh;
      if (target != nullptr) {
        part.descriptor = target->revision;
        part.lifecycle = target->node.lifecycle;
      }
    }
  }
  link.send(r, header, due);
}

} // namespace zlink::detail
