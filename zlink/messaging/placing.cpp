// A message with intent for an id that nobody owns: which node shall make the Spot (C-38 to C-44, C-91, C-100).
#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/messaging/outbound.hpp"
#include "zlink/placement/candidates.hpp"

namespace zlink::detail {

namespace {

bool offers(const placement::descriptor_record& node, const std::string& instance_type) {
  return std::ranges::any_of(node.capabilities, [&](const placement::type_capability& c) {
    return c.kind == placement::object_kind::instance_spot && c.stable_type == instance_type;
  });
}

} // namespace

task<void> outbound::place_missing(const std::string& id, const resolution& found, submission message,
                                   std::deque<submission>& kept) {
  // An earlier message of this line may have begun an activation here.
  if (host_.objects.find(id)) {
    place_here(std::move(message), kept);
    co_return;
  }
  if (message.intent() == nullptr) {
    refuse_arrived(std::move(message), local_verdict::absent, std::nullopt);
    co_return;
  }
  auto chosen = node_of(message);
  if (auto* why = std::get_if<error>(&chosen)) {
    message.fail(std::move(*why));
    co_return;
  }
  auto& node = *std::get<node_runtime*>(chosen);
  const auto type = message.intent()->type;
  if (message.arrived() != nullptr && type && node.find_factory(spot_kind::instance, *type) != nullptr) {
    if (auto elsewhere = host_.refuse(host_work::placement_here)) {
      refuse_arrived(std::move(message), local_verdict::refused, std::move(elsewhere));
      co_return;
    }
    begin_here(id, found, node, *type, std::move(message), kept); // its sender has chosen this node
    co_return;
  }
  auto wanted = *message.intent();
  auto choosing = choose_target(id, node, wanted);
  auto target = co_await std::move(choosing);
  if (!target) {
    handed_on_.erase(id); // nobody is followed any more
    message.fail(target.error());
    co_return;
  }
  const auto& d = *target->descriptor;
  if (auto* own = host_.find_node(target->mesh); own != nullptr && own->rid() == d.node.node_rid) {
    begin_here(id, found, *own, target->type, std::move(message), kept);
    co_return;
  }
  auto link = link_to(target->mesh, d.node.node_rid);
  if (!link) {
    message.fail({error_kind::unavailable, "no link to the node chosen for spot \"" + id + '"'});
    co_return;
  }
  note_placement(id, {target->mesh, target->type, d.node.node_rid, d.node.lifecycle, {}});
  wanted.type = target->type;
  wanted.mesh = target->mesh;
  send_by_link(std::move(message), *link, nullptr, &wanted, &d);
}

std::variant<node_runtime*, error> outbound::node_of(const submission& message) {
  if (const auto* from = message.arrived())
    return from->node;
  return host_.node_for(message.intent()->mesh);
}

void outbound::begin_here(const std::string& id, const resolution& found, node_runtime& node, const std::string& type,
                          submission message, std::deque<submission>& kept) {
  const auto* factory = node.find_factory(spot_kind::instance, type);
  auto* r = message.take();
  std::optional<error> why;
  auto begun = activation::begun::yes;
  {
    admission_notice notice{*r};
    begun = host_.activations.begin(node, *factory, id, r, {found.seen, message.intent()->refused}, why);
    if (begun == activation::begun::yes)
      return;
    notice.put_back(*r);
  }
  message.put_back(r);
  if (begun == activation::begun::unencodable)
    message.fail(std::move(*why));
  else
    place_here(std::move(message), kept); // somebody was faster
}

task<result<outbound::chosen_target>> outbound::choose_target(const std::string& id, node_runtime& node,
                                                              const instance_intent& wanted) {
  const auto& type = wanted.type;
  auto refreshed = placement::refresh_outcome::unavailable;
  for (bool fresh = false;; fresh = true) {
    if (auto before = chosen_before(id, wanted.refused)) {
      if (before->type.empty() && type && offers(*before->descriptor, *type))
        before->type = *type;
      if (!before->type.empty())
        co_return std::move(*before);
    }
    const auto snapshot = node.peers_known->snapshot();
    auto choice = choose_among(*snapshot, node, wanted);
    if (choice)
      co_return choice;
    // Without an answer an old list does not show that nobody is there (S-68).
    if (fresh && refreshed == placement::refresh_outcome::unavailable && choice.error().kind() == error_kind::not_found)
      co_return error{error_kind::unavailable, "the Location Store does not tell which nodes there are"};
    if (fresh)
      co_return choice;
    auto refreshing = node.peers_known->refresh(); // nobody fits by what was known: look again before saying so
    refreshed = co_await std::move(refreshing);
  }
}

/// The node that an earlier message of this id went to, while it can still be used.
std::optional<outbound::chosen_target> outbound::chosen_before(const std::string& id, const refused_nodes& refused) {
  const auto* known = placed_.find(id, host_.time->now());
  auto* node = known == nullptr || refused.contains(known->node_rid) ? nullptr : host_.find_node(known->mesh);
  if (node == nullptr || !link_to(known->mesh, known->node_rid))
    return std::nullopt;
  const auto live = node->peers_known->find(known->node_rid);
  if (!live || live->descriptor->node.lifecycle != known->lifecycle
      || live->descriptor->state != placement::node_state::serving)
    return std::nullopt;
  return chosen_target{known->mesh, known->type, live->descriptor};
}

result<outbound::chosen_target> outbound::choose_among(const placement::directory_snapshot& snapshot,
                                                       node_runtime& node, const instance_intent& wanted) {
  const auto all = snapshot.candidates(host_.time->now());
  chosen_target target;
  target.mesh = node.mesh_name();
  if (wanted.type) {
    target.type = *wanted.type;
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
  wanted.refused.for_each([&](std::string_view rid) {
    if (const auto* known = snapshot.find(std::string{rid}))
      wish.excluded.push_back(known->descriptor->node);
  });
  if (host_.refuse(host_work::placement_here)) // what is known of this node may be older (C-38)
    wish.excluded.push_back(node.identity);
  for (;;) {
    auto choice = placement::choose_node(all, wish, *host_.random);
    if (const auto* none = std::get_if<placement::no_candidate>(&choice)) {
      if (target.descriptor)
        return target; // none of them is linked: the caller hears that
      if (auto why = host_.refuse(host_work::placement_away))
        return error{why->kind(), why->message() + ", and no other node can take its place"};
      return error{none->kind(), "instance spot type \"" + target.type + "\": " + placement::to_string(none->cause)};
    }
    const auto& chosen = std::get<const placement::descriptor_record*>(choice)->node;
    target.descriptor = snapshot.find(chosen.node_rid)->descriptor;
    if (chosen.node_rid == node.rid() || link_to(chosen.mesh_name, chosen.node_rid))
      return target;
    wish.excluded.push_back(chosen); // a link that is lost, or not there yet, is no reason to fail while there are others
  }
}

} // namespace zlink::detail
