#include "zlink/objects/spot_object.hpp"

#include "zlink/caf/behavior_call.hpp"
#include "zlink/caf/face.hpp"
#include "zlink/objects/build_step.hpp"

#include <cassert>

namespace zlink::detail {

spot_object::spot_object(const object_home& home, spot_observer& observer, execution_domain& domain,
                         counted_ptr<gate> gate, const spot_factory& factory, std::string id)
  : hosted_object(home, domain, std::move(gate), std::move(id)), observer_(observer), factory_(&factory) {}

spot_object::~spot_object() { assert(application_ == nullptr && "disposed inside its gate before"); }

bool spot_object::take_place() noexcept {
  if (factory_->kind == spot_kind::entry || has_place_.load(std::memory_order_acquire))
    return true;
  const auto& node = home_node();
  const bool taken = take_both(node.spots, node.spot_limit, factory_->in_being, factory_->limit);
  has_place_.store(taken, std::memory_order_release);
  return taken;
}

void spot_object::return_place() noexcept {
  if (!has_place_.exchange(false, std::memory_order_acq_rel))
    return;
  factory_->in_being.give_back();
  home_node().spots.give_back();
}

void spot_object::construct() {
  handler_table_builder registrations;
  application_ = factory_->make(*this);
  if (application_ == nullptr || &application_->bound_object() != this)
    throw operation_failed{error{error_kind::internal_failure,
                                 "the factory of spot type \"" + factory_->type + "\" returned "
                                   + (application_ ? "an instance with a foreign context" : "nothing")
                                   + "; construct the instance with the context it was given"}};
  configuring_ = &registrations;
  try {
    application_->configure();
  } catch (...) {
    configuring_ = nullptr;
    throw;
  }
  configuring_ = nullptr;
  auto entries = registrations.take();
  if (!entries.empty())
    handlers_ = factory_->tables.intern(std::move(entries));
  behavior_ = application_->make_behavior();
}

void spot_object::dispose() noexcept {
  fence();
  return_place();
  end_timers();
  behavior_ = caf::behavior{};
  handlers_ = nullptr;
  application_.reset();
  if (face_)
    face_->close();
  face_.reset();
}

std::string_view spot_object::surface() const noexcept {
  return factory_->kind == spot_kind::instance ? "instance_spot" : "spot";
}

bool spot_object::gates_timers() const noexcept {
  return factory_->kind == spot_kind::user && factory_->mode == execution_mode::per_actor;
}

caf::event_based_actor* spot_object::self() {
  if (const auto* t = current_turn(); t != nullptr && t->object != this && &t->object->whole() == this)
    throw operation_failed{error{error_kind::invalid_operation,
                                 "self() in a timer of a PerActor Spot, which runs beside the Spot's own turns; send to the "
                                 "spot instead"}};
  if (!face_) {
    face_ = std::make_unique<face_port>(*this);
    if (serving_ != nullptr)
      serving_->use(*face_); // the record being served can be answered by a promise too
  }
  return face_->actor();
}

handler_table_builder& spot_object::registrations() {
  if (configuring_ == nullptr)
    throw operation_failed{error{error_kind::invalid_operation, "handlers are registered inside configure() only"}};
  return *configuring_;
}

void spot_object::register_handler(handler_entry entry) { registrations().add(std::move(entry)); }

void spot_object::register_subscription(event_entry entry) { registrations().add(std::move(entry)); }

void spot_object::register_actor_handler(actor_handler_entry entry) { registrations().add(std::move(entry)); }

std::span<const event_entry> spot_object::events() const noexcept {
  return handlers_ == nullptr ? std::span<const event_entry>{} : std::span{handlers_->set().events};
}

dispatched spot_object::dispatch(record* r) {
  if (r->kind == record_kind::tick)
    return dispatch_tick(r, home().now());
  return r->extra && !r->extra->topic.empty() ? dispatch_event(r) : dispatch_message(r);
}

/// Something that was published: served by the subscription to it, or not at all (M-117).
dispatched spot_object::dispatch_event(record* r) {
  const auto* entry = handlers_ == nullptr
                        ? nullptr
                        : handlers_->find_event(r->extra->channel, r->extra->topic, r->body.get<message>()->packet_name());
  return {entry == nullptr ? nullptr : entry->invoke(*this, r), nullptr};
}

/// While a behaviour serves a record, `self()` may need to know.
class spot_object::serving_scope {
public:
  serving_scope(behavior_call*& place, behavior_call& call) noexcept : place_(place) { place_ = &call; }
  ~serving_scope() { place_ = nullptr; }
  serving_scope(const serving_scope&) = delete;
  serving_scope& operator=(const serving_scope&) = delete;

private:
  behavior_call*& place_;
};

dispatched spot_object::dispatch_message(record* r) {
  const bool request = r->kind == record_kind::request;
  const handler_entry* entry = nullptr;
  if (handlers_ != nullptr)
    entry = find_handler(*handlers_, r->body, request);
  if (entry != nullptr)
    return {entry->invoke(*this, r), nullptr};
  if (behavior_) {
    behavior_call call{*this, *r};
    if (face_)
      call.use(*face_);
    const serving_scope serving{serving_, call};
    const auto outcome = call.run(behavior_);
    if (outcome == behavior_outcome::done)
      return {};
    if (outcome == behavior_outcome::parked)
      return {nullptr, call.answer()};
  }
  note_no_handler(*this, *r);
  error what{error_kind::not_found, "spot \"" + id() + "\" of type \"" + factory_->type + "\" has no handler for "
                                      + (request ? "requests" : "sends") + " of packet \"" + packet_name_of(r->body) + '"'};
  r->body.reset();
  if (request)
    r->body.emplace<error>(std::move(what));
  return {};
}

void spot_object::consume_caf_event(record& r) {
  if (face_)
    face_->consume(r);
}

std::optional<error_kind> spot_object::yield_refused() const noexcept {
  const bool shared = factory_->kind == spot_kind::instance
                      || (factory_->kind == spot_kind::user && factory_->mode == execution_mode::spot_wide);
  if (shared)
    return std::nullopt;
  return error_kind::invalid_configuration;
}

void spot_object::on_handler_ended(record& r) noexcept {
  hosted_object::on_handler_ended(r);
  if (std::exchange(first_record_pending_, false))
    observer_.first_record_ended(*this);
  pass_pending_boundary();
}

error readiness_error() {
  return {error_kind::invalid_operation, "this turn has called relocation_ready().defer(); it starts nothing else"};
}

void spot_object::signal_readiness() {
  const auto refuse = [](const char* why) { throw operation_failed{error{error_kind::invalid_operation, why}}; };
  const auto* t = current_turn();
  if (t == nullptr || t->object != this)
    refuse("relocation_ready().defer() belongs inside a turn of its spot");
  if (!factory_->application_signaled || factory_->mode != execution_mode::spot_wide)
    refuse("relocation_ready().defer() needs a SpotWide spot type registered with application_signaled()");
  if (readiness_signaled())
    throw operation_failed{readiness_error()};
  if (fenced())
    throw operation_failed{error{error_kind::unavailable, "the spot has closed"}};
  note_readiness_signaled();
  if (t->run != nullptr && t->run->is_step()) {
    pass_boundary(); // behind this step
    return;
  }
  boundary_pending_ = true;
  home().post([held = counted_ptr<spot_object>::share(this)] { held->pass_pending_boundary(); }); // no record ends a callback
}

void spot_object::pass_pending_boundary() {
  if (boundary_pending_ && active_runs == nullptr)
    pass_boundary();
}

/// Messages and ticks wait until the application knows (L-46).
void spot_object::pass_boundary() {
  boundary_pending_ = false;
  const bool was_open = open();
  set_open(false);
  if (auto told = std::exchange(at_boundary_, {})) { // a move has waited for this
    told();
    return;
  }
  submit_step(make_readiness_step(spot_relocation_ready_outcome::continued, [was_open](execution_object& object) {
    if (was_open)
      object.set_open(true);
  }));
}

instance_spot_context spot_object::make_instance_context() {
  return instance_spot_context{counted_ptr<spot_object>::share(this)};
}
spot_context spot_object::make_spot_context() { return spot_context{counted_ptr<spot_object>::share(this)}; }
entry_spot_context spot_object::make_entry_context() {
  return entry_spot_context{counted_ptr<spot_object>::share(this)};
}

} // namespace zlink::detail
