// Where sends wait that found no room in a lane (D-3). Execution only tells when room appears.
#pragma once

namespace zlink::detail {

class execution_object;

class waiting_room {
public:
  /// A reservation of `object` returned while its waiter bit was set. Called inside a turn of its gate.
  virtual void room_in(execution_object& object) noexcept = 0;

protected:
  ~waiting_room() = default;
};

} // namespace zlink::detail
