// The CAF actor that an object is to the rest of CAF: `self()` in its turns, the sender of what it sends, the thing that
// monitors and links. Made on demand, never scheduled by CAF (D-16).
#pragma once

#include "zlink/caf/compat.hpp"
#include "zlink/caf/reply_port.hpp"
#include "zlink/execution/execution_object.hpp"

#include <caf/event_based_actor.hpp>

namespace zlink::detail {

class face_actor;

class face_port {
public:
  explicit face_port(execution_object& object);
  ~face_port();
  face_port(const face_port&) = delete;
  face_port& operator=(const face_port&) = delete;

  /// The actor, ready for use in the current turn.
  caf::event_based_actor* actor();
  /// A response, down or exit message that CAF delivered: its callback runs now.
  void consume(record& r);
  /// Bounces later requests, tells monitors and links. Inside the last turn.
  void close() noexcept;

private:
  friend class face_request;

  execution_object& object_;
  caf::strong_actor_ptr handle_;
  caf::strong_actor_ptr port_; ///< armed for the next request, re-used until a handler takes it
  turn_element element_;
};

/// Makes the served record visible as CAF's current message while alive.
class face_request {
public:
  face_request(face_port& face, record& r);
  ~face_request();
  /// A promise or delegate took the sender: the request is parked until this is answered. Else null.
  counted_ptr<late_answer> taken() const noexcept { return face_.element_.sender == nullptr ? answer_ : nullptr; }

private:
  face_port& face_;
  counted_ptr<late_answer> answer_; ///< null for a one-way message
};

} // namespace zlink::detail
