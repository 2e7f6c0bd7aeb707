#include "zlink/host/address_actor.hpp"

#include "zlink/caf/caf_reply.hpp"
#include "zlink/host/host_runtime.hpp"

#include <caf/actor_cast.hpp>
#include <caf/make_actor.hpp>
#include <caf/monitorable_actor.hpp>

namespace zlink::detail {

namespace {

/// A request of CAF as an operation of the host: it has one end, at its deadline at the latest, wherever its Spot lives
/// (D-16, X-150).
class caf_request final : public operation_base {
public:
  explicit caf_request(reply_route asked) noexcept : asked_(asked) {}
  ~caf_request() override {
    if (asked_.receiver != nullptr)
      asked_.receiver->unref_receiver();
  }
  void accept(record& reply) noexcept override { answer(std::move(reply.body)); }
  void fail(error what) noexcept override {
    payload body;
    body.emplace<error>(std::move(what));
    answer(std::move(body));
  }
  void cancel() noexcept override { fail({error_kind::unavailable, "the request was given up"}); }

private:
  void answer(payload body) noexcept {
    auto* r = make_record(record_kind::completion);
    r->body = std::move(body);
    r->reply = std::exchange(asked_, reply_route{});
    send_reply(r);
    finish();
  }
  reply_route asked_;
};

class address_actor final : public caf::monitorable_actor {
public:
  address_actor(caf::actor_config& config, std::shared_ptr<host_gate> host, std::string spot_id, spot_actor_options options)
    : caf::monitorable_actor(config), host_(std::move(host)), spot_id_(std::move(spot_id)), options_(std::move(options)) {}

  using caf::abstract_actor::enqueue;
  void enqueue(caf::mailbox_element_ptr element, caf::execution_unit*) override {
    if (element->mid.is_response() || is_system_message(element->content()))
      return; // nobody here has asked anything, monitors or links anybody
    auto* r = make_caf_record(std::move(element));
    auto* host = host_->enter();
    if (host == nullptr) {
      refuse(r, error{error_kind::shutting_down, "the host has ended"});
      return;
    }
    forward(*host, r);
    host_->leave();
  }
  const char* name() const override { return "zlink.spot_address"; }

private:
  void forward(host_runtime& host, record* r) {
    if (auto why = host.refuse_call(true)) {
      refuse(r, std::move(*why));
      return;
    }
    const bool request = r->kind == record_kind::request;
    const auto now = host.time->now();
    const auto send_timeout = options_.send_timeout.count() != 0 ? options_.send_timeout : host.default_send_timeout();
    r->deadline = now + (request ? host.default_request_timeout() : send_timeout); // CAF's own timeout may end it before
    std::unique_ptr<instance_intent> intent;
    if (!options_.instance_spot.empty()) {
      intent = std::make_unique<instance_intent>();
      intent->type = options_.instance_spot;
      if (!options_.in_mesh.empty())
        intent->mesh = options_.in_mesh;
    }
    counted_ptr<operation_base> call;
    if (request) {
      call = new_counted<caf_request>(std::exchange(r->reply, reply_route{}));
      call->verb = "request to spot";
      call->subject = spot_id_;
      r->reply = {&host.outside, host.outside.add(call, r->deadline)};
    }
    const auto room_due = r->deadline;
    host.messages.submit(submission{r, spot_id_, std::move(intent), std::move(call), room_due});
  }

  std::shared_ptr<host_gate> host_;
  std::string spot_id_;
  spot_actor_options options_;
};

} // namespace

caf::actor make_address_actor(host_runtime& host, std::string spot_id, spot_actor_options options) {
  caf::actor_config config;
  auto& system = host.system;
  return caf::make_actor<address_actor, caf::actor>(system.next_actor_id(), system.node(), &system, config,
                                                    host.outside_users, std::move(spot_id), std::move(options));
}

} // namespace zlink::detail
