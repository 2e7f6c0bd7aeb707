// The stretch from taking a gate to giving it back, and the run of a handler that may span several of them.
#pragma once

#include "zlink/execution/counted.hpp"
#include "zlink/execution/faults.hpp"
#include "zlink/execution/operation.hpp"
#include "zlink/execution/record.hpp"
#include "zlink/message_context.hpp"
#include "zlink/task.hpp"
#include "zlink/unique_function.hpp"

#include <algorithm>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace zlink::detail {

class execution_object;
class gate;

/// From the start of a handler to its end, with everything it awaits: what is registered meanwhile happens when it has ended
/// (J-60, J-62). Touched in the handler's turns only.
class handler_scope final : public counted {
public:
  handler_scope() = default;
  ~handler_scope() override { end(nullptr, false); } // of a handler that never came to its end

  /// `well`: it ended normally; else nothing of what was registered shall happen (J-63). `served`: the record, whose body is
  /// the reply, before that leaves (J-64).
  using hook = unique_function<void(record* served, bool well)>;
  bool open() const noexcept { return open_; }
  void at_end(hook what) { hooks_.push_back(std::move(what)); }
  /// Until its end the handler must not wait for that object, whose messages wait for the handler (J-66).
  void bar(std::string address) { barred_.push_back(std::move(address)); }
  bool bars(std::string_view address) const noexcept { return std::ranges::find(barred_, address) != barred_.end(); }
  std::size_t joins = 0;        ///< registered in it (J-56)
  std::size_t joined_bytes = 0; ///< of their requests
  void end(record* served, bool well) noexcept;

private:
  bool open_ = true;
  std::vector<hook> hooks_;
  std::vector<std::string> barred_;
};

/// What runs on this thread now. Set anew at every turn and every resumption; never kept across a suspension.
struct turn {
  gate* home = nullptr;
  execution_object* object = nullptr;
  handler_run* run = nullptr; ///< null for a handler that is no coroutine
  turn* outer = nullptr;
  bool readiness_signaled = false; ///< `relocation_ready().defer()` was called: nothing else may start (X-62)
  bool serves = false;             ///< a handler without coroutine runs for a record
  counted_ptr<handler_scope> scope; ///< of that handler, once asked for
};

/// The turn on this thread, or null.
turn* current_turn() noexcept;
/// The turn on this thread, or one around it, has signalled readiness to move.
bool readiness_signaled() noexcept;
/// From here to its end the turn on this thread starts nothing else.
void note_readiness_signaled() noexcept;

/// Of the handler that runs on this thread; null where none does: in a lifecycle step, in what a handler left behind, outside
/// of turns (J-59).
counted_ptr<handler_scope> current_scope();
/// The same as far as it was asked for.
const handler_scope* known_scope() noexcept;

/// Makes a turn current while alive.
class turn_scope {
public:
  turn_scope(gate& home, execution_object& object, handler_run* run) noexcept;
  ~turn_scope();
  turn_scope(const turn_scope&) = delete;
  turn_scope& operator=(const turn_scope&) = delete;
  turn& get() noexcept { return turn_; }

private:
  turn turn_;
  runtime_context_guard guard_;
};

/// A step of the layer in the lifecycle lane, for example building the application instance.
class lifecycle_step : public pooled {
public:
  virtual ~lifecycle_step() = default;
  /// Begins the step inside a turn; the step has ended when the task has.
  virtual task<void> run(execution_object& object) = 0;
  /// Called inside a turn when the task has ended; null: it ended well.
  virtual void ended(execution_object& object, std::exception_ptr failure) noexcept = 0;
};

/// From a coroutine handler's first instruction to the end of its last awaited continuation. Belongs to its object; touched
/// only inside the gate, except for its reference count.
class handler_run final : public counted {
public:
  enum class state : std::uint8_t {
    running,
    holding, ///< suspended by submit: the gate waits with it (X-19)
    yielded, ///< suspended by yield, or detached: the gate goes on without it (X-31)
    ended,
  };

  /// Takes over `r`, which may be null (`.then` of a coroutine inside a turn).
  handler_run(gate& home, execution_object& object, record* r, bool detached) noexcept;
  ~handler_run() override;

