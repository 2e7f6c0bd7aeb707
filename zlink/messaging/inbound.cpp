// Messages that came by a link: to their Spot, their node, or back with the reason why not (M-63, M-64, X-86).
#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/control_frames.hpp"
#include "zlink/messaging/mesh_links.hpp"
#include "zlink/messaging/outbound.hpp"
#include "zlink/messaging/wire.hpp"

namespace zlink::detail {

submission outbound::arrived(record* r, const message_header& header, node_runtime& node, const std::string& source) {
  std::unique_ptr<instance_intent> intent;
  if (header.instance_intent) {
    intent = std::make_unique<instance_intent>();
    if (header.activation) {
      intent->type = std::string{header.activation->stable_type};
      intent->mesh = std::string{header.activation->mesh};
      intent->refused = refused_nodes{header.activation->refused};
    }
  }
  const auto due = r->deadline != steady_time{} ? r->deadline : host_.time->now() + node.settings.request_timeout;
  const bool actor = header.target == target_kind::actor;
  submission message{r, actor ? actor_address(header.target_id) : std::string{header.target_id}, std::move(intent), nullptr, due};
  message.arrive({&node, &source, header.fence});
  return message;
}

void outbound::deliver(record* r, const message_header& header, node_runtime& node, const std::string& source) {
  switch (header.target) {
    case target_kind::spot:
    case target_kind::actor: accept_remote(arrived(r, header, node, source)); return;
    case target_kind::node: accept_for_node(r, header.target_id, node); return;
    case target_kind::channel: accept_for_channel(r, header.target_id, node); return;
    case target_kind::publish: accept_event(r, header, node); return;
    default: refuse_record(r, {error_kind::protocol_error, "this node does not serve that kind of target"});
  }
}

void outbound::accept_for_node(record* r, std::string_view rid, node_runtime& node) {
  if (rid != node.identity.node_rid || node.settings.role == placement::object_role::client)
    refuse_record(r, {error_kind::not_found, "this node takes no node-direct messages"});
  else if (auto why = host_.refuse(host_work::node_message))
    refuse_record(r, std::move(*why));
  else
    node.handlers.accept(r);
}

void outbound::accept_for_channel(record* r, std::string_view channel, node_runtime& node) {
  const auto* membership = node.channels.find(channel);
  if (membership == nullptr || !membership->server()) {
    refuse_record(r, {error_kind::not_found, "this node does not serve channel \"" + std::string{channel} + '"'});
  } else if (auto why = host_.refuse(host_work::node_message)) {
    refuse_record(r, std::move(*why));
  } else {
    r->more().channel = channel;
    membership->handlers->accept(r);
  }
}

void outbound::accept_event(record* r, const message_header& header, node_runtime& node) {
  const auto* membership = node.channels.find(header.target_id);
  if (membership == nullptr || !membership->server())
    refuse_record(r, {error_kind::not_found, "this node does not serve channel \"" + std::string{header.target_id} + '"'});
  else if (auto why = host_.refuse(host_work::node_message))
    refuse_record(r, std::move(*why));
  else if (r->kind != record_kind::send)
    refuse_record(r, {error_kind::protocol_error, "an event is not answered"});
  else
    host_.events.arrived(r, header.target_id, header.topic, node);
}

void outbound::accept_remote(submission message) {
  for (;;) {
    auto refused = host_.refuse(host_work::object_message);
    if (!refused)
      refused = host_.refuse_owned_work(); // on arrival, not only when its turn begins: nothing is queued for later (S-41, S-46)
    if (refused) {
      refuse_arrived(std::move(message), local_verdict::refused, std::move(refused));
      return;
    }
    if (queue_behind(message)) // for a Spot that is on its way: what came before waits there
      return;
    std::optional<error> why;
    const auto verdict = deliver_here(message, why);
    switch (verdict) {
      case local_verdict::admitted:
      case local_verdict::elsewhere: return;
      case local_verdict::no_room:
      case local_verdict::same_gate:
      case local_verdict::refused:
      case local_verdict::stale: refuse_arrived(std::move(message), verdict, std::move(why)); return;
      case local_verdict::closing:
        if (hold_for_next(message))
          return;
        continue;
      case local_verdict::absent: break;
    }
    const auto* intent = message.intent();
    if (intent == nullptr) {
      refuse_arrived(std::move(message), verdict, std::nullopt);
      return;
    }
    if (follows_others(message))
      return;
    if (auto elsewhere = host_.refuse(host_work::placement_here)) {
      refuse_arrived(std::move(message), local_verdict::refused, std::move(elsewhere));
      return;
    }
    auto& node = *message.arrived()->node;
    const auto* factory = intent->type ? node.find_factory(spot_kind::instance, *intent->type) : nullptr;
    if (factory == nullptr) {
      refuse_arrived(std::move(message), verdict,
                     error{error_kind::not_found, "this node does not register the instance spot type"});
      return;
    }
    auto* r = message.take();
    std::optional<error> unencodable;
    const auto begun = host_.activations.begin(node, *factory, message.id(), r, {{}, intent->refused}, unencodable);
    if (begun == activation::begun::yes)
      return;
    message.put_back(r);
    if (begun == activation::begun::unencodable) {
      refuse_arrived(std::move(message), local_verdict::refused, std::move(unencodable));
      return;
    }
  }
}

void outbound::deliver_followed(record* r, const std::string& address, node_runtime& node, const std::string& source,
                                const message_fence& past) {
  const auto due = r->deadline != steady_time{} ? r->deadline : host_.time->now() + node.settings.request_timeout;
  submission message{r, address, nullptr, nullptr, due};
  message.arrive({&node, &source, past});
  accept_remote(std::move(message));
}

/// The message of another node, or of this one, does not run here. Who sent it by a route that leads nowhere is told, so
/// that nothing else takes it (M-82).
void outbound::refuse_arrived(submission message, local_verdict verdict, std::optional<error> why) {
  const auto* from = message.arrived();
  const bool fenced = from != nullptr && from->fence.has_value();
  if (!why) {
    // The sender's picture is outdated, or the Spot has ended: which of the two, its own next look tells.
    const bool elsewhere = fenced || host_.refuse(host_work::absent_object);
    why = elsewhere ? error{error_kind::unavailable, described(message.id()) + " is not here"} : missing_error(message.id());
  }
  const bool leads_nowhere = verdict == local_verdict::absent || verdict == local_verdict::stale || why->kind() == error_kind::shutting_down;
  if (message.peek()->kind != record_kind::request && fenced && leads_nowhere)
    if (auto link = from->node->links->ready_link(*from->source_rid)) {
      const stale_route told{std::string{id_in(message.id())}, from->fence->object.value, from->fence->authority.value,
                             is_actor_address(message.id())};
      link->send_control(static_cast<std::uint16_t>(control_command::stale_route), encode(control_envelope{0, 0, encode(told)}));
    }
  if (from == nullptr)
    message.fail(std::move(*why));
  else
    refuse_record(message.take(), std::move(*why));
}

/// What another node sent: a request is answered, a one-way message dropped and counted (M-142).
void outbound::refuse_record(record* r, error why) {
  if (r->kind != record_kind::request)
    host_.domain.counters.drop(drop_reason::refused);
  refuse(r, std::move(why));
}

bool outbound::try_to_node(record* r, const node_runtime& from, const std::string& rid) {
  if (from.links == nullptr || rid == from.identity.node_rid || !from.links->holds().empty())
    return false;
  const auto link = from.links->ready_link(rid);
  if (!link)
    return false;
  message_header header;
  header.target = target_kind::node;
  header.target_id = rid;
  header.operation = host_.random->next_id();
  try {
    return link->try_send(r, header) == admission::admitted;
  } catch (...) {
    return false; // it has no encoding: told where the call ends
  }
}

void outbound::submit_to_node(submission message, std::string mesh_name) {
  if (message.over()) {
    message.fail({error_kind::deadline_exceeded, "its call has ended"});
    return;
  }
  auto* node = host_.find_node(mesh_name);
  if (node == nullptr) {
    message.fail({error_kind::not_found, "this host has no node in mesh \"" + mesh_name + '"'});
    return;
  }
  if (message.id() == node->rid()) {
    if (node->settings.role == placement::object_role::client) {
      message.fail({error_kind::not_found, "an object client takes no node-direct messages"});
      return;
    }
    auto* r = message.take();
    admission_notice notice{*r};
    r->source_rid = &node->identity.node_rid;
    node->handlers.accept(r);
    return;
  }
  auto& holds = node->links->holds();
  if (holds.queue_behind(message))
    return;
  if (node->links->ready_link(message.id())) {
    send_to_ready_node(std::move(message), *node);
    return;
  }
  const std::string rid = message.id();
  if (!node->links->is_known(rid)) {
    message.fail({error_kind::not_found, "no node \"" + rid + "\" is known in mesh \"" + mesh_name + '"'});
    return;
  }
  holds.hold(std::move(message)); // known and not ready: wait up to the send timeout (M-89)
  if (node->links->ready_link(rid))
    holds.release(rid); // it became ready in between
}

void outbound::send_to_ready_node(submission message, node_runtime& from) {
  const std::string rid = message.id();
  if (message.over()) { // while it was held
    message.fail({error_kind::deadline_exceeded, "its call has ended"});
    return;
  }
  send_to_node(std::move(message), from, rid, target_kind::node);
}

void outbound::send_to_node(submission&& message, node_runtime& from, const std::string& rid, target_kind target) {
  const auto link = from.links->ready_link(rid);
  if (!link) {
    message.fail({error_kind::unavailable, "the link to node \"" + rid + "\" was lost"});
    return;
  }
  const auto due = message.room_due();
  auto* r = message.take();
  message_header header;
  header.target = target;
  header.target_id = message.id();
  header.operation = host_.random->next_id();
  link->send(r, header, due, message.operation());
}

void outbound::submit_to_channel(submission message) {
  const auto& channel = message.id();
  auto* node = host_.channel_node(channel);
  if (node == nullptr) {
    message.fail({error_kind::not_found, "no mesh node of this host takes part in channel \"" + channel + '"'});
    return;
  }
  auto why = no_member::none;
  const auto chosen = node->channels.select(channel, why);
  if (chosen)
    send_to_node(std::move(message), *node, *chosen, target_kind::channel);
  else if (why == no_member::excluded)
    message.fail({error_kind::unavailable, "all nodes that serve channel \"" + channel + "\" have weight 0 or are shutting down"});
  else if (node->channels.was_served(channel) || lists_server(*node, channel))
    message.fail({error_kind::unavailable, "no link to a node that serves channel \"" + channel + '"'});
  else
    message.fail({error_kind::not_found, "no node is known that serves channel \"" + channel + '"'});
}

/// Discovery shows another node that serves the channel, though there is no link to it yet.
bool outbound::lists_server(const node_runtime& from, std::string_view channel) const {
  if (!from.peers_known)
    return false;
  const auto known = from.peers_known->snapshot();
  return std::ranges::any_of(known->nodes(), [&](const placement::live_node& node) {
    const auto& d = *node.descriptor;
    return d.node != from.identity && std::ranges::any_of(d.channels, [&](const auto& c) { return c.channel == channel; });
  });
}

} // namespace zlink::detail
