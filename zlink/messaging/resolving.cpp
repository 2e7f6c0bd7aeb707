// The line of messages behind an id that is being looked up: the store is read, everything in line is placed in order, and
// what cannot be placed yet stays at the front while the store is read again (D-7, M-148).
#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/messaging/mesh_links.hpp"
#include "zlink/messaging/outbound.hpp"

namespace zlink::detail {

namespace {

/// Between two looks at an id whose messages have to wait for somebody else.
constexpr std::chrono::milliseconds look_again_after{5};
/// The same, where its owner cannot be reached.
constexpr std::chrono::milliseconds look_at_the_dead_after{100};

/// To a message of another node whose Spot is elsewhere. It is not passed on: what its sender sends next may go the
/// straight way, and would overtake it (M-82, C-100).
error not_here(const std::string& id) { return {error_kind::unavailable, described(id) + " is not here"}; }

/// Puts them before what is in line.
template <class Messages>
auto in_front(Messages& messages) {
  return [&messages](std::deque<submission>& line) {
    line.insert(line.begin(), std::make_move_iterator(messages.begin()), std::make_move_iterator(messages.end()));
  };
}

} // namespace

// -- the line -------------------------------------------------------------------------------------------------------------

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
  i->second.messages.push_back(std::move(message));
  return true;
}

/// `put` adds to the line of that id, which somebody looks up then.
template <class Put>
void outbound::put_in_line(const std::string& id, Put put) {
  {
    auto& part = shard_of(id);
    std::lock_guard guard{part.mutex};
    auto [place, first] = part.waiting.try_emplace(id);
    auto& line = place->second;
    put(line.messages);
    if (first)
      resolving_.fetch_add(1, std::memory_order_acq_rel);
    if (line.holds != 0 || std::exchange(line.looked_up, true))
      return;
  }
  look_up(id);
}

void outbound::begin_resolving(submission message) {
  const std::string id = message.id();
  put_in_line(id, [&message](auto& line) { line.push_back(std::move(message)); });
}

void outbound::hand_over(const std::string& id, std::vector<submission> messages) {
  put_in_line(id, in_front(messages));
}

void outbound::look_up(const std::string& id) {
  host_.infra->post([this, id] {
    start_coroutine(resolve_all(id), [this, id](result<void> ended) {
      if (!ended)
        drop_line(id, ended.error());
    });
  });
}

/// Whatever went wrong, the id is not blocked for ever.
void outbound::drop_line(const std::string& id, const error& why) {
  do {
    for (auto& message : take_waiting(id))
      message.fail({error_kind::internal_failure, described(id) + " could not be looked up: " + why.message()});
  } while (!end_resolving(id));
}

std::deque<submission> outbound::take_waiting(const std::string& id) {
  auto& part = shard_of(id);
  std::lock_guard guard{part.mutex};
  return std::exchange(part.waiting[id].messages, {});
}

bool outbound::end_resolving(const std::string& id) {
  auto& part = shard_of(id);
  std::lock_guard guard{part.mutex};
  const auto i = part.waiting.find(id);
  auto& line = i->second;
  if (!line.messages.empty())
    return false;
  line.looked_up = false;
  if (line.holds != 0)
    return true; // whoever holds it has it looked up
  part.waiting.erase(i);
  resolving_.fetch_sub(1, std::memory_order_acq_rel);
  return true;
}

task<void> outbound::resolve_all(std::string id) {
  do {
    auto resolving = routes.resolve(id);
    const auto found = co_await std::move(resolving);
    std::deque<submission> kept;
    auto placing = place_resolved(id, found, take_waiting(id), kept);
    co_await std::move(placing);
    if (!kept.empty()) {
      put_in_line(id, in_front(kept)); // which nobody else looks up meanwhile
      const bool unreachable = found.what == resolved::creating && !is_here(found.route) && !link_to(found.route.mesh_name, found.route.node_rid);
      if (unreachable) { // whoever makes it may be gone: then its reservation is in the way (C-79)
        auto releasing = host_.spots.release_if_dead(id, found.seen);
        co_await std::move(releasing);
      }
      host_.infra->post_after(unreachable ? look_at_the_dead_after : look_again_after, [this, id] { look_up(id); });
      co_return;
    }
  } while (!end_resolving(id));
}

// -- placing what is in line ------------------------------------------------------------------------------------------------

