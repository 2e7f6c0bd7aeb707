#include "zlink/execution/infrastructure.hpp"

#include <cassert>
#include <utility>

namespace zlink::detail {

namespace {

/// A job for later; owns itself until it has run.
class delayed_job final : public timed {
public:
  explicit delayed_job(unique_function<void()> job) : job_(std::move(job)) {}
  void expired() noexcept override {
    std::unique_ptr<delayed_job> self{this};
    job_();
  }
  void dropped() noexcept override { delete this; }

private:
  unique_function<void()> job_;
};

} // namespace

infrastructure::infrastructure(std::shared_ptr<serial_executor> unit, std::shared_ptr<const clock> time)
  : unit_(std::move(unit)), time_(std::move(time)), wheel_(time_->now()) {
  unit_->on_alarm([this] { on_alarm(); });
}

infrastructure::~infrastructure() { stop(); }

void infrastructure::stop() {
  const auto drop_timers = [this] {
    wheel_.advance(steady_time::max());
    while (auto* entry = wheel_.pop_expired())
      static_cast<timed*>(entry)->dropped();
  };
  unit_->post(drop_timers); // whoever waits for a timer hears of the end inside the unit
  unit_->stop();
  drop_timers();
}

void infrastructure::schedule(timed& entry, steady_time due) noexcept {
  assert(running_here());
  wheel_.cancel(entry);
  wheel_.insert(entry, due);
  arm();
}

void infrastructure::post_after(steady_duration delay, unique_function<void()> job) {
  const auto now = time_->now();
  const auto due = delay > steady_time::max() - now ? steady_time::max() : now + delay;
  post([this, due, job = std::move(job)]() mutable {
    schedule(*new delayed_job{std::move(job)}, due);
  });
}

void infrastructure::arm() noexcept {
  const auto due = wheel_.next_due();
  if (due != armed_)
    unit_->alarm_at(armed_ = due);
}

void infrastructure::on_alarm() noexcept {
  constexpr int together = 256; // between two batches what was posted meanwhile has its turn
  armed_ = steady_time::max();
  wheel_.advance(time_->now());
  for (int i = 0; i < together; ++i) {
    auto* entry = wheel_.pop_expired();
    if (entry == nullptr)
      break;
    static_cast<timed*>(entry)->expired();
  }
  arm();
}

} // namespace zlink::detail
