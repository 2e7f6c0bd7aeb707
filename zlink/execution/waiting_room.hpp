// Where sends wait that found no room in a lane (D-3). Execution only tells when room appears.
#pragma once

namespace zlink::detail {

class execution_object;
struct record;

class waiting_room {
public:
  /// A reservation of `object` returned while its waiter bit was set. Called inside a turn of its gate.
  virtual void room_in(execution_object& object) noexcept = 0;
  /// A record that found no room and belongs to no call: a request waits until its deadline, a one-way message as long as
  /// sends of that node do (D-3, X-94). Any thread.
  virtual void wait_for_room(execution_object& object, record* r) = 0;

protected:
  ~waiting_room() = default;
};

} // namespace zlink::detail