task<void> outbound::place_resolved(const std::string& id, const resolution& found, std::deque<submission> waiting,
                                    std::deque<submission>& kept) {
  const auto* row = placement::row_in(found.seen);
  if (found.what != resolved::missing && found.what != resolved::unknown)
    placed_.forget(id);
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
    const bool unborn = found.what == resolved::creating || found.what == resolved::closing;
    if (unborn && message.intent() == nullptr) {
      message.fail(missing_error(id));
      continue;
    }
    if (!kept.empty()) { // what has to wait keeps its place
      kept.push_back(std::move(message));
      continue;
    }
    switch (found.what) {
      case resolved::missing: {
        auto placing = place_missing(id, found, std::move(message), kept);
        co_await std::move(placing);
        break;
      }
      case resolved::creating: place_creating(found, std::move(message), kept); break;
      case resolved::closing:
      case resolved::ready:
      case resolved::entry: place_owned(found, std::move(message), kept); break;
      case resolved::unavailable:
        message.fail({error_kind::unavailable, described(id) + " cannot be used: " + found.why});
        break;
      case resolved::unknown: message.fail({found.kind, described(id) + ": " + found.why}); break;
    }
  }
}

bool outbound::is_here(const object_route& route) const {
  const auto* node = host_.find_node(route.mesh_name);
  return node != nullptr && node->rid() == route.node_rid;
}

/// It stays in line for the next look, as long as it may wait.
void outbound::keep(submission message, std::deque<submission>& kept) {
  if (host_.time->now() >= message.room_due())
    message.fail({error_kind::deadline_exceeded, described(message.id()) + " did not come to life in time"});
  else
    kept.push_back(std::move(message));
}

/// The store says that the Spot lives here, or that it is being made here.
void outbound::place_here(submission message, std::deque<submission>& kept) {
  std::optional<error> why;
  const auto verdict = deliver_here(message, why);
  switch (verdict) {
    case local_verdict::admitted:
    case local_verdict::elsewhere: return;
    case local_verdict::no_room: {
      const auto object = host_.objects.find_any(message.id());
      if (!object) {
        keep(std::move(message), kept);
        return;
      }
      host_.waiting->wait(*object, std::move(message));
      if (object->application_word().has(admission_word::sealed_bit)) // meanwhile
        for (auto& left : host_.waiting->take(*object))
          kept.push_back(std::move(left));
      return;
    }
    case local_verdict::closing:
      if (!hold_for_next(message))
        keep(std::move(message), kept);
      return;
    case local_verdict::same_gate:
    case local_verdict::refused:
    case local_verdict::stale: refuse_arrived(std::move(message), verdict, std::move(why)); return;
    case local_verdict::absent:
      if (message.may_look_again()) // it has gone since the store was read
        keep(std::move(message), kept);
      else
        message.fail({error_kind::unavailable, described(message.id()) + " is owned by this host but not here"});
  }
}

void outbound::place_owned(const resolution& found, submission message, std::deque<submission>& kept) {
  const auto& route = found.route;
  auto* node = host_.find_node(route.mesh_name);
  if (node != nullptr && node->rid() == route.node_rid) {
    place_here(std::move(message), kept);
    return;
  }
  if (found.what == resolved::entry && message.intent() != nullptr) {
    message.fail(*conflict(spot_kind::entry, {}, message.intent(), message.id()));
    return;
  }
  if (message.arrived() != nullptr) { // it has waited behind a message of this node, or else it had been sent on at once (L-180)
    std::optional<error> why;
    const auto verdict = deliver_here(message, why);
    if (verdict == local_verdict::admitted)
      return;
    if (!why)
      why = not_here(message.id());
    refuse_arrived(std::move(message), verdict, std::move(why));
    return;
  }
  auto link = link_to(route.mesh_name, route.node_rid);
  if (!link) {
    if (node != nullptr && node->links->is_coming(route.node_rid) && host_.time->now() < message.room_due()) {
      kept.push_back(std::move(message)); // as to the node itself (M-89)
      return;
    }
    message.fail({error_kind::unavailable, "no link to the owner of " + described(message.id()) + ", node \"" + route.node_rid + "\": not yet, or no more"});
    return;
  }
  if (found.what == resolved::ready)
    routes.cache.put(message.id(), route, host_.time->now());
  const auto* intent = message.intent();
  send_by_link(std::move(message), *link, found.what == resolved::entry ? nullptr : &route, intent, nullptr);
}

/// Somebody makes it: the message waits there, behind the one that woke it (C-90, C-99).
void outbound::place_creating(const resolution& found, submission message, std::deque<submission>& kept) {
  const auto& route = found.route;
  auto* node = host_.find_node(route.mesh_name);
  if (node != nullptr && node->rid() == route.node_rid) {
    place_here(std::move(message), kept);
    return;
  }
  if (message.arrived() != nullptr) {
    auto why = not_here(message.id());
    refuse_arrived(std::move(message), local_verdict::absent, std::move(why));
    return;
  }
  auto link = link_to(route.mesh_name, route.node_rid);
  if (!link) {
    keep(std::move(message), kept);
    return;
  }
  const instance_intent wanted{placement::row_in(found.seen)->stable_type, route.mesh_name};
  send_by_link(std::move(message), *link, nullptr, &wanted, nullptr);
}

} // namespace zlink::detail
