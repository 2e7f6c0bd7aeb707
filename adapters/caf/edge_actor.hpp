// An actor that is never scheduled: what it gets is handled on the middleman's thread, one message at a time.
#pragma once

#include <caf/actor_control_block.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/monitorable_actor.hpp>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace caf {
class actor_system;
}
namespace caf::io::network {
class multiplexer;
}

namespace zlink::detail {

/// Handles messages of one edge actor; on the middleman's thread.
class edge_handler {
public:
  virtual ~edge_handler() = default;
  virtual void on_message(caf::mailbox_element& element) = 0;
};

class edge_actor final : public caf::monitorable_actor {
public:
  edge_actor(caf::actor_config& config, caf::io::network::multiplexer& backend);

  /// A new actor whose messages go to `handler` while it lives. Messages of the same sender keep their order.
  static caf::strong_actor_ptr make(caf::actor_system& system, std::shared_ptr<edge_handler> handler);
  /// Ends it: those who monitor it are told, what is still waiting is dropped. Any thread, any number of times.
  static void end(const caf::strong_actor_ptr& self);

  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* host) override;
  const char* name() const override { return "zlink.edge"; }

private:
  void handle(caf::mailbox_element& element);
  void drain();

  caf::io::network::multiplexer& backend_;
  std::mutex mutex_;
  std::shared_ptr<edge_handler> handler_; ///< null once ended
  std::deque<caf::mailbox_element_ptr> waiting_;
  bool draining_ = false;                 ///< a drain is posted or at work
};

/// Tells `observer` by a `down_msg` when `observed` ends or its node is lost.
void monitor(const caf::strong_actor_ptr& observed, const caf::strong_actor_ptr& observer);

} // namespace zlink::detail
