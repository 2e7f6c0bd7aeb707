// Messages that came by a link: to their Spot, their node, or back with the reason why not (M-63, M-64, X-86).
#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/mesh_links.hpp"
#include "zlink/messaging/outbound.hpp"
#include "zlink/messaging/wire.hpp"

namespace zlink::detail {

namespace {

void refuse_target(record* r) {
  refuse(r, error{error_kind::protocol_error, "this node does not serve that kind of target"});
}

std::optional<instance_intent> intent_of(const message_header& header) {
  if (!header.instance_intent)
    return std::nullopt;
  instance_intent intent;
  if (header.activation && !header.activation->stable_type.empty())
    intent.type = std::string{header.activation->stable_type};
  if (header.activation && !header.activation->mesh.empty())
    intent.mesh = std::string{header.activation->mesh};
  return intent;
}

} // namespace

void outbound::deliver(record* r, const message_header& header, node_runtime& node) {
  if (header.target == target_kind::spot)
    accept_remote(r, std::string{header.target_id}, intent_of(header), header.fence.has_value(), node);
  else if (header.target == target_kind::node)
    accept_for_node(r, header.target_id, node);
  else
    refuse_target(r);
}

unique_function<void()> outbound::make_delivery(record* r, const message_header& header, node_runtime& node) {
  if (header.target == target_kind::node && header.target_id == node.identity.node_rid)
    return [this, r, &node] { accept_for_node(r, node.identity.node_rid, node); };
  std::string id{header.target_id};
  if (header.target == target_kind::node)
    return [this, r, id = std::move(id), &node] { accept_for_node(r, id, node); };
  if (header.target != target_kind::spot)
    return [r] { refuse_target(r); };
  return [this, r, id = std::move(id), intent = intent_of(header), fenced = header.fence.has_value(), &node]() mutable {
    accept_remote(r, id, std::move(intent), fenced, node);
  };
}

void outbound::accept_for_node(record* r, std::string_view rid, node_runtime& node) {
  if (rid != node.identity.node_rid || node.settings.role == placement::object_role::client)
    refuse(r, error{error_kind::not_found, "this node takes no node-direct messages"});
  else if (auto why = host_.refuse_arrival())
    refuse(r, std::move(*why));
  else
    node.handlers.accept(r);
}

void outbound::accept_remote(record* r, const std::string& id, std::optional<instance_intent> intent, bool fenced,
                             node_runtime& node) {
  auto why = host_.refuse_arrival();
  if (!why)
    why = host_.refuse_owned_work(); // on arrival, not only when its turn begins: nothing is queued for later (S-41, S-46)
  if (why) {
    refuse(r, std::move(*why));
    return;
  }
  const auto verdict = try_local(r, id, intent ? &*intent : nullptr, nullptr, why, true);
  switch (verdict) {
    case local_verdict::admitted: return;
    case local_verdict::refused:
      // The sender has seen it Ready, this host is about to open it: it waits for that, in its place (C-88).
      if (fenced && why->kind() == error_kind::not_found
          && host_.objects.deliver(id, r, true, true, [](spot_object&) { return true; }).verdict == admission::admitted)
        return;
      [[fallthrough]];
    case local_verdict::same_gate:
    case local_verdict::no_room: refuse(r, std::move(*why)); return;
    case local_verdict::closing: {
      submission held{r, id, std::make_unique<instance_intent>(std::move(*intent)), nullptr, r->deadline};
      if (auto object = host_.objects.find(id); object && host_.closings.hold(*object, std::move(held)))
        return;
      if (held.peek() != nullptr)
        retry_later(std::move(held));
      return;
    }
    case local_verdict::absent: break;
  }
  if (!intent) {
    // The sender's picture is outdated, or the Spot has ended: which of the two, its own next look tells (M-82).
    refuse(r, error{fenced ? error_kind::unavailable : error_kind::not_found, "spot \"" + id + "\" is not here"});
    return;
  }
  const auto* factory = intent->type ? node.find_factory(spot_kind::instance, *intent->type) : nullptr;
  if (factory == nullptr) {
    refuse(r, error{error_kind::not_found, "this node does not register the instance spot type"});
    return;
  }
  host_.activations.begin(node, *factory, id, r, std::nullopt);
}

bool outbound::try_to_node(record* r, const std::string& rid, std::string_view mesh_name) {
  auto* node = host_.find_node(mesh_name);
  if (node == nullptr || rid == node->identity.node_rid || !node->links->holds().empty())
    return false;
  const auto link = node->links->ready_link(rid);
  if (!link)
    return false;
  message_header header;
  header.target = target_kind::node;
  header.target_id = rid;
  header.operation = host_.random->next_id();
  try {
    return link->try_send(r, header) == admission::admitted;
  } catch (const std::exception&) {
    return false; // it has no encoding: told where the call ends
  }
}

void outbound::submit_to_node(submission message, std::string mesh_name) {
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
  const auto link = from.links->ready_link(rid);
  if (!link) {
    message.fail({error_kind::unavailable, "the link to node \"" + rid + "\" was lost"});
    return;
  }
  const auto due = message.room_due();
  auto* r = message.take();
  message_header header;
  header.target = target_kind::node;
  header.target_id = rid;
  header.operation = host_.random->next_id();
  link->send(r, header, due);
}

} // namespace zlink::detail
