// What an application derives its Spots from (C-133 to C-136).
#pragma once

#include "zlink/context.hpp"
#include "zlink/identity.hpp"
#include "zlink/message.hpp"
#include "zlink/task.hpp"

#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>

#include <chrono>
#include <cstdint>
#include <stop_token>

namespace zlink {

/// Why a Spot ends (C-144).
enum class spot_close_reason : std::uint8_t { explicit_close = 0, host_shutdown = 1, relocation_out = 2, idle_evicted = 3 };
const char* to_string(spot_close_reason reason) noexcept;

/// What `on_closing` is told (C-116).
struct spot_closing_context {
  spot_close_reason reason = spot_close_reason::explicit_close;
  std::chrono::system_clock::time_point deadline{}; ///< UTC; the stop token is requested when it has passed
};

/// How a signalled boundary passed (C-144).
enum class spot_relocation_ready_outcome : std::uint8_t { continued = 0, relocated = 1 };
const char* to_string(spot_relocation_ready_outcome outcome) noexcept;

/// What `on_relocation_ready_completed` is told.
struct spot_relocation_ready_completion {
  spot_relocation_ready_outcome outcome = spot_relocation_ready_outcome::continued;
};

namespace detail {

/// Members that all Spot kinds have.
class spot_application {
public:
  spot_application(const spot_application&) = delete;
  spot_application& operator=(const spot_application&) = delete;
  virtual ~spot_application() = default;

  /// Registers handlers; called once per activation, before anything else.
  virtual void configure() {}
  /// Ends the preparation of an instance; no message runs before it has ended (C-80, C-81).
  virtual task<void> on_initialize() { return task<void>::done(); }
  /// Last callback of this instance, after everything accepted has ended (C-115).
  virtual task<void> on_closing(const spot_closing_context& closing, std::stop_token cleanup);
  /// The Spot as a CAF behaviour; asked for after `configure()`. A packet that both serve goes to the handler that
  /// `configure()` registered (D-13).
  virtual caf::behavior make_behavior() { return {}; }

  /// The object whose context this instance exposes (C-83).
  virtual spot_object& bound_object() const noexcept = 0;

protected:
  spot_application() = default;
  /// The CAF actor that this Spot is to the rest of CAF, made on first use. Only inside a turn (D-16).
  caf::event_based_actor* self() const;
};

/// Members that only User Spots have.
class user_spot_application : public spot_application {
public:
  /// Whether the Spot may be created, and an optional reply (C-80). Not called for an existing Spot or after a move.
  virtual task<spot_create_response> on_create(const message& request);
  /// The boundary that `relocation_ready().defer()` registered has passed; what waits runs when this has ended. May be
  /// called again for the same boundary after a crash, so it does only what may be done twice.
  virtual task<void> on_relocation_ready_completed(const spot_relocation_ready_completion& completion);
};

} // namespace detail

/// A Spot without Actors that comes to life on its first message.
class instance_spot : public detail::spot_application {
public:
  explicit instance_spot(instance_spot_context context) noexcept : context_(std::move(context)) {}
  const instance_spot_context& context() const noexcept { return context_; }
  detail::spot_object& bound_object() const noexcept final { return context_.object(); }

private:
  instance_spot_context context_;
};

template <class TActor = void>
class spot;

/// A User Spot that hosts no Actors.
template <>
class spot<void> : public detail::user_spot_application {
public:
  explicit spot(spot_context context) noexcept : context_(std::move(context)) {}
  const spot_context& context() const noexcept { return context_; }
  detail::spot_object& bound_object() const noexcept final { return context_.object(); }

private:
  spot_context context_;
};

template <class TActor = void>
class entry_spot;

/// An Entry Spot that hosts no Actors.
template <>
class entry_spot<void> : public detail::spot_application {
public:
  explicit entry_spot(entry_spot_context context) noexcept : context_(std::move(context)) {}
  const entry_spot_context& context() const noexcept { return context_; }
  detail::spot_object& bound_object() const noexcept final { return context_.object(); }

private:
  entry_spot_context context_;
};

} // namespace zlink
