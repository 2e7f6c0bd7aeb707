#include "zlink/messaging/outbound.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/messaging/mesh_links.hpp"

namespace zlink::detail {

error missing_error(std::string_view id) {
  if (is_actor_address(id))
    return {error_kind::not_found, "there is no " + described(id)};
  return {error_kind::not_found, "there is no spot \"" + std::string{id}
                                   + "\"; mark the call with instance_spot(type) if it may come to life"};
}

std::optional<error> conflict(spot_kind kind, const std::string& type, const instance_intent* intent,
                              std::string_view id) {
  if (intent == nullptr)
    return std::nullopt;
  if (kind == spot_kind::instance && (!intent->type || *intent->type == type))
    return std::nullopt;
  std::string is = std::string{kind == spot_kind::user ? "a " : "an "} + to_string(kind) + " spot";
  if (!type.empty())
    is += " of type \"" + type + '"';
  return error{error_kind::type_mismatch, '"' + std::string{id} + "\" is " + is + ", the call asks for an instance spot"
                                            + (intent->type ? " of type \"" + *intent->type + '"' : std::string{})};
}

namespace {

/// Stands between a request that is passed on and who asked: the reply comes by here.
class reply_passage : public counted, public reply_receiver {
public:
  explicit reply_passage(reply_route asked) noexcept : asked_(asked) {}
  ~reply_passage() override {
    if (asked_.receiver != nullptr)
      asked_.receiver->unref_receiver();
  }
  void receive_reply(record* reply) noexcept override {
    reply->reply = std::exchange(asked_, reply_route{});
    send_reply(reply);
  }
  void ref_receiver() noexcept final { ref(); }
  void unref_receiver() noexcept final { unref(); }

private:
  reply_route asked_;
};

/// A reply that says that the request cannot be served where it went ends the route, or the choice of the node (M-79,
/// M-82): the next call looks again.
class route_watch final : public reply_passage {
public:
  route_watch(outbound& owner, std::string id, std::optional<message_fence> route, std::string node_rid,
              reply_route asked) noexcept
    : reply_passage(asked), owner_(owner), id_(std::move(id)), route_(route), node_rid_(std::move(node_rid)) {}
  void receive_reply(record* reply) noexcept override {
    const auto* failed = reply->body.get<error>();
    if (!route_)
      owner_.placement_ended(id_, node_rid_);
    else if (failed != nullptr
             && (failed->kind() == error_kind::unavailable || failed->kind() == error_kind::not_found || failed->kind() == error_kind::shutting_down))
      owner_.route_failed(id_, *route_);
    reply_passage::receive_reply(reply);
  }

private:
  outbound& owner_;
  std::string id_;
  std::optional<message_fence> route_; ///< nothing: the message was to wake the Spot
  std::string node_rid_;
};

/// Is counted until the reply has passed. With it the store tells where the Spot is.
class reply_relay final : public reply_passage {
public:
  reply_relay(outbound& owner, std::string id, reply_route asked, std::atomic<std::size_t>& count) noexcept
    : reply_passage(asked), owner_(owner), id_(std::move(id)), count_(count) {
    count_.fetch_add(1, std::memory_order_acq_rel);
  }
  ~reply_relay() override { count_.fetch_sub(1, std::memory_order_acq_rel); }
  void receive_reply(record* reply) noexcept override {
    owner_.following_ended(id_);
    reply_passage::receive_reply(reply);
  }

private:
  outbound& owner_;
  std::string id_;
  std::atomic<std::size_t>& count_;
};

/// What the sender believed about ownership against what is here. An incarnation that has replaced the known one at the
/// same owner serves the message (C-57); ownership that has changed hands since, or a newer one than this node knows of,
/// does not (M-63, S-46).
bool fits(const message_fence& fence, const hosted_object& object) noexcept {
  const auto generation = object.generation();
  if (fence.hops != 0) // sent on by a former owner: ownership rises with each hop (L-182)
    return fence.object == generation && fence.authority < object.authority();
  if (!fence.exact && (!generation || fence.object < generation))
    return true;
  const auto since = object.owned_since();
  return fence.object == generation
         && (fence.authority == object.authority() || (since && fence.authority >= since && fence.authority < object.authority()));
}

} // namespace

outbound::outbound(host_runtime& host) : routes(host, host.options.route_cache_max_age), host_(host) {}

reply_route outbound::relay(const std::string& id, reply_route asked) {
  return asked.receiver == nullptr ? asked : reply_route{new reply_relay{*this, id, asked, relayed_}, 0};
}

// -- here ---------------------------------------------------------------------------------------------------------------

local_verdict outbound::try_local(record* r, std::string_view id, const instance_intent* intent, const gate* forbidden,
                                  std::optional<error>& why) {
  return judge_local(r, id, intent, forbidden, nullptr, false, why);
}

local_verdict outbound::judge_local(record* r, std::string_view id, const instance_intent* intent,
                                    const gate* forbidden, const message_fence* fence, bool arrival,
                                    std::optional<error>& why, counted_ptr<detour>* follow) {
  bool same_gate = false;
  bool stale = false;
  bool expected = false; // the sender has seen it Ready, this host is about to open it: it waits for that, in its place (C-88)
  const bool no_lease = host_.domain.admission_over.load(std::memory_order_acquire);
  const auto look_at = [&](hosted_object& object) {
    same_gate = forbidden != nullptr
                && (&object.home() == forbidden || (object.is_actor() && static_cast<actor_object&>(object).will_need(*forbidden)));
    if (no_lease)
      why = host_.refuse_owned_work(); // also where the gate is held and its turn would begin much later (S-41)
    if (!why && intent != nullptr) {
      const auto& factory = static_cast<spot_object&>(object).factory(); // no Actor is sought with intent
      why = conflict(factory.kind, factory.type, intent, id);
    }
    stale = fence != nullptr && !fits(*fence, object);
    expected = fence != nullptr && object.generation() && fence->object == object.generation();
    return !same_gate && !why && !stale;
  };
  const auto how = fence == nullptr ? passage{{}, {}, 0, arrival} : passage{fence->object, fence->authority, fence->hops, arrival};
  auto delivery = host_.objects.deliver(id, r, intent != nullptr, how, look_at);
  if (delivery.found && delivery.verdict == admission::staging && expected)
    delivery = host_.objects.deliver(id, r, true, how, look_at);
  if (!delivery.found)
    return local_verdict::absent;
  if (delivery.follow) {
    if (follow != nullptr)
      *follow = std::move(delivery.follow);
    return local_verdict::elsewhere;
  }
  if (same_gate) {
    why = error{error_kind::invalid_operation, "the request would wait for the turn that makes it; use yield, or send"};
    return local_verdict::same_gate;
  }
  if (why)
    return local_verdict::refused;
  if (stale)
    return local_verdict::stale;
  switch (delivery.verdict) {
    case admission::admitted: return local_verdict::admitted;
    case admission::no_room: return local_verdict::no_room;
    case admission::staging: why = missing_error(id); return local_verdict::refused;
    case admission::sealed: break;
  }
  if (intent != nullptr)
    return local_verdict::closing;
  why = host_.refuse(host_work::object_message).value_or(missing_error(id));
  return local_verdict::refused;
}

local_verdict outbound::deliver_here(submission& message, std::optional<error>& why) {
  const auto* from = message.arrived();
  const auto* fence = from != nullptr && from->fence ? &*from->fence : nullptr;
  auto* r = message.take();
  counted_ptr<detour> follow;
  {
    admission_notice notice{*r};
    const auto verdict =
      judge_local(r, message.id(), message.intent(), message.forbidden(), fence, from != nullptr, why, &follow);
    if (verdict == local_verdict::admitted)
      return verdict;
    notice.put_back(*r);
    message.put_back(r);
    if (verdict != local_verdict::elsewhere)
      return verdict;
  }
  follow->forward(std::move(message));
  return local_verdict::admitted;
}

/// False: the object has gone, and the message is still the caller's.
bool outbound::wait_for_room(submission& message) {
  const auto object = host_.objects.find_any(message.id());
  if (!object)
    return false;
  host_.waiting->wait(*object, std::move(message));
  if (object->application_word().has(admission_word::sealed_bit)) // meanwhile: whoever sealed it may have come before
    if (auto left = host_.waiting->take(*object); !left.empty())
      hand_over(object->address(), std::move(left));
  return true;
}

/// A Spot on its way out, and a message for the next one. False: look the id up again.
bool outbound::hold_for_next(submission& message) {
  const auto object = host_.objects.find(message.id());
  if (!object || !object->application_word().has(admission_word::sealed_bit))
    return false;
  if (host_.closings.hold(*object, message))
    return true;
  if (host_.objects.find(message.id()).get() != object.get() || is_held(message.id()))
    return false;
  message.fail({error_kind::unavailable, "spot \"" + message.id() + "\" has just failed to come to life"}); // C-104
  return true;
}

void outbound::submit(submission&& message) {
  for (;;) {
    if (message.over()) {
      message.fail({error_kind::deadline_exceeded, "its call has ended"});
      return;
    }
    if (queue_behind(message))
      return;
    std::optional<error> why;
    switch (deliver_here(message, why)) {
      case local_verdict::admitted:
      case local_verdict::elsewhere: return;
      case local_verdict::stale:
      case local_verdict::same_gate:
      case local_verdict::refused: message.fail(why.value_or(missing_error(message.id()))); return;
      case local_verdict::no_room:
        if (wait_for_room(message))
          return;
        break;
      case local_verdict::closing:
        if (hold_for_next(message))
          return;
        break;
      case local_verdict::absent: send_known(std::move(message)); return;
    }
  }
}

// -- elsewhere ------------------------------------------------------------------------------------------------------------

/// By a route that is known, else behind a look into the store.
void outbound::send_known(submission&& message) {
  if (const auto route = routes.cache.find(message.id(), host_.time->now()))
    if (auto link = link_to(route->mesh_name, route->node_rid)) {
      const auto* intent = message.intent();
      send_by_link(std::move(message), *link, route.get(), intent, nullptr);
      return;
    }
  begin_resolving(std::move(message));
}

bool outbound::try_known(record* r, std::string_view id, const instance_intent* intent) {
  const auto route = routes.cache.find(id, host_.time->now());
  const auto link = route ? link_to(route->mesh_name, route->node_rid) : nullptr;
  if (!link)
    return false;
  try {
    return link->try_send(r, header_for(id, route.get(), intent, nullptr)) == admission::admitted;
  } catch (...) {
    return false; // it has no encoding: told where the call ends
  }
}

counted_ptr<link_session> outbound::link_to(std::string_view mesh_name, std::string_view rid) {
  auto* node = host_.find_node(mesh_name);
  return node == nullptr || node->links == nullptr ? nullptr : node->links->ready_link(rid);
}

/// Its views are parts of what it is made from.
message_header outbound::header_for(std::string_view id, const object_route* route, const instance_intent* intent,
                                    const placement::descriptor_record* target) const {
  message_header header;
  header.target = is_actor_address(id) ? target_kind::actor : target_kind::spot;
  header.target_id = id_in(id);
  header.operation = host_.random->next_id();
  if (route != nullptr)
    header.fence = message_fence{route->object, route->authority, 0, route->exact};
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
      part.refused = intent->refused.encoded();
    }
  }
  return header;
}

