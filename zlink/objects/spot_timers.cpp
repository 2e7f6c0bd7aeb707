#include "zlink/objects/spot_timers.hpp"

#include "zlink/objects/spot_object.hpp"

namespace zlink::detail {

spot_timer::spot_timer(spot_object& object, std::shared_ptr<timer_state> state, std::chrono::milliseconds period,
                       timer_options options, tick_invoke invoke, steady_time now)
  : object_(counted_ptr<spot_object>::share(&object)), state_(std::move(state)), schedule_(period, options, now),
    invoke_(invoke), stop_on_exception_(options.stop_on_unhandled_exception), period_(period) {}

spot_timer::~spot_timer() = default;

void spot_timer::arm() { arm_at(schedule_.next_due()); }

void spot_timer::arm_at(steady_time due) {
  ref(); // the wheel's
  auto& infra = *object_->domain().infra;
  infra.post([this, &infra, due] {
    if (linked())
      unref(); // armed twice: the entry is moved, the reference was there
    infra.schedule(*this, due);
  });
}

void spot_timer::disarm() {
  auto& infra = *object_->domain().infra;
  infra.post([held = counted_ptr<spot_timer>::share(this), &infra] {
    if (infra.unschedule(*held))
      held->unref();
  });
}

void spot_timer::expired() noexcept {
  auto self = counted_ptr<spot_timer>::adopt(this);
  if (cancelled() || object_->application_word().has(admission_word::sealed_bit))
    return; // no tick is admitted after the closing seal
  const auto& domain = object_->domain();
  if (const auto now = domain.time->now(); !domain.admits(now)) {
    schedule_.drop_late_ticks(now); // nothing is queued without the lease, and no burst follows
    arm_at(now + period_);
    return;
  }
  pending_.store(true, std::memory_order_release);
  auto* r = make_record(record_kind::tick);
  r->about = counted_ptr<counted>{self};
  object_->submit_unchecked(r, true);
}

handler_run* spot_timer::dispatch(record* r, steady_time now) {
  if (cancelled())
    return nullptr;
  started_ = true;
  tick_ = schedule_.start(now);
  tick_.name = state_->name;
  return invoke_(*object_, r, tick_);
}

void spot_timer::ended(bool failed, steady_time now) {
  pending_.store(false, std::memory_order_release);
  const bool started = std::exchange(started_, false);
  if (started)
    schedule_.end(now);
  else
    schedule_.drop_late_ticks(now);
  if (failed && started && stop_on_exception_) // a refused tick is no exception of the handler
    cancel();
  if (!cancelled() && !object_->fenced())
    arm();
}

timer spot_timers::add(std::string name, std::chrono::milliseconds period, timer_options options, tick_invoke invoke) {
  std::uint64_t generation = 1;
  auto& place = by_name_[name];
  if (place) {
    generation = place->state()->generation + 1;
    place->cancel();
    place->disarm();
  }
  auto state = std::make_shared<timer_state>(std::move(name), generation);
  place = new_counted<spot_timer>(object_, state, period, options, invoke, object_.domain().time->now());
  place->arm();
  return timer{std::move(state)};
}

void spot_timers::stop() noexcept {
  for (auto& [name, registration] : by_name_)
    registration->disarm();
}

bool spot_timers::idle() noexcept {
  for (auto i = by_name_.begin(); i != by_name_.end();) {
    if (!i->second->cancelled())
      return false;
    i->second->disarm();
    i = by_name_.erase(i);
  }
  return true;
}

} // namespace zlink::detail
