// What a session owner knows of the Actors that are bound to its sessions: where each of them is, and what is held while one of
// them moves (N-88, N-123 to N-145). It chooses no target, judges no move and reads no store (N-124).
#pragma once

#include "zlink/messaging/resolver.hpp"
#include "zlink/messaging/submission.hpp"
#include "zlink/session/session_frames.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace zlink::detail {

class host_runtime;
class node_runtime;

/// The physical side of a session.
class session_connection {
public:
  virtual ~session_connection() = default;
  /// The layer ends the session, for the reason that `diagnostic` names (N-64). Inside the infrastructure unit, once.
  virtual void close(const std::string& diagnostic) = 0;
};

/// Everything happens inside the infrastructure unit: that is the one serial place in which a seal, its timeout, command 44 and
/// the messages of the client meet (L-172, N-141).
class bound_routes {
public:
  explicit bound_routes(host_runtime& host) noexcept : host_(host) {}
  bound_routes(const bound_routes&) = delete;
  bound_routes& operator=(const bound_routes&) = delete;

  /// The Actor, which lives where `route` says, belongs to that session of this host from now on, in place of a binding that the
  /// two had before.
  void bind(const std::string& actor_id, session_binding binding, object_route route, std::shared_ptr<session_connection> connection);
  /// The session has ended: whatever is held for it ends `Unavailable`.
  void end_session(const std::string& session_id);
  /// Where the Actor is, as far as this session knows (N-85); nothing: it is not bound.
  std::optional<actor_ref> ref(const std::string& session_id, const std::string& actor_id) const;
  /// A message of the client, straight to the Actor: by the stored route, behind what is held for it, never by the store (N-86,
  /// N-88, N-128).
  void relay(const std::string& session_id, const std::string& actor_id, submission message);

  /// A move asks for its seal. The same move may ask again.
  seal_answer seal(const seal_question& asked);
  /// Command 44. What does not fit to a seal that is there changes nothing, and is noted (N-134, N-140).
  void route(const session_route& told, unique_id move);
  /// Command 44, on its way to the session owner, which may be this host. Once, and nobody answers (N-132).
  void send(node_runtime& from, const session_route& told, unique_id move);

private:
  struct seal_state {
    unique_id move;
    std::uint64_t number = 0;
  };
  struct bound_route {
    session_binding binding;
    object_route at;
    std::shared_ptr<session_connection> connection;
    std::optional<seal_state> sealed;
    std::deque<submission> held;
    bool letting_go = false; ///< held messages are on their way: who comes meanwhile comes behind them
  };
  using key = std::pair<std::string, std::string>; ///< session, Actor

  std::shared_ptr<bound_route> find(const session_binding& binding, const std::string& actor_id, std::uint64_t generation) const;
  void let_go(bound_route& one);
  void end(bound_route& one, const std::string& why);
  void seal_expired(const std::string& actor_id, const std::shared_ptr<bound_route>& one, std::uint64_t number);

  host_runtime& host_;
  std::map<key, std::shared_ptr<bound_route>> routes_;
  std::uint64_t seals_ = 0; ///< so many have been installed
};

} // namespace zlink::detail
