// What an object may do inside its turns: identity, outbound calls, timers, workers, handlers, close.
#pragma once

#include "zlink/actor_context.hpp"
#include "zlink/calls.hpp"
#include "zlink/execution/counted.hpp"
#include "zlink/objects/handler_table.hpp"
#include "zlink/objects/tick_handler.hpp"
#include "zlink/outbound_calls.hpp"
#include "zlink/timer.hpp"
#include "zlink/worker.hpp"

#include <caf/actor.hpp>

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace zlink {

class actor;
class host;

namespace detail {

class spot_object;

void start_ask(spot_object& object, const caf::actor& whom, caf::message question, time_span timeout,
               counted_ptr<operation_base> ended);
/// Registers while `configure()` runs; throws `operation_failed(invalid_operation)` at any other time (M-157).
void register_handler(spot_object& object, handler_entry entry);
void register_subscription(spot_object& object, event_entry entry);
void register_actor_handler(spot_object& object, actor_handler_entry entry);
task<void> leave_spot(spot_object& spot, actor& who, std::stop_token cancel);
task<void> destroy_in(spot_object& entry, actor& who, std::stop_token cancel);

} // namespace detail

/// Registry of an Instance Spot: packets only (C-31, M-51). Valid during `configure()`.
class instance_spot_handler_registry {
public:
  /// The member function serves its message type: requests if it returns a packet, sends if it returns nothing.
  template <auto Handler>
  const instance_spot_handler_registry& add_packet() const {
    detail::register_handler(*object_, detail::packet_handler<Handler>::entry({}));
    return *this;
  }

  explicit instance_spot_handler_registry(detail::spot_object& object) noexcept : object_(&object) {}

protected:
  detail::spot_object* object_;
};

/// Registry of Entry and User Spots (M-157). Valid during `configure()`.
class spot_handler_registry {
public:
  template <auto Handler>
  const spot_handler_registry& add_packet() const {
    return add_handler<Handler>();
  }
  /// As `add_packet`, under another packet name if one is given (M-29).
  template <auto Handler>
  const spot_handler_registry& add_handler(std::string packet_name = {}) const {
    detail::register_handler(*object_, detail::packet_handler<Handler>::entry(std::move(packet_name)));
    return *this;
  }

  /// Serves what is published under that topic of that channel, in turns of the Spot (M-124, M-126). The node must take
  /// part in the channel.
  template <auto Handler>
  const spot_handler_registry& add_subscribe(std::string channel, std::string topic) const {
    static_assert(std::is_void_v<typename detail::packet_handler<Handler>::reply>, "an event is not answered");
    detail::register_subscription(*object_,
                                  {std::move(channel), std::move(topic), detail::packet_handler<Handler>::entry({})});
    return *this;
  }

  /// Serves messages to Actors that belong to the Spot: `(my_actor&, const message_context&, const T&)` (M-32, M-69).
  template <auto Handler>
  const spot_handler_registry& add_actor_handler(std::string packet_name = {}) const {
    detail::register_actor_handler(*object_, detail::actor_handler<Handler>::entry(std::move(packet_name)));
    return *this;
  }

  explicit spot_handler_registry(detail::spot_object& object) noexcept : object_(&object) {}

private:
  detail::spot_object* object_;
};

/// What the contexts of all three Spot kinds share (C-137). Move-only, made by the layer only (C-84). Identity stays
/// readable when the object has ended; everything else ends in `unavailable` then (M-24).
class common_spot_context {
public:
  common_spot_context(common_spot_context&&) noexcept;
  common_spot_context& operator=(common_spot_context&&) noexcept;
  ~common_spot_context();

  const std::string& mesh_name() const noexcept;
  const std::string& spot_id() const noexcept;
  /// 1..2^63-1; larger for every later incarnation of the id (C-120).
  std::uint64_t object_generation() const noexcept;
  const std::string& node_rid() const noexcept;
  spot_outbound outbound() const noexcept;
  /// The host's managers and clients; calls made through it inside a turn belong to that turn (M-22).
  zlink::host& host() const noexcept;

  /// A logical timer of this Spot; a name registered again replaces its former registration. Throws
  /// `std::invalid_argument` unless the name is not empty and the period a positive whole number of milliseconds.
  template <auto Handler>
  task<timer> add_timer(std::string name, time_span period, timer_options options = {}, std::stop_token cancel = {}) const {
    static_assert(!std::is_base_of_v<actor, typename detail::tick_handler<Handler>::shape::owner>,
                  "an Actor's function is called by timers of the Actor: who.context().add_timer<...>(...)");
    return detail::start_timer(*object_, std::move(name), period, options, &detail::tick_handler<Handler>::invoke,
                               std::move(cancel));
  }

  /// `body(std::stop_token)` runs on the host's worker pool, outside of any turn.
  template <class F>
  auto run_cpu_worker(F body) const -> worker_call<std::invoke_result_t<F&, std::stop_token>>;
  /// `body(std::stop_token)` returns a task; more of them may be under way than there are pool threads.
  template <class F>
  auto run_io_worker(F body) const -> worker_call<typename std::invoke_result_t<F&, std::stop_token>::value_type>;

  /// Asks a CAF actor; `R` is what it answers: a packet, a number, a text, or `void`. The turn is kept until the answer is
  /// there (D-17). Fails with `deadline_exceeded` after `timeout` (1 ms to INT_MAX ms), `unavailable` if the actor is gone,
  /// `internal_failure` with the platform code if it answered an error. Inside a turn of this Spot only.
  template <class R, class... Ts>
  task<R> ask(const caf::actor& whom, time_span timeout, Ts... question) const {
    auto ended = detail::new_counted<detail::operation<R>>();
    detail::start_ask(*object_, whom, caf::make_message(std::move(question)...), timeout, ended);
    return task<R>{std::move(ended)};
  }

  // -- for the layer ---------------------------------------------------------------------------------------------------
  detail::spot_object& object() const noexcept { return *object_; }

protected:
  explicit common_spot_context(detail::counted_ptr<detail::spot_object> object) noexcept;
  detail::counted_ptr<detail::spot_object> object_;
};

class instance_spot_context : public common_spot_context {
public:
  instance_spot_handler_registry handlers() const noexcept { return instance_spot_handler_registry{*object_}; }
  /// Closes this incarnation. Answered when the close is decided; `on_closing` comes after this handler (C-115).
  task<bool> close(std::stop_token cancel = {}) const;

private:
  friend class detail::spot_object;
  using common_spot_context::common_spot_context;
};

/// "Now would be a good time to move": made by `spot_context::relocation_ready()`, begun by its only member (C-138).
class spot_relocation_ready_call {
public:
  /// Registers the end of this turn as a boundary at which the Spot may move; `on_relocation_ready_completed` tells how
  /// it passed. Nothing else may be started in this turn afterwards. Throws `operation_failed(invalid_operation)`, and
  /// nothing is registered, outside of a turn of the Spot, a second time in one turn, and unless the factory was
  /// registered with `application_signaled()` (X-61, L-42).
  void defer();

  explicit spot_relocation_ready_call(detail::counted_ptr<detail::spot_object> object) noexcept;
  spot_relocation_ready_call(spot_relocation_ready_call&&) noexcept;
  spot_relocation_ready_call& operator=(spot_relocation_ready_call&&) noexcept;
  ~spot_relocation_ready_call();

private:
  detail::counted_ptr<detail::spot_object> object_;
};

class spot_context : public common_spot_context {
public:
  spot_handler_registry handlers() const noexcept { return spot_handler_registry{*object_}; }
  spot_relocation_ready_call relocation_ready() const noexcept;
  task<bool> close(std::stop_token cancel = {}) const;
  /// The Actor goes home to the Entry Spot of its node (J-130). Ends when that is committed, whatever the caller's turn
  /// holds (J-131); fails with `invalid_operation` for an Actor that is no member, `unavailable` for one that changes its
  /// Spot already (J-132).
  task<void> leave_actor(actor& who, std::stop_token cancel = {}) const {
    return detail::leave_spot(*object_, who, std::move(cancel));
  }

private:
  friend class detail::spot_object;
  using common_spot_context::common_spot_context;
};

class entry_spot_context : public common_spot_context {
public:
  spot_handler_registry handlers() const noexcept { return spot_handler_registry{*object_}; }
  /// Ends an Actor that belongs here, when what it has accepted has run (C-127, J-134). One that has ended already is a
  /// success (J-137). Fails with `invalid_operation` for an Actor of another Spot, `unavailable` for one that changes its
  /// Spot.
  task<void> destroy_actor(actor& who, std::stop_token cancel = {}) const {
    return detail::destroy_in(*object_, who, std::move(cancel));
  }

private:
  friend class detail::spot_object;
  using common_spot_context::common_spot_context;
};

namespace detail {

template <class T, class F>
worker_start make_cpu_worker(F body) {
  worker_start start;
  start.body = [body = std::move(body)](std::stop_token stop, payload& result) mutable {
    if constexpr (std::is_void_v<T>)
      body(std::move(stop));
    else
      result.emplace<T>(body(std::move(stop)));
  };
  return start;
}

/// Awaits the body's task inside a coroutine that owns the body, whose captures the task may use.
template <class T, class F>
task<T> drive_io_body(F body, std::stop_token stop) {
  co_return co_await body(std::move(stop));
}

template <class T, class F>
worker_start make_io_worker(F body) {
  worker_start start;
  start.begin = [body = std::move(body)](std::stop_token stop, unique_function<void(payload)> done) mutable {
    start_coroutine(drive_io_body<T>(std::move(body), std::move(stop)),
                    [done = std::move(done)](result<T> outcome) mutable {
                      payload p;
                      if (outcome.is_cancelled()) // thrown by the body: a call that is cancelled has ended before
                        p.emplace<error>(error_kind::internal_failure, "the worker threw operation_cancelled");
                      else if (!outcome)
                        p.emplace<error>(error_kind::internal_failure, to_string(outcome.error()));
                      else if constexpr (!std::is_void_v<T>)
                        p.emplace<T>(std::move(*outcome));
                      done(std::move(p));
                    });
  };
  return start;
}

} // namespace detail

template <class F>
auto common_spot_context::run_cpu_worker(F body) const -> worker_call<std::invoke_result_t<F&, std::stop_token>> {
  using result_type = std::invoke_result_t<F&, std::stop_token>;
  return {*object_, detail::make_cpu_worker<result_type>(std::move(body))};
}

template <class F>
auto common_spot_context::run_io_worker(F body) const
  -> worker_call<typename std::invoke_result_t<F&, std::stop_token>::value_type> {
  using result_type = typename std::invoke_result_t<F&, std::stop_token>::value_type;
  return {*object_, detail::make_io_worker<result_type>(std::move(body))};
}

} // namespace zlink
