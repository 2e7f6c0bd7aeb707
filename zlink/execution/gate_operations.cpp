// The operations of a gate's turns, and how they end: by a reply, their deadline, or with their object (D-4, D-5).
#include "zlink/execution/execution_object.hpp"
#include "zlink/execution/gate.hpp"
#include "zlink/execution/operation_limit.hpp"

namespace zlink::detail {

/// Posts a sweep when the earliest deadline of the gate's operations has come. Holds the gate while scheduled.
class gate::deadline_watch final : public counted, public timed {
public:
  steady_time due = steady_time::max(); ///< gate's side only

  void start(gate& home, steady_time when) {
    home.domain().infra->post([self = counted_ptr<deadline_watch>::share(this), held = counted_ptr<gate>::share(&home),
                               when]() mutable {
      if (self->home_ != nullptr)
        self->home_->unref();
      self->home_ = held.release();
      self->home_->domain().infra->schedule(*self, when);
    });
  }
  void expired() noexcept override {
    auto* home = std::exchange(home_, nullptr);
    home->push_control(make_record(record_kind::sweep));
    home->unref();
  }
  void dropped() noexcept override {
    if (auto* home = std::exchange(home_, nullptr))
      home->unref();
  }

private:
  gate* home_ = nullptr; ///< infrastructure's side only
};

/// A request that a handler has left to somebody else: ends with the answer, or as operations do by its deadline, the
/// closing deadline or the end of the host (D-5).
class gate::parked_request final : public operation_base {
public:
  parked_request(gate& home, execution_object& object, record* request) noexcept
    : home_(home), object_(object), request_(request) {
    verb = "a request left to a promise";
  }
  ~parked_request() override {
    if (request_ != nullptr)
      refuse(request_, error{error_kind::shutting_down, "the host has ended"});
  }
  void accept(record& answer) noexcept override { end(std::move(answer.body)); }
  void fail(error what) noexcept override {
    payload failure;
    failure.emplace<error>(std::move(what));
    end(std::move(failure));
  }
  void cancel() noexcept override { fail(timeout_error()); } // nobody can: it has no stop token

private:
  void end(payload answer) noexcept {
    request_->body = std::move(answer);
    home_.finish_record(object_, std::exchange(request_, nullptr));
  }

  gate& home_;
  execution_object& object_;
  record* request_;
};

gate::~gate() {
  if (watch_ != nullptr)
    watch_->unref();
}

std::uint64_t gate::add_operation(counted_ptr<operation_base> operation, execution_object& owner, steady_time due) {
  operation->owner = &owner;
  ++owner.outstanding;
  if (due != steady_time::max())
    watch_deadline(due);
  return operations_.add(std::move(operation), &owner, due);
}

void gate::watch_deadline(steady_time due) noexcept {
  if (watch_ == nullptr)
    watch_ = new deadline_watch;
  if (due >= watch_->due)
    return;
  watch_->due = due;
  watch_->start(*this, due);
}

void gate::handle_control(record* r) noexcept {
  switch (r->kind) {
    case record_kind::wake:
      queue_resume(**r->body.get<counted_ptr<handler_run>>());
      free_record(r);
      break;
    case record_kind::sweep:
      free_record(r);
      sweep();
      break;
    case record_kind::answered:
      r->reply.id = static_cast<late_answer&>(*r->about).id;
      complete(r);
      break;
    case record_kind::call: {
      auto job = std::move(*r->body.get<unique_function<void()>>());
      free_record(r);
      job();
      break;
    }
    default: complete(r); break;
  }
}

void gate::complete(record* r) noexcept {
  auto [operation, owner] = operations_.take(r->reply.id);
  if (!operation) {
    domain_.counters.drop(drop_reason::late_reply);
    free_record(r);
    return;
  }
  end_operation(*operation, *owner, [&, operation = operation.get()] { operation->accept(*r); });
  free_record(r);
}

template <class F>
void gate::end_operation(operation_base& operation, execution_object& owner, F end) noexcept {
  --owner.outstanding;
  if (auto* limit = operation.end_slot())
    limit->leave();
  operation.unwatch();
  end();
  if (owner.watch_quiet_)
    make_ready(owner);
}

void gate::sweep() noexcept {
  const auto now = domain_.time->now();
  for (auto id : operations_.select([now](auto*, steady_time due) { return due <= now; })) {
    auto [operation, owner] = operations_.take(id);
    end_operation(*operation, *owner, [&, operation = operation.get()] { operation->fail(operation->timeout_error()); });
  }
  watch_->due = steady_time::max();
  const auto next = operations_.earliest_due();
  if (next != steady_time::max())
    watch_deadline(next);
}

void gate::fail_operations(execution_object& object, const error& why) noexcept {
  for (auto id : operations_.select([&](execution_object* owner, steady_time) { return owner == &object; })) {
    auto [operation, owner] = operations_.take(id);
    end_operation(*operation, *owner, [&, operation = operation.get()] { operation->fail(why); });
  }
}

void gate::park(execution_object& object, record* request, late_answer& answer) {
  const auto due = request->deadline == steady_time{} ? steady_time::max() : request->deadline;
  answer.id = add_operation(new_counted<parked_request>(*this, object, request), object, due);
}

} // namespace zlink::detail
