// Invoking a `caf::behavior` from a record, every outcome observed (D-13).
#pragma once

#include "zlink/execution/record.hpp"

#include "zlink/caf/face.hpp"

#include <caf/behavior.hpp>

#include <cstdint>
#include <optional>

namespace zlink::detail {

class execution_object;

enum class behavior_outcome : std::uint8_t {
  done,     ///< the record's body is the reply
  parked,   ///< answered later through a promise or a delegate
  no_match,
};

/// One record on its way through a behaviour, inside a turn.
class behavior_call {
public:
  behavior_call(execution_object& object, record& r) noexcept : object_(object), record_(r) {}

  /// The object has a face: before `run`, or while it runs if the behaviour asks for `self()` for the first time. Without
  /// one there can be no promise.
  void use(face_port& face) { request_.emplace(face, record_); }
  /// Throws what the behaviour throws, unless it has made a promise before.
  behavior_outcome run(caf::behavior& behavior);
  /// After `parked`.
  counted_ptr<late_answer> answer() const noexcept { return request_->taken(); }

private:
  execution_object& object_;
  record& record_;
  std::optional<face_request> request_;
};

} // namespace zlink::detail
