#include "zlink/placement/pause.hpp"

#include "zlink/execution/operation.hpp"

#include <memory>
#include <utility>

namespace zlink::placement {

namespace {

/// Owns itself from `begin` until one of its ends.
class pause_end final : public detail::timed {
public:
  pause_end(detail::infrastructure& unit, steady_time due) : unit_(unit), due_(due) { over_->dispatcher = unit.unit(); }
  ~pause_end() override {
    if (!over_)
      return;
    // Its unit takes nothing any more: whoever waits is told here, and goes no further than its own end.
    over_->dispatcher = nullptr;
    over_->fail({error_kind::shutting_down, "the host has ended"});
  }
  task<void> task_of_it() const { return task<void>{over_}; }
  static void begin(std::unique_ptr<pause_end> one) {
    auto& unit = one->unit_;
    if (!unit.running_here()) {
      unit.post([held = std::move(one)]() mutable { begin(std::move(held)); });
      return;
    }
    auto* entry = one.release();
    unit.schedule(*entry, entry->due_);
  }
  void expired() noexcept override {
    const std::unique_ptr<pause_end> self{this};
    std::exchange(over_, nullptr)->set(result<void>{});
  }
  void dropped() noexcept override { delete this; }

private:
  detail::infrastructure& unit_;
  steady_time due_;
  detail::counted_ptr<detail::operation<void>> over_ = detail::new_counted<detail::operation<void>>();
};

} // namespace

task<void> pause(detail::infrastructure& unit, steady_duration delay) {
  auto end = std::make_unique<pause_end>(unit, unit.time().now() + delay);
  auto over = end->task_of_it();
  pause_end::begin(std::move(end));
  return over;
}

} // namespace zlink::placement
