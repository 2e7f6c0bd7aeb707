// What an application derives its Spots from (C-133 to C-136).
#pragma once

#include "zlink/actor.hpp"
#include "zlink/context.hpp"
#include "zlink/identity.hpp"
#include "zlink/membership/spot_members.hpp"
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

namespace detail {

/// What the layer tells a Spot about its Actors, whatever their class (J-182).
class actor_callbacks {
public:
  virtual task<actor_join_response> ask_join(std::string actor_id, const message& request) = 0;
  virtual task<actor_create_response> ask_create(actor& who, const message& request) = 0;
  virtual task<void> tell_joined(actor& who) = 0;
  virtual task<void> tell_left(actor& who) = 0;
  virtual task<void> tell_disconnected(actor& who) = 0;

protected:
  ~actor_callbacks() = default;
};

/// What User Spots have in common, and Entry Spots.
template <class Base, class Context>
class spot_with_context : public Base {
public:
  explicit spot_with_context(Context context) noexcept : context_(std::move(context)) {}
  const Context& context() const noexcept { return context_; }
  spot_object& bound_object() const noexcept final { return context_.object(); }

private:
  Context context_;
};
using user_spot_base = spot_with_context<user_spot_application, spot_context>;
using entry_spot_base = spot_with_context<spot_application, entry_spot_context>;

/// Throws `operation_failed(invalid_operation)` outside of the turns of a SpotWide Spot's gate (C-147).
const spot_members& readable_members(spot_object& spot);

} // namespace detail

/// The Actors of a Spot, as its class knows them, in the order in which they came. Good within the turn; who leaves while a
/// loop goes over them is passed over, and nobody else is; an iterator that stands at him gives null.
template <class TActor>
class member_view {
public:
  class iterator {
  public:
    using value_type = TActor*;
    using difference_type = std::ptrdiff_t;
    iterator() = default;
    iterator(const detail::spot_members& all, std::size_t at) noexcept : all_(&all), at_(all.next(at)) {}
    TActor* operator*() const noexcept {
      const auto* who = all_->at(at_);
      return who == nullptr ? nullptr : static_cast<TActor*>(detail::application_of(*who));
    }
    iterator& operator++() noexcept {
      at_ = all_->next(at_ + 1);
      return *this;
    }
    iterator operator++(int) noexcept {
      auto before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const iterator& a, const iterator& b) noexcept { return a.at_ == b.at_; }

  private:
    const detail::spot_members* all_ = nullptr;
    std::size_t at_ = detail::spot_members::nobody;
  };

  explicit member_view(const detail::spot_members& all) noexcept : all_(&all) {}
  std::size_t size() const noexcept { return all_->count(); }
  bool empty() const noexcept { return size() == 0; }
  iterator begin() const noexcept { return {*all_, 0}; }
  iterator end() const noexcept { return {*all_, detail::spot_members::nobody}; }

private:
  const detail::spot_members* all_;
};

/// A User Spot whose members are Actors of one class.
template <class TActor = void>
class spot : public detail::user_spot_base, public detail::actor_callbacks {
public:
  using actor_type = TActor;
  explicit spot(spot_context context) noexcept : detail::user_spot_base(std::move(context)) {}

  /// Whether an Actor that asks may come in, and an optional reply. Not told about one that comes otherwise (J-76, J-80).
  virtual task<actor_join_response> on_actor_join(std::string actor_id, const message& request) {
    static_cast<void>(actor_id);
    static_cast<void>(request);
    return detail::make_ready_task(result<actor_join_response>{accept()});
  }
  /// It is a member now; called again when it throws (J-85).
  virtual task<void> on_joined_actor(TActor& who) = 0;
  /// It is none any more, which does not mean that it has ended (J-45).
  virtual task<void> on_leave_actor(TActor& who) = 0;
  /// Its client is gone (J-140).
  virtual task<void> on_disconnect_actor(TActor& who) {
    static_cast<void>(who);
    return task<void>::done();
  }

protected:
  /// Inside a turn of a SpotWide Spot or of one of its members; elsewhere `operation_failed(invalid_operation)` (C-147).
  member_view<TActor> members() const { return member_view<TActor>{detail::readable_members(bound_object())}; }

private:
  task<actor_join_response> ask_join(std::string actor_id, const message& request) final {
    return on_actor_join(std::move(actor_id), request);
  }
  task<actor_create_response> ask_create(actor&, const message&) final {
    return detail::make_ready_task(result<actor_create_response>{reject()}); // never asked
  }
  task<void> tell_joined(actor& who) final { return on_joined_actor(static_cast<TActor&>(who)); }
  task<void> tell_left(actor& who) final { return on_leave_actor(static_cast<TActor&>(who)); }
  task<void> tell_disconnected(actor& who) final { return on_disconnect_actor(static_cast<TActor&>(who)); }
};

/// A User Spot that hosts no Actors.
template <>
class spot<void> : public detail::user_spot_base {
public:
  explicit spot(spot_context context) noexcept : detail::user_spot_base(std::move(context)) {}
};

/// The Spot in which Actors of one class come into being on a node, and to which they return.
template <class TActor = void>
class entry_spot : public detail::entry_spot_base, public detail::actor_callbacks {
public:
  using actor_type = TActor;
  explicit entry_spot(entry_spot_context context) noexcept : detail::entry_spot_base(std::move(context)) {}

  /// Whether the Actor may come into being, and an optional reply (C-123).
  virtual task<actor_create_response> on_create_actor(TActor& who, const message& request) {
    static_cast<void>(who);
    static_cast<void>(request);
    return detail::make_ready_task(result<actor_create_response>{accept()});
  }
  virtual task<void> on_joined_actor(TActor& who) = 0;
  virtual task<void> on_leave_actor(TActor& who) = 0;
  virtual task<void> on_disconnect_actor(TActor& who) {
    static_cast<void>(who);
    return task<void>::done();
  }

private:
  task<actor_join_response> ask_join(std::string, const message&) final {
    return detail::make_ready_task(result<actor_join_response>{accept()}); // an Entry Spot is no gate
  }
  task<actor_create_response> ask_create(actor& who, const message& request) final {
    return on_create_actor(static_cast<TActor&>(who), request);
  }
  task<void> tell_joined(actor& who) final { return on_joined_actor(static_cast<TActor&>(who)); }
  task<void> tell_left(actor& who) final { return on_leave_actor(static_cast<TActor&>(who)); }
  task<void> tell_disconnected(actor& who) final { return on_disconnect_actor(static_cast<TActor&>(who)); }
};

/// An Entry Spot that hosts no Actors.
template <>
class entry_spot<void> : public detail::entry_spot_base {
public:
  explicit entry_spot(entry_spot_context context) noexcept : detail::entry_spot_base(std::move(context)) {}
};

} // namespace zlink
