#include "adapters/caf/edge_actor.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_config.hpp>
#include <caf/actor_system.hpp>
#include <caf/default_attachable.hpp>
#include <caf/exit_reason.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/network/multiplexer.hpp>
#include <caf/make_actor.hpp>

#include <utility>

namespace zlink::detail {

edge_actor::edge_actor(caf::actor_config& config, caf::io::network::multiplexer& backend)
  : caf::monitorable_actor(config), backend_(backend) {}

caf::strong_actor_ptr edge_actor::make(caf::actor_system& system, std::shared_ptr<edge_handler> handler) {
  caf::actor_config config;
  auto& backend = system.middleman().backend();
  auto made = caf::make_actor<edge_actor, caf::strong_actor_ptr>(system.next_actor_id(), system.node(), &system, config,
                                                                 backend);
  static_cast<edge_actor*>(made->get())->handler_ = std::move(handler);
  return made;
}

void edge_actor::end(const caf::strong_actor_ptr& self) {
  auto& actor = *static_cast<edge_actor*>(self->get());
  std::shared_ptr<edge_handler> let_go;
  std::deque<caf::mailbox_element_ptr> dropped;
  {
    std::lock_guard guard{actor.mutex_};
    let_go = std::move(actor.handler_);
    actor.handler_ = nullptr;
    dropped.swap(actor.waiting_);
  }
  actor.cleanup(caf::exit_reason::normal, nullptr);
}

void edge_actor::enqueue(caf::mailbox_element_ptr what, caf::execution_unit* host) {
  {
    std::lock_guard guard{mutex_};
    if (handler_ == nullptr)
      return;
    // On the middleman's thread, from its remoting: handled at once, unless something is ahead.
    if (draining_ || host != static_cast<caf::execution_unit*>(&backend_)) {
      waiting_.push_back(std::move(what));
      if (std::exchange(draining_, true))
        return;
      backend_.post([self = caf::strong_actor_ptr{ctrl()}] { static_cast<edge_actor*>(self->get())->drain(); });
      return;
    }
  }
  handle(*what);
}

void edge_actor::handle(caf::mailbox_element& element) {
  std::shared_ptr<edge_handler> handler;
  {
    std::lock_guard guard{mutex_};
    handler = handler_;
  }
  if (handler)
    handler->on_message(element);
}

void edge_actor::drain() {
  std::deque<caf::mailbox_element_ptr> batch;
  {
    std::lock_guard guard{mutex_};
    batch.swap(waiting_);
  }
  for (auto& element : batch)
    handle(*element);
  std::lock_guard guard{mutex_};
  draining_ = !waiting_.empty();
  if (draining_)
    backend_.post([self = caf::strong_actor_ptr{ctrl()}] { static_cast<edge_actor*>(self->get())->drain(); });
}

void monitor(const caf::strong_actor_ptr& observed, const caf::strong_actor_ptr& observer) {
  observed->get()->attach(caf::default_attachable::make_monitor(caf::actor_cast<caf::actor_addr>(observed),
                                                                caf::actor_cast<caf::actor_addr>(observer)));
}

} // namespace zlink::detail
