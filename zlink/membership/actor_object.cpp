#include "zlink/membership/actor_object.hpp"

#include "zlink/actor.hpp"
#include "zlink/objects/spot_object.hpp"

#include <cassert>

namespace zlink::detail {

namespace {

/// With its members.
bool shares_gate(const spot_object& spot) noexcept {
  return spot.factory().kind == spot_kind::user && spot.factory().mode == execution_mode::spot_wide;
}

} // namespace

actor_object::actor_object(const object_home& home, execution_domain& domain, counted_ptr<gate> own,
                           const actor_factory& factory, const std::string& id)
  : hosted_object(home, domain, own, actor_address(id)), factory_(&factory), own_gate_(std::move(own)) {}

actor_object::~actor_object() { assert(application_ == nullptr && "disposed inside its gate before"); }

bool actor_object::take_place() noexcept {
  if (has_place_.load(std::memory_order_acquire))
    return true;
  const bool taken = home_node().actors.take(home_node().actor_limit);
  has_place_.store(taken, std::memory_order_release);
  return taken;
}

void actor_object::return_place() noexcept {
  if (!has_place_.exchange(false, std::memory_order_acq_rel))
    return;
  home_node().actors.give_back();
}

actor_ref actor_object::ref_here() const { return {id(), generation().value, home_node().mesh_name, home_node().node_rid}; }

placement::spot_membership actor_object::membership() const {
  std::lock_guard guard{mutex_};
  return membership_;
}

counted_ptr<spot_object> actor_object::spot() const {
  std::lock_guard guard{mutex_};
  return spot_;
}

bool actor_object::may_be_handled_by(const execution_object& other) const {
  const auto at = spot();
  if (at)
    return at.get() == &other;
  const auto* entry = dynamic_cast<const spot_object*>(&other);
  return entry != nullptr && entry->factory().kind == spot_kind::entry;
}

void actor_object::committed(placement::spot_membership membership, counted_ptr<spot_object> spot) {
  std::lock_guard guard{mutex_};
  membership_ = std::move(membership);
  std::swap(spot_, spot); // the former one is released outside of the lock
}

std::optional<session_binding> actor_object::session() const {
  std::lock_guard guard{mutex_};
  return session_ ? std::optional{*session_} : std::nullopt;
}

void actor_object::bind_session(std::optional<session_binding> binding) {
  auto next = binding ? std::make_unique<const session_binding>(std::move(*binding)) : nullptr;
  std::lock_guard guard{mutex_};
  session_ = std::move(next);
}

void actor_object::construct() {
  application_ = factory_->make(*this);
  if (application_ == nullptr || &application_->bound_object() != this)
    throw operation_failed{error{error_kind::internal_failure,
                                 "the factory of actor type \"" + factory_->type + "\" returned "
                                   + (application_ ? "an instance with a foreign context" : "nothing")
                                   + "; construct the instance with the context it was given"}};
  application_->configure();
}

void actor_object::dispose() noexcept {
  fence();
  return_place();
  end_timers();
  application_.reset();
  serving_ = nullptr;
  std::lock_guard guard{mutex_};
  spot_ = nullptr;
  session_ = nullptr;
}

bool actor_object::at_rest() const noexcept {
  const auto* step = current_run();
  const bool only_this = active_runs == step && (step == nullptr || step->next_active == nullptr);
  return only_this && outstanding == 0;
}

bool actor_object::will_need(const gate& held) const {
  const auto at = spot();
  return at && shares_gate(*at) && &at->home() == &held;
}

void actor_object::settle_down() {
  if (fenced())
    return; // it has ended meanwhile
  serving_ = spot();
  auto next = shares_gate(*serving_) ? counted_ptr<gate>::share(&serving_->home()) : own_gate_;
  if (next.get() != &home())
    move_home(std::move(next));
}

dispatched actor_object::dispatch(record* r) {
  if (r->kind == record_kind::tick)
    return dispatch_tick(r, home().now());
  const bool request = r->kind == record_kind::request;
  const auto* table = serving_ ? serving_->handlers() : nullptr;
  if (table != nullptr)
    if (const auto* entry = find_actor_handler(*table, r->body, request))
      return {entry->invoke(*this, *serving_, r), nullptr};
  note_no_handler(*this, *r);
  error what{error_kind::not_found, "spot \"" + std::string{serving_ ? serving_->spot_id() : ""} + "\", which "
                                      + described(address()) + " belongs to, has no Actor handler for "
                                      + (request ? "requests" : "sends") + " of packet \"" + packet_name_of(r->body) + '"'};
  r->body.reset();
  if (request)
    r->body.emplace<error>(std::move(what));
  return {};
}

std::optional<error_kind> actor_object::yield_refused() const noexcept {
  return serving_ ? serving_->yield_refused() : error_kind::invalid_configuration;
}

void actor_object::on_quiet() noexcept {
  watch_quiet(false);
  if (auto told = std::exchange(when_quiet_, {}))
    told();
}

} // namespace zlink::detail
