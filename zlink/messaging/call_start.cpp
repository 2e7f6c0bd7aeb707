#include "zlink/messaging/call_start.hpp"

#include "zlink/execution/execution_object.hpp"
#include "zlink/host/host_runtime.hpp"

namespace zlink::detail {

std::optional<error> refuse_yield(turn_use use) {
  if (use != turn_use::yield)
    return std::nullopt;
  const auto* t = current_turn();
  if (t == nullptr)
    return error{error_kind::invalid_operation, "yield outside of a turn has nothing to give away; use submit"};
  if (const auto kind = t->object->yield_refused())
    return error{*kind, "yield is allowed on Instance Spots and SpotWide User Spots only; use submit"};
  return std::nullopt;
}

call_start::call_start(host_runtime& host, operation_base& operation, turn_use use, std::stop_token cancel)
  : host_(host), operation_(operation), use_(use), cancel_(std::move(cancel)) {
  operation_.use = use;
  operation_.dispatcher = host.dispatcher;
}

bool call_start::allowed(std::optional<error> mistake, bool needs_objects, bool only_ends) {
  if (!mistake)
    mistake = refuse_yield(use_);
  if (!mistake && cancel_.stop_requested()) {
    operation_.cancel();
    return false;
  }
  if (!mistake)
    mistake = host_.refuse_call(needs_objects, only_ends);
  if (!mistake)
    return true;
  operation_.fail(std::move(*mistake));
  return false;
}

void call_start::enter(record& r, const std::string& subject, std::chrono::milliseconds timeout,
                       std::chrono::milliseconds grace) {
  operation_.subject = subject;
  r.reply = enter_operation(timeout + grace);
  r.deadline = host_.time->now() + timeout;
  if (use_ == turn_use::submit && r.kind == record_kind::request)
    if (const auto* t = current_turn())
      forbidden_ = t->home;
}

reply_route call_start::enter_operation(std::chrono::milliseconds timeout) { return enter_until(host_.time->now() + timeout); }

reply_route call_start::enter_until(steady_time due) {
  auto held = counted_ptr<operation_base>::share(&operation_);
  const auto* t = current_turn();
  reply_route route;
  if (t != nullptr) {
    route = {t->home, t->home->add_operation(held, *t->object, due)};
    operation_.watch(cancel_, [home = counted_ptr<gate>::share(t->home), id = route.id] {
      auto* r = make_record(record_kind::completion);
      r->reply.id = id;
      r->body.emplace<cancelled_t>();
      home->push_control(r);
    });
  } else {
    route = {&host_.outside, host_.outside.add(held, due)};
    operation_.watch(cancel_, [outside = &host_.outside, id = route.id] { outside->cancel(id); });
  }
  route.receiver->ref_receiver();
  return route;
}

/// Waits for a place among the host's operations, together with the message.
class call_start::waiting_launch final : public limit_waiter {
public:
  waiting_launch(host_runtime& host, counted_ptr<operation_base> operation, unique_function<void()> body)
    : host_(host), operation_(std::move(operation)), body_(std::move(body)) {}
  void on_entered() noexcept override { host_.infra->post([self = std::unique_ptr<waiting_launch>{this}] { self->go(); }); }
  void go() {
    if (operation_->hold_slot(host_.operations))
      body_();
    else
      host_.operations.leave(); // it ended while it waited; what it would have sent is dropped with the body
    host_.operations.used();
  }

private:
  host_runtime& host_;
  counted_ptr<operation_base> operation_;
  unique_function<void()> body_;
};

/// A place for it at once, unless others come first.
bool call_start::enter_at_once() { return !host_.operations.has_waiters() && host_.operations.try_enter(); }

void call_start::launch(unique_function<void()> body) {
  if (enter_at_once()) {
    if (!operation_.hold_slot(host_.operations))
      host_.operations.leave();
    body();
    return;
  }
  auto* waiting = new waiting_launch{host_, counted_ptr<operation_base>::share(&operation_), std::move(body)};
  host_.operations.will_use(); // from here until it has: also while it stands in no line any more
  if (host_.operations.enter(*waiting))
    waiting->on_entered();
}

void call_start::launch(submission message, call_target target, std::string mesh) {
  message.forbid(forbidden_);
  auto go = [&host = host_, target, mesh = std::move(mesh)](submission&& m) mutable {
    if (target == call_target::object)
      host.messages.submit(std::move(m));
    else if (target == call_target::channel)
      host.messages.submit_to_channel(std::move(m));
    else
      host.messages.submit_to_node(std::move(m), std::move(mesh));
  };
  if (enter_at_once()) { // the common case, without another allocation
    if (!operation_.hold_slot(host_.operations))
      host_.operations.leave();
    go(std::move(message));
    return;
  }
  launch([go = std::move(go), held = std::make_unique<submission>(std::move(message))]() mutable { go(std::move(*held)); });
}

} // namespace zlink::detail
