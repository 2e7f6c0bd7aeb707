#include "zlink/host/address_actor.hpp"

#include "zlink/caf/caf_reply.hpp"
#include "zlink/host/host_runtime.hpp"

#include <caf/actor_cast.hpp>
#include <caf/make_actor.hpp>
#include <caf/monitorable_actor.hpp>

namespace zlink::detail {

namespace {

class address_actor final : public caf::monitorable_actor {
public:
  address_actor(caf::actor_config& config, std::shared_ptr<host_gate> host, std::string spot_id, spot_actor_options options)
    : caf::monitorable_actor(config), host_(std::move(host)), spot_id_(std::move(spot_id)), options_(std::move(options)) {}

  using caf::abstract_actor::enqueue;
  void enqueue(caf::mailbox_element_ptr element, caf::execution_unit*) override {
    if (element->mid.is_response())
      return; // nobody here has asked anything
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
    host.messages.submit(submission{r, spot_id_, std::move(intent), nullptr, now + send_timeout});
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