  gate& home() const noexcept { return *home_; }
  execution_object& object() const noexcept { return *object_; }
  record* request() const noexcept { return record_; }
  const message_context& context() const noexcept { return context_; }
  bool detached() const noexcept { return detached_; }
  bool is_step() const noexcept { return step_ != nullptr; }

  /// Runs the handler's coroutine to its first suspension or its end, inside the current turn. At its end `record`'s body
  /// is the reply, or the error of what it threw.
  template <class R>
  void start(task<R> handler);
  void start_step(std::unique_ptr<lifecycle_step> step);

  /// The suspended frame waits for `what`.
  void suspend(operation_base* what) noexcept;
  /// The frame that waited is being destroyed.
  void forget(operation_base* what) noexcept;
  /// Goes on after `suspend`, inside a turn of its own or the held one.
  void resume();

  /// Once, when it has ended.
  std::unique_ptr<lifecycle_step> take_step() noexcept { return std::move(step_); }
  record* take_record() noexcept { return std::exchange(record_, nullptr); }
  /// Instead of `start`: what was to return the task threw. The record stays with the caller, the run is gone.
  void never_began() noexcept;
  std::exception_ptr failure() const noexcept { return failure_; }
  void leave_object() noexcept;
  void end_scope() noexcept;

  counted_ptr<handler_scope> scope; ///< once asked for
  state now = state::running;
  bool readiness_signaled = false;   ///< in the turn under way, which a `submit` does not end
  handler_run* next = nullptr;       ///< in the gate's list of runs to resume
  handler_run* next_active = nullptr; ///< in the object's list of active runs
  handler_run* prev_active = nullptr;

private:
  template <class R>
  static void frame_ended(void* self) noexcept;
  template <class R>
  void end_with(task<R> ended) noexcept;
  void failed(std::exception_ptr what) noexcept;

  gate* home_;
  execution_object* object_;
  record* record_;
  message_context context_;
  bool detached_;
  std::coroutine_handle<> root_;
  operation_base* waiting_for_ = nullptr;
  std::unique_ptr<lifecycle_step> step_;
  std::exception_ptr failure_;
};

/// What a handler has answered becomes the record's body; one that was put together elsewhere is it already.
template <class R>
void store_answer(record& r, R answer) {
  if constexpr (std::is_same_v<R, payload>)
    r.body = std::move(answer);
  else
    r.body.emplace<R>(std::move(answer));
}

template <class R>
void handler_run::start(task<R> handler) {
  auto frame = handler.frame();
  if (!frame && handler.ready()) { // nothing to wait for: no frame of our own
    end_with(std::move(handler));
    return;
  }
  if (!frame) { // a terminal's task returned as it is, or one that has ended: await it in a coroutine of our own
    start([](task<R> inner) -> task<R> { co_return co_await std::move(inner); }(std::move(handler)));
    return;
  }
  handler.release_frame();
  frame.promise().ended_context = this;
  frame.promise().ended = &handler_run::frame_ended<R>;
  root_ = frame;
  frame.resume();
}

template <class R>
void handler_run::end_with(task<R> ended) noexcept {
  now = state::ended;
  try {
    if constexpr (std::is_void_v<R>) {
      if (ended.operation())
        ended.operation()->outcome().value();
      if (record_ != nullptr)
        record_->body.reset();
    } else if (record_ != nullptr) {
      auto value = std::move(ended.operation()->outcome()).value();
      store_answer<R>(*record_, std::move(value));
    }
  } catch (...) {
    failed(std::current_exception());
  }
}

template <class R>
void handler_run::frame_ended(void* self) noexcept {
  auto& run = *static_cast<handler_run*>(self);
  auto frame = std::coroutine_handle<task_promise<R>>::from_address(run.root_.address());
  run.root_ = nullptr;
  try {
    if constexpr (std::is_void_v<R>) {
      frame.promise().take();
      if (run.record_ != nullptr)
        run.record_->body.reset();
    } else if (run.record_ != nullptr) {
      auto value = frame.promise().take();
      store_answer<R>(*run.record_, std::move(value));
    }
  } catch (...) {
    run.failed(std::current_exception());
  }
  frame.destroy();
  run.now = state::ended;
}

} // namespace zlink::detail