void outbound::send_by_link(submission&& message, link_session& link, const object_route* route,
                            const instance_intent* intent, const placement::descriptor_record* target) {
  // Here a request waits for room no longer than a send does; in a lane it has all its time.
  const auto due = std::min(message.room_due(), host_.time->now() + host_.default_send_timeout());
  auto* r = message.take();
  const auto header = header_for(message.id(), route, intent, target);
  if (r->kind == record_kind::request && !r->from_link && (route != nullptr || intent != nullptr))
    r->reply = {new route_watch{*this, message.id(), header.fence, link.peer().rid, r->reply}, 0};
  link.send(r, header, due, message.operation());
}

void outbound::submit_along(submission message, const object_route& route) {
  auto* node = host_.find_node(route.mesh_name);
  if (node != nullptr && node->rid() == route.node_rid) { // as one that another node sent by that route
    message.arrive({node, &node->identity.node_rid, message_fence{route.object, route.authority, 0, route.exact}});
    accept_remote(std::move(message));
    return;
  }
  auto link = link_to(route.mesh_name, route.node_rid);
  if (link)
    send_by_link(std::move(message), *link, &route, nullptr, nullptr);
  else
    message.fail({error_kind::unavailable, "no link to node \"" + route.node_rid + "\", where " + described(message.id()) + " is"});
}

