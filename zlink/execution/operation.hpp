// The shared state behind a task that a terminal returned: one outcome, decided once, and whoever waits for it.
#pragma once

#include "zlink/error.hpp"
#include "zlink/execution/counted.hpp"
#include "zlink/execution/record.hpp"
#include "zlink/unique_function.hpp"

#include <atomic>
#include <coroutine>
#include <memory>
#include <optional>
#include <stop_token>

namespace zlink::detail {

class execution_object;
class handler_run;
class operation_limit;
class serial_executor;

/// What awaiting this operation does with the caller's turn. `plain`: as submit; no terminal of a call.
enum class turn_use : std::uint8_t { plain, submit, yield };

/// The innermost handler run on this thread, or null outside of turns.
handler_run* current_run() noexcept;
/// True inside a turn, a callback of the layer, a worker body.
bool in_runtime_context() noexcept;

/// Marks the calling thread as runtime context while alive.
class runtime_context_guard {
public:
  runtime_context_guard() noexcept;
  ~runtime_context_guard();
  runtime_context_guard(const runtime_context_guard&) = delete;
  runtime_context_guard& operator=(const runtime_context_guard&) = delete;

private:
  bool before_;
};

class operation_base : public counted {
public:
  turn_use use = turn_use::plain;
  /// Where continuations of callers outside of turns run (M-21); null: on the thread that decided.
  std::shared_ptr<serial_executor> dispatcher;
  /// The object whose turn started the operation; null outside. `.then` callbacks run in its turns.
  execution_object* owner = nullptr;
  /// In a turn of it, for an operation that stands in no table of a gate: that object neither ends nor changes its gate, nor
  /// counts as having nothing under way, before the operation has ended and its callback has been queued.
  void hold_owner(execution_object& object) noexcept;

  /// The operation counts against the bound of the host that it was started through; false: it has ended meanwhile, the
  /// place is to be given back.
  bool hold_slot(operation_limit& of) noexcept {
    slot_of_ = &of;
    auto expected = slot::none;
    return slot_.compare_exchange_strong(expected, slot::held, std::memory_order_acq_rel);
  }
  /// Whoever ends the operation: where a place is to be given back, or null.
  operation_limit* end_slot() noexcept {
    return slot_.exchange(slot::ended, std::memory_order_acq_rel) == slot::held ? slot_of_ : nullptr;
  }

  /// "request to spot" and which one, for the text of a timeout.
  const char* verb = "operation";
  std::string subject;
  error timeout_error() const;

  bool done() const noexcept { return state_.load(std::memory_order_acquire) == state::done; }

  /// Ends the operation with a reply record's body. Takes nothing: the caller frees the record.
  virtual void accept(record& reply) noexcept = 0;
  virtual void fail(error what) noexcept = 0;
  virtual void cancel() noexcept = 0;

  /// False: already done, go on at once. True: `h` is resumed later, in `run`'s turn if there is one.
  bool await(std::coroutine_handle<> h, handler_run* run) noexcept;
  /// The awaiting frame is being destroyed.
  void abandon_await() noexcept;
  /// Runs `callback` when done: in a turn of `owner`, or on the dispatcher, or for `at_once` on the deciding thread.
  void when_done(unique_function<void()> callback, bool at_once = false);

  // Used by the runtime when a continuation is due.
  std::coroutine_handle<> waiting_handle() const noexcept { return handle_; }
  void run_callback() { std::exchange(callback_, nullptr)(); }
  bool has_callback() const noexcept { return static_cast<bool>(callback_); }

  /// Asks to be cancelled through `token`; `request` posts to wherever the operation is decided (D-4).
  void watch(std::stop_token token, unique_function<void()> request);
  void unwatch() noexcept { stop_watch_.reset(); }
  /// Runs on the thread that decides the outcome; for asking a worker body to stop. Once, before the operation can end.
  void at_end(unique_function<void()> told) { at_end_ = std::make_unique<unique_function<void()>>(std::move(told)); }

protected:
  ~operation_base() override;
  /// The outcome is stored: tell whoever waits. At most once.
  void finish() noexcept;

private:
  void notify() noexcept;
  void post_callback(execution_object& object) noexcept;

  enum class state : std::uint8_t { pending, waiting, done };
  enum class slot : std::uint8_t { none, held, ended };
  using stop_watch = std::stop_callback<unique_function<void()>>;

  std::atomic<state> state_{state::pending};
  std::atomic<slot> slot_{slot::none};
  operation_limit* slot_of_ = nullptr;
  bool at_once_ = false;
  bool holds_owner_ = false;
  std::coroutine_handle<> handle_;
  handler_run* run_ = nullptr; ///< counted while it waits here
  unique_function<void()> callback_;
  std::unique_ptr<stop_watch> stop_watch_;
  std::unique_ptr<unique_function<void()>> at_end_;
};

/// Error for a reply whose value is of another type than the caller asked for (M-137).
error unexpected_reply(payload& body, const char* wanted);
bool is_empty_reply(payload& body) noexcept;
/// Decodes `body` into a constructed `into` of the packet type; an error if it is something else or undecodable.
std::optional<error> decode_reply(payload& body, const packet_type& wanted, void* into) noexcept;

/// A `caf::error` that a behaviour returned, as a ZLink caller sees it (D-14). A CAF message from another node is decoded
/// for that, and stays so.
std::optional<error> caf_failure(payload& body) noexcept;

template <class T>
class operation final : public operation_base {
public:
  /// Only after `done()`.
  result<T>& outcome() noexcept { return *outcome_; }

  void set(result<T> outcome) noexcept {
    outcome_.emplace(std::move(outcome));
    finish();
  }
  void fail(error what) noexcept override { set(result<T>{std::move(what)}); }
  void cancel() noexcept override { set(result<T>{cancelled}); }
  void accept(record& reply) noexcept override {
    try {
      accept_body(reply.body);
    } catch (...) { // of a packet that cannot be copied just now
      fail({error_kind::internal_failure, "the reply could not be copied"});
    }
  }

private:
  void accept_body(payload& body) {
    if (auto* what = body.get<error>())
      set(result<T>{std::move(*what)});
    else if (body.get<cancelled_t>())
      set(result<T>{cancelled});
    else if (auto failed = caf_failure(body))
      set(result<T>{std::move(*failed)});
    else if constexpr (std::is_void_v<T>)
      set(is_empty_reply(body) ? result<void>{} : result<void>{unexpected_reply(body, "an empty reply")});
    else
      accept_value(body);
  }

  void accept_value(payload& body)
    requires(!std::is_void_v<T>)
  {
    if (auto* value = body.get<T>()) {
      outcome_.emplace(std::move(*value));
      finish();
      return;
    }
    if constexpr (value_ops_for<T>::is_packet) {
      T value{};
      if (auto failed = decode_reply(body, packet_type_of<T>(), &value)) {
        set(result<T>{std::move(*failed)});
        return;
      }
      outcome_.emplace(std::move(value));
      finish();
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) { // what a CAF behaviour may return
      if (auto* message = body.get<caf::message>(); message != nullptr && message->match_elements<T>())
        set(result<T>{message->get_as<T>(0)});
      else
        set(result<T>{unexpected_reply(body, typeid(T).name())});
    } else {
      set(result<T>{unexpected_reply(body, typeid(T).name())});
    }
  }

  std::optional<result<T>> outcome_;
};

} // namespace zlink::detail
