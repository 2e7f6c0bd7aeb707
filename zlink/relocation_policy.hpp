// How the state of a Spot or Actor travels in a live move.
#pragma once

#include "zlink/packet_type.hpp"
#include "zlink/task.hpp"

#include <stop_token>

namespace zlink {

/// Captures and restores the state of one Spot class. Shared by all objects of its factory, hence `const`; holds no state
/// of its own.
template <class TSpot>
class spot_adapter {
public:
  using spot_type = TSpot;
  virtual ~spot_adapter() = default;
  /// The state as bytes, possibly none.
  virtual task<bytes> capture(TSpot& from, std::stop_token cancel) const = 0;
  /// Into a fresh instance whose `on_initialize` has ended; has the last word.
  virtual task<void> restore(TSpot& into, byte_view state, std::stop_token cancel) const = 0;
};

/// As `spot_adapter`, for one Actor class.
template <class TActor>
class actor_adapter {
public:
  using actor_type = TActor;
  virtual ~actor_adapter() = default;
  virtual task<bytes> capture(TActor& from, std::stop_token cancel) const = 0;
  /// Into a fresh instance.
  virtual task<void> restore(TActor& into, byte_view state, std::stop_token cancel) const = 0;
};

} // namespace zlink
