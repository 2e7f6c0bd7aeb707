#include "zlink/execution/operation.hpp"

#include "zlink/codec_error.hpp"
#include "zlink/execution/execution_object.hpp"
#include "zlink/execution/executor.hpp"
#include "zlink/execution/gate.hpp"
#include "zlink/execution/turn.hpp"

#include <caf/message.hpp>

namespace zlink::detail {

error operation_base::timeout_error() const {
  std::string text{verb};
  if (!subject.empty())
    text += " \"" + subject + '"';
  return {error_kind::deadline_exceeded, text + " did not end in time"};
}

bool operation_base::await(std::coroutine_handle<> h, handler_run* run) noexcept {
  handle_ = h;
  run_ = run;
  if (run != nullptr) {
    run->ref();
    run->suspend(this);
  }
  auto expected = state::pending;
  if (state_.compare_exchange_strong(expected, state::waiting, std::memory_order_acq_rel))
    return true;
  if (run != nullptr) {
    run->forget(this);
    std::exchange(run_, nullptr)->unref();
  }
  return false;
}

void operation_base::abandon_await() noexcept {
  auto expected = state::waiting;
  if (!state_.compare_exchange_strong(expected, state::pending, std::memory_order_acq_rel))
    return; // decided: the run gets its resume and finds itself ended
  handle_ = nullptr;
  if (auto* run = std::exchange(run_, nullptr)) {
    run->forget(this);
    run->unref();
  }
}

void operation_base::when_done(unique_function<void()> callback, bool at_once) {
  callback_ = std::move(callback);
  at_once_ = at_once;
  auto expected = state::pending;
  if (state_.compare_exchange_strong(expected, state::waiting, std::memory_order_acq_rel))
    return;
  // Ended before: the callback belongs to the turn that asks, if there is one. Whoever ends an operation later may be in
  // a turn of somebody else.
  if (const auto* t = owner == nullptr && !at_once_ ? current_turn() : nullptr)
    post_callback(*t->object);
  else
    notify();
}

operation_base::~operation_base() {
  if (holds_owner_)
    owner->unref(); // of a host that has ended
}

void operation_base::hold_owner(execution_object& object) noexcept {
  owner = &object;
  holds_owner_ = true;
  object.ref();
  ++object.outstanding;
}

void operation_base::finish() noexcept {
  const auto held = counted_ptr<execution_object>::adopt(std::exchange(holds_owner_, false) ? owner : nullptr);
  if (auto told = std::move(at_end_))
    (*told)();
  if (state_.exchange(state::done, std::memory_order_acq_rel) == state::waiting)
    notify();
  if (held)
    held->home().post([held] { // behind the callback; an object with something outstanding keeps its gate
      --held->outstanding;
      held->home().make_ready(*held);
    });
}

void operation_base::notify() noexcept {
  if (callback_) {
    if (at_once_)
      run_callback();
    else if (owner != nullptr)
      post_callback(*owner);
    else if (dispatcher)
      dispatcher->post([held = counted_ptr<operation_base>::share(this)] {
        run_application_callback([&] { held->run_callback(); });
      });
    else
      run_application_callback([this] { run_callback(); });
    return;
  }
  if (auto* run = std::exchange(run_, nullptr)) {
    run->home().wake_run(*run);
    run->unref();
  } else if (dispatcher) {
    dispatcher->post([h = handle_] {
      runtime_context_guard inside;
      h.resume();
    });
  } else {
    handle_.resume();
  }
}

void operation_base::post_callback(execution_object& object) noexcept {
  auto* r = make_record(record_kind::resume);
  r->body.emplace<counted_ptr<operation_base>>(counted_ptr<operation_base>::share(this));
  object.submit_unchecked(r, false);
}

void operation_base::watch(std::stop_token token, unique_function<void()> request) {
  if (token.stop_possible())
    stop_watch_ = std::make_unique<stop_watch>(std::move(token), std::move(request));
}

error unexpected_reply(payload& body, const char* wanted) {
  std::string text = "the reply is ";
  if (body.empty())
    text += "empty";
  else if (auto* encoded = body.get<encoded_value>())
    text += "packet \"" + std::string{encoded->packet_name()} + '"';
  else if (auto* packet = body.packet())
    text += "packet \"" + std::string{packet->name} + '"';
  else
    text += "of another type";
  return {error_kind::protocol_error, text + "; the caller asked for \"" + wanted + '"'};
}

bool is_empty_reply(payload& body) noexcept {
  if (body.empty())
    return true;
  const auto* message = body.get<caf::message>(); // of a behaviour that returns nothing
  return message != nullptr && message->empty();
}

} // namespace zlink::detail
