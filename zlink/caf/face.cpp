#include "zlink/caf/face.hpp"

#include "zlink/caf/caf_reply.hpp"
#include "zlink/execution/gate.hpp"
#include "zlink/execution/waiting_room.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/scoped_execution_unit.hpp>

#include <atomic>

namespace zlink::detail {

/// Its `enqueue` posts to the object, so that everything CAF has for it runs inside the object's turns.
class face_actor final : public caf::event_based_actor {
public:
  face_actor(caf::actor_config& config, execution_object* object)
    : caf::event_based_actor(config), object_(counted_ptr<execution_object>::share(object)) {}

  caf::behavior make_behavior() override {
    return {[](caf::unit_t) {}};
  }
  const char* name() const override { return "zlink.face"; }

  using caf::event_based_actor::enqueue;
  void enqueue(caf::mailbox_element_ptr element, caf::execution_unit* unit) override {
    if (!open_.load(std::memory_order_acquire)) {
      caf::event_based_actor::enqueue(std::move(element), unit); // closed mailbox: requests bounce
      return;
    }
    if (element->mid.is_response() || is_system_message(element->content())) {
      auto* r = make_record(record_kind::caf_event);
      r->body.emplace<caf::mailbox_element_ptr>(std::move(element));
      object_->submit_unchecked(r, false);
      return;
    }
    auto* r = make_caf_record(std::move(element));
    switch (object_->submit(r, false)) {
      case admission::admitted: break;
      case admission::no_room: object_->domain().waiting->wait_for_room(*object_, r); break;
      default: refuse(r, error{error_kind::unavailable, "the object behind this actor takes no message now"});
    }
  }

  void shut() noexcept { open_.store(false, std::memory_order_release); }

private:
  counted_ptr<execution_object> object_;
  std::atomic<bool> open_{true};
};

namespace {

face_actor& actor_of(const caf::strong_actor_ptr& handle) {
  return *static_cast<face_actor*>(caf::actor_cast<caf::abstract_actor*>(handle));
}

reply_port& port_of(const caf::strong_actor_ptr& handle) {
  return *static_cast<reply_port*>(caf::actor_cast<caf::abstract_actor*>(handle));
}

} // namespace

face_port::face_port(execution_object& object) : object_(object) {
  auto& system = *object.domain().system;
  auto actor = system.spawn<face_actor, caf::lazy_init + caf::hidden>(&object);
  handle_ = caf::actor_cast<caf::strong_actor_ptr>(actor);
  auto& face = actor_of(handle_);
  face.context(current_execution_unit());
  face.activate(current_execution_unit());
  face.set_exit_handler([](caf::scheduled_actor*, caf::exit_msg&) {}); // an exit message ends no Spot
}

face_port::~face_port() { close(); }

caf::event_based_actor* face_port::actor() {
  auto& face = actor_of(handle_);
  face.context(current_execution_unit());
  return &face;
}

void face_port::consume(record& r) {
  auto& face = actor_of(handle_);
  face.context(current_execution_unit());
  auto element = std::move(*r.body.get<caf::mailbox_element_ptr>());
  struct restore {
    face_actor& face;
    ~restore() { face.current_mailbox_element(nullptr); }
  } after{face};
  face.consume(*element);
}

void face_port::close() noexcept {
  if (!handle_)
    return;
  auto& face = actor_of(handle_);
  face.shut();
  face.context(current_execution_unit());
  face.quit(caf::exit_reason::user_shutdown);
  face.finalize();
  handle_ = nullptr;
}

face_request::face_request(face_port& face, record& r) : face_(face) {
  auto& actor = actor_of(face_.handle_);
  actor.context(current_execution_unit());
  if (r.kind == record_kind::request) {
    if (!face_.port_)
      face_.port_ = make_reply_port(*face_.object_.domain().system);
    answer_ = port_of(face_.port_).arm(face_.object_);
    face_.element_.sender = std::move(face_.port_);
    face_.element_.mid = caf::make_message_id(1);
  } else {
    face_.element_.sender = nullptr;
    face_.element_.mid = caf::make_message_id();
  }
  actor.current_mailbox_element(&face_.element_);
}

face_request::~face_request() {
  actor_of(face_.handle_).current_mailbox_element(nullptr);
  face_.element_.held = caf::message{};
  if (!answer_ || face_.element_.sender == nullptr)
    return;
  port_of(face_.element_.sender).disarm();
  if (face_.element_.sender->strong_refs == 1) // nobody else holds it: good for the next request
    face_.port_ = std::move(face_.element_.sender);
  face_.element_.sender = nullptr;
}

} // namespace zlink::detail
