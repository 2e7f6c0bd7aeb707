#include "zlink/objects/hosted_object.hpp"

#include "zlink/objects/object_timers.hpp"

#include <memory>

namespace zlink::detail {

hosted_object::hosted_object(const object_home& home, execution_domain& domain, counted_ptr<gate> gate, std::string address)
  : execution_object(domain, std::move(gate), admission_word::staging_bit), home_node_(home), address_(std::move(address)),
    address_hash_(std::hash<std::string_view>{}(address_)) {}

hosted_object::~hosted_object() { delete timers_.load(); }

object_timers& hosted_object::timers() {
  auto* there = timers_.load(std::memory_order_acquire);
  if (there != nullptr)
    return *there;
  auto made = std::make_unique<object_timers>(*this, gates_timers());
  if (!timers_.compare_exchange_strong(there, made.get(), std::memory_order_acq_rel))
    return *there;
  return *made.release();
}

bool hosted_object::timers_idle() const noexcept {
  auto* there = timers_.load(std::memory_order_acquire);
  return there == nullptr || there->idle();
}

void hosted_object::end_timers() noexcept {
  const std::unique_ptr<object_timers> ended{timers_.exchange(nullptr, std::memory_order_acq_rel)};
  if (ended)
    ended->stop();
}

std::string hosted_object::subject_of(record& r) const {
  return r.kind == record_kind::tick ? static_cast<object_timer&>(*r.about).description() : execution_object::subject_of(r);
}

void hosted_object::on_handler_ended(record& r) noexcept {
  if (r.kind == record_kind::tick)
    static_cast<object_timer&>(*r.about).ended(r.body.kind() == payload_kind::error, domain().time->now());
}

dispatched hosted_object::dispatch_tick(record* r, steady_time now) {
  return {static_cast<object_timer&>(*r->about).dispatch(r, now), nullptr};
}

} // namespace zlink::detail
