// A one-shot CAF actor that stands as the sender of a request while a behaviour serves it. Whoever ends up with the promise
// answers it.
#pragma once

#include "zlink/execution/execution_object.hpp"

#include <caf/monitorable_actor.hpp>

#include <atomic>

namespace zlink::detail {

class reply_port final : public caf::monitorable_actor {
public:
  explicit reply_port(caf::actor_config& config) : caf::monitorable_actor(config) {}
  ~reply_port() override;

  /// From now on a response goes to the gate of `object`, for the request that is parked under the returned one.
  counted_ptr<late_answer> arm(execution_object& object) noexcept;
  /// The behaviour answered by itself.
  void disarm() noexcept;

  using caf::abstract_actor::enqueue;
  void enqueue(caf::mailbox_element_ptr element, caf::execution_unit* unit) override;
  void on_destroy() override;
  const char* name() const override { return "zlink.reply_port"; }

private:
  void answer(payload body) noexcept;

  counted_ptr<execution_object> object_;
  counted_ptr<late_answer> answer_;
  std::atomic<bool> armed_{false};
};

/// A fresh port; the reference is the only one.
caf::strong_actor_ptr make_reply_port(caf::actor_system& system);

} // namespace zlink::detail
