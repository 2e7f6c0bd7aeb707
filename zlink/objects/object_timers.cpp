#include "zlink/objects/object_timers.hpp"

#include "zlink/objects/hosted_object.hpp"

namespace zlink::detail {

/// One timer name of a PerActor Spot: its ticks are ordered and exclusive among themselves, and run beside everything else
/// of the Spot, against whose application lane they count.
class object_timers::part final : public execution_object {
public:
  explicit part(hosted_object& spot)
    : execution_object(spot.domain(), new_counted<gate>(spot.domain()), 0, &spot),
      spot_(counted_ptr<hosted_object>::share(&spot)) {
    watch_quiet(true);
  }
  std::string_view mesh_name() const noexcept override { return spot_->mesh_name(); }
  std::string_view surface() const noexcept override { return spot_->surface(); }
  std::string_view spot_id() const noexcept override { return spot_->spot_id(); }
  std::string subject_of(record& r) const override { return spot_->subject_of(r); }
  std::optional<error_kind> yield_refused() const noexcept override { return spot_->yield_refused(); }

  dispatched dispatch(record* r) override {
    return {static_cast<object_timer&>(*r->about).dispatch(r, home().now()), nullptr};
  }
  void on_handler_ended(record& r) noexcept override {
    ++ended_;
    static_cast<object_timer&>(*r.about).ended(r.body.kind() == payload_kind::error, domain().time->now());
  }
  void on_refused(record&) noexcept override { ++ended_; }
  void on_quiet() noexcept override {
    if (ended_ != 0)
      spot_->part_quiet(std::exchange(ended_, 0));
  }

private:
  counted_ptr<hosted_object> spot_;
  std::uint32_t ended_ = 0; ///< records that the Spot still counts as busy
};

object_timer::object_timer(hosted_object& object, execution_object& target, std::shared_ptr<timer_state> state,
                       std::chrono::milliseconds period, timer_options options, tick_invoke invoke, steady_time now)
  : object_(counted_ptr<hosted_object>::share(&object)), target_(counted_ptr<execution_object>::share(&target)),
    state_(std::move(state)), schedule_(period, options, now), invoke_(invoke),
    options_(options), period_(period) {}

object_timer::object_timer(hosted_object& object, const timer_snapshot& carried, tick_invoke invoke, bool pending, steady_time now)
  : object_(counted_ptr<hosted_object>::share(&object)), target_(counted_ptr<execution_object>::share(&object)),
    state_(std::make_shared<timer_state>(carried.name, carried.generation)),
    schedule_(carried.period, carried.options, carried.progress, now), invoke_(invoke), options_(carried.options),
    pending_(pending), period_(carried.period) {}

timer_snapshot object_timer::snapshot(steady_time now) const {
  return {state_->name, invoke_, period_, options_, schedule_.progress(now), state_->generation, this};
}

object_timer::~object_timer() = default;

void object_timer::arm() {
  object_->domain().infra->post([self = counted_ptr<object_timer>::share(this)] {
    if (!self->pending_)
      self->schedule(self->schedule_.next_due());
  });
}

/// Inside the unit.
void object_timer::schedule(steady_time due) {
  if (!linked())
    ref(); // the wheel's
  object_->domain().infra->schedule(*this, due);
}

void object_timer::disarm() {
  auto& infra = *object_->domain().infra;
  infra.post([held = counted_ptr<object_timer>::share(this), &infra] {
    if (infra.unschedule(*held))
      held->unref();
  });
}

void object_timer::expired() noexcept {
  auto self = counted_ptr<object_timer>::adopt(this);
  if (cancelled() || object_->application_word().has(admission_word::sealed_bit))
    return;
  const auto& domain = object_->domain();
  if (const auto now = domain.time->now(); !domain.admits(now)) {
    schedule_.drop_late_ticks(now); // nothing is queued without the lease, and no burst follows
    schedule(now + period_);
    return;
  }
  auto* r = make_record(record_kind::tick);
  r->about = counted_ptr<counted>{self};
  const bool of_part = target_.get() != object_.get();
  if (of_part)
    object_->part_busy();
  pending_ = true;
  if (target_->submit_arrival(r, true) == admission::admitted)
    return;
  pending_ = false;
  free_record(r); // no tick is admitted after the closing seal
  if (of_part)
    object_->part_quiet(1);
}

std::string object_timer::description() const {
  return "timer \"" + state_->name + "\", callback " + std::to_string(tick_.delivery_index)
         + (options_.stop_on_unhandled_exception ? ", its last" : "");
}

handler_run* object_timer::dispatch(record* r, steady_time now) {
  if (cancelled())
    return nullptr;
  started_ = true;
  tick_ = schedule_.start(now);
  tick_.name = state_->name;
  return invoke_(*object_, r, tick_);
}

void object_timer::ended(bool failed, steady_time now) {
  const bool started = std::exchange(started_, false);
  if (started)
    schedule_.end(now);
  else
    schedule_.drop_late_ticks(now);
  if (failed && started && options_.stop_on_unhandled_exception) // a refused tick is no exception of the handler
    cancel();
  if (cancelled() || object_->fenced())
    return;
  object_->domain().infra->post([self = counted_ptr<object_timer>::share(this)] {
    self->pending_ = false;
    self->schedule(self->schedule_.next_due());
  });
}

counted_ptr<execution_object> object_timers::make_target() {
  return gate_each_ ? counted_ptr<execution_object>{new_counted<part>(object_)} : counted_ptr<execution_object>::share(&object_);
}

timer object_timers::add(std::string name, std::chrono::milliseconds period, timer_options options, tick_invoke invoke) {
  std::lock_guard guard{mutex_};
  std::uint64_t generation = 1;
  auto& [registration, runs_in] = by_name_[name];
  if (registration) {
    generation = registration->state()->generation + 1;
    registration->cancel();
    registration->disarm();
  } else {
    runs_in = make_target(); // for all registrations of the name: ticks of one name never overlap
  }
  auto state = std::make_shared<timer_state>(std::move(name), generation);
  registration = new_counted<object_timer>(object_, *runs_in, state, period, options, invoke, object_.domain().time->now());
  if (!held_)
    registration->arm();
  return timer{std::move(state)};
}

void object_timers::hold() noexcept {
  std::lock_guard guard{mutex_};
  held_ = true;
}

void object_timers::go_on() {
  std::lock_guard guard{mutex_};
  held_ = false;
  for (auto& [name, at] : by_name_)
    if (!at.registration->cancelled())
      at.registration->arm();
}

std::vector<timer_snapshot> object_timers::snapshot(steady_time now) {
  std::vector<timer_snapshot> all;
  std::lock_guard guard{mutex_};
  for (auto& [name, at] : by_name_)
    if (!at.registration->cancelled() && at.runs_in.get() == &object_)
      all.push_back(at.registration->snapshot(now));
  return all;
}

counted_ptr<object_timer> object_timers::restore(const timer_snapshot& carried, tick_invoke invoke, bool pending) {
  std::lock_guard guard{mutex_};
  auto& at = by_name_[carried.name];
  if (at.registration)
    at.registration->cancel();
  at.runs_in = counted_ptr<execution_object>::share(&object_);
  at.registration = new_counted<object_timer>(object_, carried, invoke, pending, object_.domain().time->now());
  return at.registration;
}

void object_timers::stop() noexcept {
  std::lock_guard guard{mutex_};
  for (auto& [name, at] : by_name_)
    at.registration->disarm();
}

void object_timers::end_parts(const error& why) {
  std::lock_guard guard{mutex_};
  for (auto& [name, at] : by_name_)
    if (at.runs_in.get() != &object_)
      at.runs_in->home().post([part = at.runs_in, why] {
        part->refuse_waiting(why);
        part->home().fail_operations(*part, why);
      });
}

bool object_timers::idle() noexcept {
  std::lock_guard guard{mutex_};
  for (auto i = by_name_.begin(); i != by_name_.end();) {
    if (!i->second.registration->cancelled())
      return false;
    i->second.registration->disarm();
    i = by_name_.erase(i);
  }
  return true;
}

} // namespace zlink::detail
