// What an Actor may know and do; inside its turns only, but for its names.
#pragma once

#include "zlink/identity.hpp"
#include "zlink/objects/tick_handler.hpp"
#include "zlink/outbound_calls.hpp"
#include "zlink/timer.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>

namespace zlink {

class actor;
class host;

namespace detail {
class actor_object;
class handler_scope;
struct join_request;
} // namespace detail

/// A change of the Spot that an Actor belongs to, to be registered by `defer()` (J-50). Single use.
class join_call {
public:
  /// From `defer()` to the commit; 1 ms to INT_MAX ms after rounding up, else `std::invalid_argument`; default 5 s (J-55).
  join_call& timeout(time_span limit) &;
  join_call&& timeout(time_span limit) && { return std::move(timeout(limit)); }
  /// Registers it, and does nothing else: it begins when the handler that runs now has ended well, and vanishes otherwise
  /// (J-52, J-62, J-63). Whatever the Actor has not started waits until `on_join_completed` has ended. Throws
  /// `operation_failed`: `invalid_operation` outside of a handler, or a second time; `unavailable` if the Actor changes its
  /// Spot already, or has ended. Throws `std::invalid_argument` for a request beyond 1 MiB (encoded), beyond 8 MiB together with those that the handler has
  /// registered before, and for the 65th Join of a handler (J-56).
  void defer();

  explicit join_call(std::unique_ptr<detail::join_request> request) noexcept;
  join_call(join_call&&) noexcept;
  join_call& operator=(join_call&&) noexcept;
  ~join_call();

private:
  std::unique_ptr<detail::join_request> request_;
};

class actor_context {
public:
  std::string actor_id() const;
  /// 1..2^63-1; stays through joins and moves (J-4).
  std::uint64_t object_generation() const noexcept;
  const std::string& mesh_name() const noexcept;
  const std::string& node_rid() const noexcept;
  /// The Entry or User Spot that the Actor belongs to now (J-1).
  std::string spot_id() const;
  /// Names this incarnation: what `actors().destroy` takes.
  actor_ref ref() const;
  spot_outbound outbound() const noexcept;
  zlink::host& host() const noexcept;

  /// A logical timer of this Actor: its ticks run as messages of the Actor do, and go with it wherever it belongs.
  /// Registered inside a turn of the Actor, or of the Spot that it belongs to or comes into being in; as
  /// `common_spot_context::add_timer` otherwise, with the same errors.
  template <auto Handler>
  task<timer> add_timer(std::string name, time_span period, timer_options options = {}, std::stop_token cancel = {}) const {
    static_assert(std::is_base_of_v<actor, typename detail::tick_handler<Handler>::shape::owner>,
                  "a timer of an Actor calls a function of its own class: add_timer<&my_actor::on_tick>(...)");
    return detail::start_timer(*object_, std::move(name), period, options, &detail::tick_handler<Handler>::invoke,
                               std::move(cancel));
  }

  /// Into a User Spot, if its `on_actor_join` accepts; it is asked with the request, or an empty message.
  join_call join_spot(std::string spot_id) const { return make_join(std::move(spot_id), message{}); }
  template <packet T>
  join_call join_spot(std::string spot_id, T request) const {
    return make_join(std::move(spot_id), message{std::move(request)});
  }
  /// Into the Entry Spot of its node, or of another one if that may take no members (J-73).
  join_call join_entry_spot() const { return make_join(std::nullopt, message{}); }
  template <packet T>
  join_call join_entry_spot(T request) const {
    return make_join(std::nullopt, message{std::move(request)});
  }

  // -- for the layer ---------------------------------------------------------------------------------------------------
  detail::actor_object& object() const noexcept { return *object_; }
  explicit actor_context(detail::counted_ptr<detail::actor_object> object) noexcept;
  actor_context(actor_context&&) noexcept;
  actor_context& operator=(actor_context&&) noexcept;
  ~actor_context();

private:
  join_call make_join(std::optional<std::string> spot_id, message request) const;

  detail::counted_ptr<detail::actor_object> object_;
};

} // namespace zlink
