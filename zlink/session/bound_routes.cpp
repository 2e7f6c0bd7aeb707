#include "zlink/session/bound_routes.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/control_frames.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/messaging/mesh_links.hpp"
#include "zlink/placement/object_address.hpp"

namespace zlink::detail {

namespace {

constexpr const char* seal_timeout = "relocation_seal_timeout";

} // namespace

void bound_routes::bind(const std::string& actor_id, session_binding binding, object_route route,
                        std::shared_ptr<session_connection> connection) {
  auto one = std::make_shared<bound_route>();
  one->binding = std::move(binding);
  one->at = std::move(route);
  one->at.exact = true;
  one->connection = std::move(connection);
  auto& place = routes_[{one->binding.session_id, actor_id}];
  const auto former = std::exchange(place, std::move(one));
  if (former)
    end(*former, "it was bound anew");
}

void bound_routes::end_session(const std::string& session_id) {
  std::vector<std::shared_ptr<bound_route>> ended;
  for (auto i = routes_.lower_bound({session_id, {}}); i != routes_.end() && i->first.first == session_id; i = routes_.erase(i))
    ended.push_back(std::move(i->second));
  for (const auto& one : ended)
    end(*one, "the session has ended");
}

std::optional<actor_ref> bound_routes::ref(const std::string& session_id, const std::string& actor_id) const {
  const auto i = routes_.find({session_id, actor_id});
  if (i == routes_.end())
    return std::nullopt;
  const auto& at = i->second->at;
  return actor_ref{actor_id, at.object.value, at.mesh_name, at.node_rid};
}

void bound_routes::relay(const std::string& session_id, const std::string& actor_id, submission message) {
  const auto i = routes_.find({session_id, actor_id});
  if (i == routes_.end()) {
    message.fail({error_kind::invalid_operation, described(message.id()) + " is not bound to session \"" + session_id + '"'});
    return;
  }
  const auto one = i->second; // a message that fails at once may end the session
  if (one->sealed || one->letting_go)
    one->held.push_back(std::move(message));
  else
    host_.messages.submit_along(std::move(message), one->at);
}

// -- the seal ---------------------------------------------------------------------------------------------------------

std::shared_ptr<bound_routes::bound_route> bound_routes::find(const session_binding& binding, const std::string& actor_id,
                                                              std::uint64_t generation) const {
  const auto i = routes_.find({binding.session_id, actor_id});
  const bool same = i != routes_.end() && i->second->binding == binding && i->second->at.object.value == generation;
  return same ? i->second : nullptr;
}

/// What was relayed before has left by the same link as the answer, which therefore does not overtake it (N-126).
seal_answer bound_routes::seal(const seal_question& asked) {
  const auto one = find(asked.binding, asked.actor_id, asked.generation);
  const unique_id move{asked.move_high, asked.move_low};
  if (!one)
    return seal_answer::absent;
  if (one->sealed)
    return one->sealed->move == move ? seal_answer::installed : seal_answer::contended;
  one->sealed = {move, ++seals_};
  host_.infra->post_after(host_.options.session_relocation_seal_timeout,
                          [this, actor_id = asked.actor_id, weak = std::weak_ptr{one}, number = seals_] {
                            if (const auto late = weak.lock())
                              seal_expired(actor_id, late, number);
                          });
  return seal_answer::installed;
}

/// Nobody said where the Actor is by now: the client connects and binds anew. The Actor itself is untouched (L-173, N-142).
void bound_routes::seal_expired(const std::string& actor_id, const std::shared_ptr<bound_route>& one, std::uint64_t number) {
  const auto i = routes_.find({one->binding.session_id, actor_id});
  if (i == routes_.end() || i->second != one || !one->sealed || one->sealed->number != number)
    return;
  routes_.erase(i);
  end(*one, seal_timeout);
  one->connection->close(seal_timeout);
}

void bound_routes::route(const session_route& told, unique_id move) {
  const auto one = find(told.binding, told.actor_id, told.generation);
  if (!one || !one->sealed || one->sealed->move != move) {
    trace_record late;
    late.category = trace_category::actor_relocation;
    late.event = "late_session_route_update";
    late.mesh_name = told.mesh_name;
    late.node_rid = told.node_rid;
    late.actor_id = told.actor_id;
    late.object_generation = told.generation;
    host_.trace(late);
    return;
  }
  if (told.action == static_cast<std::uint8_t>(session_route_action::commit)) {
    one->at.mesh_name = told.mesh_name;
    one->at.node_rid = told.node_rid;
    one->at.authority = {told.authority};
  }
  one->sealed.reset();
  let_go(*one);
}

/// Held messages come before all that the client sends from now on (N-135). A sealed route keeps the rest.
void bound_routes::let_go(bound_route& one) {
  one.letting_go = true;
  while (!one.held.empty() && !one.sealed) {
    auto next = std::move(one.held.front());
    one.held.pop_front();
    if (next.expired(host_.time->now()))
      next.fail({error_kind::deadline_exceeded, "its time was over before " + described(next.id()) + " had moved"});
    else
      host_.messages.submit_along(std::move(next), one.at);
  }
  one.letting_go = false;
}

void bound_routes::end(bound_route& one, const std::string& why) {
  one.sealed.reset();
  for (auto& message : std::exchange(one.held, {}))
    message.fail({error_kind::unavailable, "session \"" + one.binding.session_id + "\" and " + described(message.id()) + ": " + why});
}

void bound_routes::send(node_runtime& from, const session_route& told, unique_id move) {
  if (told.binding.owner_rid == from.rid())
    route(told, move);
  else if (const auto link = from.links->ready_link(told.binding.owner_rid))
    link->send_control(static_cast<std::uint16_t>(control_command::session_relocation_route),
                       encode(control_envelope{move.high, move.low, encode(told)}));
}

} // namespace zlink::detail
