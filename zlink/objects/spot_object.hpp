// A Spot that lives here: identity, application instance, handlers, timers, and the state of its ending.
#pragma once

#include "zlink/membership/spot_members.hpp"
#include "zlink/objects/hosted_object.hpp"
#include "zlink/objects/spot_factory.hpp"
#include "zlink/spot.hpp"

#include <memory>
#include <span>
#include <string>

#include <caf/behavior.hpp>

namespace zlink::detail {

class behavior_call;
class face_port;
class host_runtime;

/// Who is told how a Spot fares; implemented by activation and close.
class spot_observer {
public:
  /// No application work waits, runs or is owed, while `watch_quiet` is on.
  virtual void spot_quiet(spot_object& object) noexcept = 0;
  /// The handler of the record that woke the Spot has ended (C-97).
  virtual void first_record_ended(spot_object& object) noexcept = 0;

protected:
  ~spot_observer() = default;
};

class spot_object final : public hosted_object {
public:
  spot_object(const object_home& home, spot_observer& observer, execution_domain& domain, counted_ptr<gate> gate,
              const spot_factory& factory, std::string id);

  // -- any thread ------------------------------------------------------------------------------------------------------
  const std::string& id() const noexcept { return address(); }
  const spot_factory& factory() const noexcept { return *factory_; }
  const std::string& type() const noexcept override { return factory_->type; }
  std::string_view surface() const noexcept override;
  /// An Entry Spot takes no place.
  bool take_place() noexcept override;
  void return_place() noexcept override;
  /// Actors that belong here, and those that have been let in and are on their way (J-150).
  spot_members& members() noexcept { return members_; }

  // -- inside a turn ---------------------------------------------------------------------------------------------------

  /// Builds the application instance and registers its handlers. Throws what the application throws, and
  /// `operation_failed` for an instance that exposes a foreign context (C-83).
  void construct();
  /// Destroys the instance, its timers and its face. The object keeps identity only.
  void dispose() noexcept override;
  spot_application* application() const noexcept { return application_.get(); }
  /// Throws `operation_failed` in a turn of a part: the face belongs to the Spot's own gate.
  caf::event_based_actor* self();
  /// A new registration while `configure()` runs.
  void register_handler(handler_entry entry);
  void register_subscription(event_entry entry);
  void register_actor_handler(actor_handler_entry entry);
  /// Null without any; fixed once it is constructed.
  const handler_table* handlers() const noexcept { return handlers_; }
  /// What it has subscribed to; fixed once it is constructed.
  std::span<const event_entry> events() const noexcept;
  /// When the last handler ended; any thread, kept only where the mesh has an idle timeout.
  steady_time last_work() const noexcept { return steady_time{steady_duration{last_work_.load(std::memory_order_relaxed)}}; }
  void note_work(steady_time now) noexcept {
    last_work_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  }
  /// The Spot may move when this turn has ended; throws where that may not be said. Nothing to move: the boundary
  /// completes as `continued` as soon as no handler is under way.
  void signal_readiness();
  /// Called in a turn at the next boundary that the Spot signals, in place of its completion: the Spot has stopped, and whoever
  /// asked for this goes on with it. Null: nobody waits any more.
  void at_signalled_boundary(unique_function<void()> told) { at_boundary_ = std::move(told); }
  /// The next handler that ends is that of the record that woke the Spot.
  void watch_first_record() noexcept { first_record_pending_ = true; }

  dispatched dispatch(record* r) override;
  void consume_caf_event(record& r) override;
  std::optional<error_kind> yield_refused() const noexcept override;
  bool may_join() const noexcept override { return factory_->kind != spot_kind::instance; }
  void on_quiet() noexcept override { observer_.spot_quiet(*this); }
  void on_handler_ended(record& r) noexcept override;
  void on_rest(steady_time now) noexcept override { note_work(now); }

  instance_spot_context make_instance_context();
  spot_context make_spot_context();
  entry_spot_context make_entry_context();

private:
  ~spot_object() override;
  bool gates_timers() const noexcept override;
  class serving_scope;
  dispatched dispatch_message(record* r);
  dispatched dispatch_event(record* r);
  handler_table_builder& registrations();
  void pass_pending_boundary();
  void pass_boundary();

  spot_observer& observer_;
  const spot_factory* factory_;
  std::unique_ptr<spot_application> application_;
  const handler_table* handlers_ = nullptr;
  handler_table_builder* configuring_ = nullptr;
  caf::behavior behavior_;
  std::unique_ptr<face_port> face_;
  behavior_call* serving_ = nullptr;
  std::atomic<std::int64_t> last_work_{0};
  spot_members members_;
  std::atomic<bool> has_place_{false};
  bool first_record_pending_ = false;
  bool boundary_pending_ = false; ///< signalled, and not passed yet
  unique_function<void()> at_boundary_;
};

/// Why a turn that has signalled readiness starts nothing else.
error readiness_error();

} // namespace zlink::detail
