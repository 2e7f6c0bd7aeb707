#include "zlink/execution/turn.hpp"

#include "zlink/execution/execution_object.hpp"
#include "zlink/execution/gate.hpp"

#include <cassert>

namespace zlink::detail {

namespace {

constinit thread_local turn* active_turn = nullptr;
constinit thread_local bool runtime_context = false;

} // namespace

turn* current_turn() noexcept { return active_turn; }
handler_run* current_run() noexcept { return active_turn == nullptr ? nullptr : active_turn->run; }
bool in_runtime_context() noexcept { return runtime_context; }

bool readiness_signaled() noexcept {
  for (const auto* t = active_turn; t != nullptr; t = t->outer)
    if (t->readiness_signaled)
      return true;
  return false;
}

void note_readiness_signaled() noexcept {
  active_turn->readiness_signaled = true;
  if (active_turn->run != nullptr)
    active_turn->run->readiness_signaled = true;
}

void handler_scope::end(record* served, bool well) noexcept {
  open_ = false;
  for (auto& what : std::exchange(hooks_, {})) // none of them a second time
    what(served, well);
}

counted_ptr<handler_scope> current_scope() {
  auto* t = active_turn;
  if (t == nullptr)
    return {};
  if (t->run == nullptr) {
    if (t->serves && !t->scope)
      t->scope = new_counted<handler_scope>();
    return t->scope;
  }
  auto& run = *t->run;
  if (run.is_step() || run.detached())
    return {};
  if (!run.scope)
    run.scope = new_counted<handler_scope>();
  return run.scope;
}

const handler_scope* known_scope() noexcept {
  const auto* t = active_turn;
  return t == nullptr ? nullptr : t->run != nullptr ? t->run->scope.get() : t->scope.get();
}

runtime_context_guard::runtime_context_guard() noexcept : before_(std::exchange(runtime_context, true)) {}
runtime_context_guard::~runtime_context_guard() { runtime_context = before_; }

turn_scope::turn_scope(gate& home, execution_object& object, handler_run* run) noexcept
  : turn_{&home, &object, run, active_turn, run != nullptr && run->readiness_signaled, false, {}} {
  active_turn = &turn_;
}

turn_scope::~turn_scope() { active_turn = turn_.outer; }

handler_run::handler_run(gate& home, execution_object& object, record* r, bool detached) noexcept
  : home_(&home), object_(&object), record_(r), context_(&object, r), detached_(detached) {
  home.ref();
  next_active = object.active_runs;
  if (next_active != nullptr)
    next_active->prev_active = this;
  object.active_runs = this;
}

handler_run::~handler_run() {
  assert(record_ == nullptr && "a run that has not ended keeps its request");
  if (root_)
    root_.destroy();
  home_->unref();
}

void handler_run::end_scope() noexcept {
  if (auto ending = std::exchange(scope, {}))
    ending->end(record_, failure_ == nullptr);
}

void handler_run::leave_object() noexcept {
  if (prev_active != nullptr)
    prev_active->next_active = next_active;
  else
    object_->active_runs = next_active;
  if (next_active != nullptr)
    next_active->prev_active = prev_active;
  next_active = prev_active = nullptr;
}

void handler_run::start_step(std::unique_ptr<lifecycle_step> step) {
  step_ = std::move(step);
  start(step_->run(*object_));
}

void handler_run::suspend(operation_base* what) noexcept {
  waiting_for_ = what;
  // A task that another object began to yield with gives nothing away here, where that may not be allowed.
  const bool yields = what->use == turn_use::yield && (what->owner == nullptr || what->owner == object_);
  now = detached_ || yields ? state::yielded : state::holding;
  if (now == state::yielded)
    readiness_signaled = false; // that turn is over
}

void handler_run::forget(operation_base* what) noexcept {
  if (waiting_for_ != what)
    return;
  waiting_for_ = nullptr;
  now = state::running;
}

void handler_run::resume() {
  now = state::running;
  std::exchange(waiting_for_, nullptr)->waiting_handle().resume();
}

void handler_run::never_began() noexcept {
  if (auto ending = std::exchange(scope, {}))
    ending->end(record_, false);
  record_ = nullptr;
  leave_object();
  unref();
}

void handler_run::failed(std::exception_ptr what) noexcept {
  failure_ = std::move(what);
  if (record_ != nullptr)
    fail_record(*object_, *record_, failure_);
}

void start_detached(std::coroutine_handle<> frame) {
  auto* t = current_turn();
  if (t == nullptr) {
    frame.resume();
    return;
  }
  auto* run = new handler_run{*t->home, *t->object, nullptr, true};
  {
    turn_scope scope{*t->home, *t->object, run};
    frame.resume();
  }
  t->home->settle(*run);
}

void run_application_callback(unique_function<void()> callback) noexcept {
  runtime_context_guard inside;
  try {
    callback();
  } catch (...) {
    if (auto* t = current_turn()) // one callback that throws stops no other
      note_failure(*t->object, "completion callback", std::current_exception(), false);
  }
}

void throw_blocking_wait_in_runtime_context() {
  throw operation_failed{error{error_kind::invalid_operation,
                               "sync_wait inside a turn, a callback or a worker would block what it waits for; await "
                               "the task instead"}};
}

} // namespace zlink::detail
