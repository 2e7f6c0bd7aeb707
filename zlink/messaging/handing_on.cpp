// Messages for a Spot that this node cannot have: for want of room, or because the host ends. They go in line for another
// node, before all that come after them (C-41, C-117).
#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/outbound.hpp"

namespace zlink::detail {

void outbound::hold_line(const std::string& id) {
  auto& part = shard_of(id);
  std::lock_guard guard{part.mutex};
  auto [place, first] = part.waiting.try_emplace(id);
  ++place->second.holds;
  if (first)
    resolving_.fetch_add(1, std::memory_order_acq_rel);
}

bool outbound::is_held(const std::string& id) const {
  if (resolving_.load(std::memory_order_acquire) == 0)
    return false;
  auto& part = shard_of(id);
  std::lock_guard guard{part.mutex};
  const auto i = part.waiting.find(id);
  return i != part.waiting.end() && i->second.holds != 0;
}

void outbound::release_line(const spot_object& object, std::vector<submission> messages) {
  {
    auto& part = shard_of(object.id());
    std::lock_guard guard{part.mutex};
    --part.waiting.at(object.id()).holds;
  }
  hand_on(object, std::move(messages));
}

void outbound::hand_on(const spot_object& object, std::vector<submission> messages) {
  for (auto& message : messages)
    choose_again(message, object.factory().type, object.home_node());
  if (!messages.empty())
    note_handed_on(object);
  hand_over(object.id(), std::move(messages));
}

submission outbound::taken_back(record* r, const spot_object& object, const refused_nodes& refused) {
  auto intent = std::make_unique<instance_intent>();
  intent->type = object.factory().type;
  intent->mesh = object.home_node().mesh_name;
  intent->refused = refused;
  const auto due = r->deadline != steady_time{} ? r->deadline : host_.time->now() + object.home_node().request_timeout;
  submission message{r, object.id(), std::move(intent), nullptr, due};
  if (r->from_link)
    message.arrive({host_.find_node(object.home_node().mesh_name), nullptr, std::nullopt});
  return message;
}

/// This node has sent others of this id on, the store does not show yet where they are.
bool outbound::follows_others(submission& message) {
  const auto type = handed_on_.find(message.id(), host_.time->now());
  if (!type)
    return false;
  choose_again(message, *type, message.arrived()->node->home);
  begin_resolving(std::move(message));
  return true;
}

/// From now on the message is this node's own, and the reply to another node's request comes by here.
void outbound::choose_again(submission& message, const std::string& type, const object_home& here) {
  auto* r = message.peek();
  message.choose_again(type, here.mesh_name, message.arrived() == nullptr ? r->reply : relay(message.id(), r->reply));
  message.refused_by(here.node_rid);
}

void outbound::following_ended(const std::string& id) {
  handed_on_.erase(id);
  host_.infra->post([this, id] { placed_.forget(id); });
}

void outbound::note_handed_on(const spot_object& object) {
  handed_on_.put(object.id(), object.factory().type, host_.time->now(), object.home_node().send_timeout);
}

} // namespace zlink::detail
