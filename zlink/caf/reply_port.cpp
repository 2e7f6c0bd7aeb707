#include "zlink/caf/reply_port.hpp"

#include "zlink/execution/gate.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/make_actor.hpp>

namespace zlink::detail {

reply_port::~reply_port() = default;

counted_ptr<late_answer> reply_port::arm(execution_object& object) noexcept {
  object_ = counted_ptr<execution_object>::share(&object);
  if (!answer_)
    answer_ = new_counted<late_answer>();
  armed_.store(true, std::memory_order_release);
  return answer_;
}

void reply_port::disarm() noexcept {
  armed_.store(false, std::memory_order_release);
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
  if (!armed_.exchange(false, std::memory_order_acq_rel))
    return;
  auto* r = make_record(record_kind::answered);
  r->about = std::move(answer_);
  r->body = std::move(body);
  const auto object = std::move(object_);
  object->home().push_control(r); // after the turn that parks the request, wherever this is
}

caf::strong_actor_ptr make_reply_port(caf::actor_system& system) {
  caf::actor_config config;
  return caf::make_actor<reply_port, caf::strong_actor_ptr>(system.next_actor_id(), system.node(), &system, config);
}

} // namespace zlink::detail
