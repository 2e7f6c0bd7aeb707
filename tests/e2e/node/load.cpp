#include "tests/e2e/node/load.hpp"

namespace zlink::test {

namespace {

constexpr std::uint64_t slow_ones = 16; // every so many-th request has a turn that waits

/// A host that shuts down refuses at once, over and over; one that is being emptied makes calls as before (L-260).
bool takes_calls(host_state now) {
  return now == host_state::serving || now == host_state::relocating || now == host_state::relocated;
}

} // namespace

void load::add(host& from, const load_plan& plan) {
  std::lock_guard guard{mutex_};
  resting_ = false;
  const auto sender = log_.name() + ".s" + std::to_string(++senders_);
  const auto now = time_.now();
  for (std::size_t i = 0; i < plan.count; ++i) {
    called first{plan.ids + std::to_string(i), sender, 0, plan.one_way, plan.intent, plan.actor, plan.timeout};
    streams_.push_back({&from, std::move(first), plan.pause});
    due_.push({now, &streams_.back()});
  }
  if (!runner_.joinable())
    runner_ = std::thread{[this] { run(); }};
  changed_.notify_all();
}

std::uint64_t load::rest() {
  std::unique_lock guard{mutex_};
  resting_ = true;
  due_ = {};
  changed_.wait(guard, [this] { return under_way_ == 0; });
  streams_.clear();
  return started_;
}

void load::end() {
  {
    std::unique_lock guard{mutex_};
    resting_ = true;
    ended_ = true;
    changed_.notify_all();
    changed_.wait_for(guard, std::chrono::seconds{5}, [this] { return under_way_ == 0; });
  }
  if (runner_.joinable())
    runner_.join();
}

void load::run() {
  std::unique_lock guard{mutex_};
  while (!ended_) {
    if (resting_ || due_.empty()) {
      changed_.wait(guard);
      continue;
    }
    const auto wait = due_.top().at - time_.now();
    if (wait.count() > 0) {
      changed_.wait_for(guard, wait);
      continue;
    }
    auto& next = *due_.top().which;
    due_.pop();
    ++under_way_;
    ++started_;
    guard.unlock();
    start(next);
    guard.lock();
  }
}

void load::start(stream& one) {
  auto& c = one.next;
  ++c.number;
  const auto then = [this, &one](const auto&) { on_end(one); };
  if (c.one_way)
    start_send(log_, *one.from, c, then);
  else if (c.number % slow_ones == 0 && c.intent) // a ledger
    start_request<stroke_done>(log_, *one.from, c, slow_stroke{c.sender, c.number}, then);
  else
    start_request<stroke_done>(log_, *one.from, c, stroke{c.sender, c.number}, then);
}

void load::on_end(stream& one) {
  std::lock_guard guard{mutex_};
  --under_way_;
  if (!resting_ && takes_calls(one.from->status().state))
    due_.push({time_.now() + one.pause, &one});
  changed_.notify_all();
}

} // namespace zlink::test