void outbound::send_after(submission message, node_runtime& from, const std::string& rid, const message_fence& past) {
  const auto link = from.links->ready_link(rid);
  if (!link) {
    message.fail({error_kind::unavailable, described(message.id()) + " has moved to node \"" + rid + "\", and there is no link to it"});
    return;
  }
  const auto due = std::min(message.room_due(), host_.time->now() + from.settings.send_timeout);
  const auto* intent = message.intent();
  auto* r = message.take();
  give_back_permit(*r); // it is no job of this host, and may wait for room on the way to another one
  auto header = header_for(message.id(), nullptr, intent, nullptr);
  header.fence = past;
  link->send(r, header, due, message.operation());
}

void outbound::route_failed(const std::string& id, const message_fence& fence) {
  const auto known = routes.cache.find(id, host_.time->now());
  if (!known || known->object != fence.object || known->authority != fence.authority)
    return;
  routes.cache.erase(id, fence.object, fence.authority);
  // Other messages may be on their way there, and one of them may wake the Spot: if it is missing, the next go there too.
  host_.infra->post([this, id, mesh = known->mesh_name, rid = known->node_rid] {
    const auto* node = host_.find_node(mesh);
    const auto live = node == nullptr ? std::nullopt : node->peers_known->find(rid);
    if (live)
      note_placement(id, {mesh, {}, rid, live->descriptor->node.lifecycle, {}});
  });
}

void outbound::note_placement(const std::string& id, placements::target where) {
  const auto now = host_.time->now();
  where.until = now + 3 * host_.find_node(where.mesh)->settings.send_timeout;
  placed_.put(id, std::move(where), now);
}

void outbound::placement_ended(const std::string& id, const std::string& node_rid) {
  host_.infra->post([this, id, node_rid] { placed_.forget(id, node_rid); });
}

} // namespace zlink::detail
