// Instance Spots that nobody has used for a while are closed (C-107, C-108).
#include "zlink/host/host_runtime.hpp"

namespace zlink::detail {

namespace {

bool unused_for_long(const spot_object& spot, steady_time now) noexcept {
  const auto timeout = spot.home_node().instance_idle_timeout;
  return timeout.count() != 0 && now - spot.last_work() >= timeout;
}

} // namespace

bool closing::is_idle(spot_object& spot) const {
  return spot.quiet_besides_this_step() && spot.timers_idle() && unused_for_long(spot, host_.time->now());
}

void closing::sweep_idle() {
  constexpr std::size_t most = 64; // C-108
  if (sweep_position_ >= sweep_.size()) {
    sweep_ = host_.objects.snapshot();
    sweep_position_ = 0;
  }
  const auto now = host_.time->now();
  for (std::size_t looked_at = 0; looked_at < most && sweep_position_ < sweep_.size(); ++looked_at) {
    auto object = std::move(sweep_[sweep_position_++]);
    if (object->factory().kind == spot_kind::instance && unused_for_long(*object, now)
        && !object->application_word().has(admission_word::staging_bit | admission_word::sealed_bit))
      close(object, spot_close_reason::idle_evicted, now + object->home_node().request_timeout, nullptr);
  }
}

} // namespace zlink::detail
