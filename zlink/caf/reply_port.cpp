#include "zlink/caf/reply_port.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/make_actor.hpp>

namespace zlink::detail {

reply_port::~reply_port() = default;

void reply_port::arm(execution_object& object, record* r) noexcept {
  object_ = counted_ptr<execution_object>::share(&object);
  record_.store(r, std::memory_order_release);
}

void reply_port::disarm() noexcept {
  record_.store(nullptr, std::memory_order_release);
  object_ = nullptr;
}

void reply_port::enqueue(caf::mailbox_element_ptr element, caf::execution_unit*) {
  if (!element->mid.is_response())
    return; // a message to the sender of a ZLink request: senders have no address (M-25)
  payload body;
  if (!element->content().empty())
    body.emplace<caf::message>(element->move_content_to_message());
  answer(std::move(body));
  cleanup(caf::exit_reason::normal, nullptr);
}

void reply_port::on_destroy() {
  payload body;
  body.emplace<error>(error_kind::internal_failure, "the behaviour dropped its response promise without an answer");
  answer(std::move(body));
  caf::monitorable_actor::on_destroy();
}

void reply_port::answer(payload body) noexcept {
  auto* request = record_.exchange(nullptr, std::memory_order_acq_rel);
  if (request == nullptr)
    return;
  auto* r = make_record(record_kind::answered);
  r->answers = request;
  r->body = std::move(body);
  auto object = std::move(object_);
  object->submit_unchecked(r, false);
}

caf::strong_actor_ptr make_reply_port(caf::actor_system& system) {
  caf::actor_config config;
  return caf::make_actor<reply_port, caf::strong_actor_ptr>(system.next_actor_id(), system.node(), &system, config);
}

} // namespace zlink::detail
