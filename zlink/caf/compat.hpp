// Differences between the CAF versions this library builds with stand here and, for the inspector, in packet.hpp.
#pragma once

#include <caf/config.hpp>

#include <caf/abstract_actor.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/actor_system.hpp>
#include <caf/error.hpp>
#include <caf/execution_unit.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/make_message.hpp>
#include <caf/message.hpp>
#include <caf/resumable.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#if CAF_MAJOR_VERSION >= 1
#error "ZLink is built for CAF 0.17.6 (Debian's libcaf-dev); newer versions need their branch in zlink/caf/compat.hpp"
#endif

namespace caf {

/// CAF 0.17 cannot inspect std::optional, our packets may hold one: presence flag, then the value.
template <class Inspector, class T>
typename Inspector::result_type inspect(Inspector& f, std::optional<T>& x) {
  bool present = x.has_value();
  if constexpr (Inspector::writes_state) {
    if (auto failed = f(present))
      return failed;
    if (!present) {
      x.reset();
      return none;
    }
    return f(x.emplace());
  } else {
    return present ? f(present, *x) : f(present);
  }
}

/// Byte vectors of packets as one block; CAF's element-wise way also draws warnings from g++ 12.
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, std::vector<std::byte>& x) {
  if constexpr (Inspector::writes_state) {
    std::string text;
    if (auto failed = f(text))
      return failed;
    const auto* first = reinterpret_cast<const std::byte*>(text.data());
    x.assign(first, first + text.size());
    return none;
  } else {
    std::string text(reinterpret_cast<const char*>(x.data()), x.size());
    return f(text);
  }
}

} // namespace caf

namespace zlink::detail {

/// Hands `job` to CAF's scheduler; from inside one of its workers to that worker's own queue.
inline void schedule(caf::actor_system& system, caf::resumable* job, caf::execution_unit* here) {
  if (here != nullptr)
    here->exec_later(job);
  else
    system.scheduler().enqueue(job);
}

/// A mailbox element that lives in a gate and is only ever a view for `current_mailbox_element()`.
struct turn_element final : caf::mailbox_element {
  caf::message held;
  caf::type_erased_tuple& content() override { return held; }
  const caf::type_erased_tuple& content() const override { return held; }
  caf::message move_content_to_message() override { return std::move(held); }
  caf::message copy_content_to_message() const override { return held; }
};

inline std::string text_of(const caf::error& what) { return caf::to_string(what); }

} // namespace zlink::detail
