#include "zlink/caf/ask.hpp"

#include "zlink/caf/compat.hpp"
#include "zlink/execution/execution_object.hpp"
#include "zlink/execution/gate.hpp"

#include <caf/actor_cast.hpp>
#include <caf/make_actor.hpp>
#include <caf/monitorable_actor.hpp>
#include <caf/sec.hpp>

#include <atomic>

namespace zlink::detail {

namespace {

/// The sender of one question.
class ask_port final : public caf::monitorable_actor {
public:
  ask_port(caf::actor_config& config, reply_route route) : caf::monitorable_actor(config), route_(route) {}
  ~ask_port() override { drop(); }

  using caf::abstract_actor::enqueue;
  void enqueue(caf::mailbox_element_ptr element, caf::execution_unit*) override {
    if (!element->mid.is_response())
      return;
    payload body;
    if (element->content().match_elements<caf::error>()
        && element->content().get_as<caf::error>(0) == caf::sec::request_receiver_down)
      body.emplace<error>(error_kind::unavailable, "the CAF actor is gone");
    else if (!element->content().empty())
      body.emplace<caf::message>(element->move_content_to_message());
    answer(std::move(body));
    cleanup(caf::exit_reason::normal, nullptr);
  }
  const char* name() const override { return "zlink.ask"; }

private:
  void answer(payload body) {
    if (answered_.exchange(true))
      return;
    auto* r = make_record(record_kind::completion);
    r->reply.id = route_.id;
    r->body = std::move(body);
    route_.receiver->receive_reply(r);
    route_.receiver->unref_receiver();
  }
  void drop() noexcept {
    if (!answered_.exchange(true)) // never answered: the operation's own deadline tells the caller
      route_.receiver->unref_receiver();
  }

  reply_route route_;
  std::atomic<bool> answered_{false};
};

} // namespace

void start_ask(execution_object& object, const caf::actor& whom, caf::message question, std::chrono::milliseconds timeout,
               counted_ptr<operation_base> ended) {
  const auto* t = current_turn();
  if (t == nullptr || &t->object->whole() != &object) {
    ended->fail({error_kind::invalid_operation, "ask outside of a turn of its object"});
    return;
  }
  if (!whom) {
    ended->fail({error_kind::unavailable, "ask of an actor handle that stands for nobody"});
    return;
  }
  ended->verb = "ask of a CAF actor";
  ended->use = turn_use::submit;
  auto& domain = object.domain();
  reply_route route{t->home, t->home->add_operation(std::move(ended), *t->object, domain.time->now() + timeout)};
  route.receiver->ref_receiver();
  caf::actor_config config;
  auto& system = *domain.system;
  auto port = caf::make_actor<ask_port, caf::strong_actor_ptr>(system.next_actor_id(), system.node(), &system, config, route);
  whom->enqueue(std::move(port), caf::make_message_id(1), std::move(question), current_execution_unit());
}

} // namespace zlink::detail
