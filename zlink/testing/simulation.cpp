#include "zlink/testing/simulation.hpp"

#include "zlink/caf/packet_ops.hpp"
#include "zlink/execution/gate.hpp"
#include "zlink/testing/job_queue.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace zlink::testing {

namespace {

/// A run that needs more jobs than this without time passing goes round in circles.
constexpr std::uint64_t most_jobs_at_one_instant = 20'000'000;

struct simulated_config : caf::actor_system_config {
  simulated_config() {
    set("scheduler.policy", caf::atom("testing"));
    for (const auto* type : detail::registered_packets())
      if (const auto* ops = type->caf.load())
        detail::announce(*ops, *this);
  }
};

} // namespace

simulation::simulation(std::uint64_t seed)
  : thread_(std::this_thread::get_id()),
    time_(std::make_shared<virtual_time>()),
    order_(seed, nowhere),
    config_(std::make_unique<simulated_config>()),
    system_(std::make_unique<caf::actor_system>(*config_)),
    caf_(&dynamic_cast<caf::scheduler::test_coordinator&>(system_->scheduler())) {
  system_->await_actors_before_shutdown(false); // nobody but this thread could end them
}

simulation::~simulation() {
  drop_deliveries();
  std::exchange(ready_, {}).clear();
}

// -- machines -------------------------------------------------------------------------------------------------------

std::shared_ptr<execution_environment> simulation::make_environment(machine_id machine) {
  return std::make_shared<environment>(*this, machine);
}

void simulation::add_domain(const detail::execution_domain& domain, machine_id machine) { domains_[&domain] = machine; }

void simulation::suspend(machine_id machine) { suspended_.insert(machine); }

void simulation::resume(machine_id machine) { suspended_.erase(machine); }

bool simulation::is_suspended(const queue& which) const { return suspended_.contains(which.machine()); }

bool simulation::is_suspended(const caf::resumable* job) const {
  const auto* gate = dynamic_cast<const detail::gate*>(job);
  if (gate == nullptr)
    return false; // an actor of the test
  const auto home = domains_.find(&gate->domain());
  return home != domains_.end() && suspended_.contains(home->second);
}

// -- work -----------------------------------------------------------------------------------------------------------

void simulation::post(machine_id machine, unique_function<void()> job) {
  assert(std::this_thread::get_id() == thread_);
  auto& loose = loose_[machine];
  if (!loose)
    loose = std::make_shared<queue>(*this, machine, queue::any_order);
  loose->push(std::move(job));
}

void simulation::deliver_after(steady_duration delay, unique_function<void()> job) {
  if (delay <= steady_duration::zero())
    post(nowhere, std::move(job));
  else
    ring_at(now() + delay, std::move(job), timer_kind::delivery);
}

void simulation::call_after(steady_duration delay, unique_function<void()> job) {
  ring_at(now() + delay, std::move(job), timer_kind::call);
}

void simulation::ring_at(steady_time when, unique_function<void()> job, timer_kind kind) {
  if (kind == timer_kind::delivery)
    ++deliveries_;
  timers_.emplace(when, timer{[this, job = std::move(job)]() mutable { post(nowhere, std::move(job)); }, kind});
}

void simulation::list(queue& which) {
  assert(std::this_thread::get_id() == thread_);
  ready_.push_back(which.shared_from_this());
}

// -- driving --------------------------------------------------------------------------------------------------------

void simulation::note(std::uint64_t value) noexcept {
  for (int byte = 0; byte < 8; ++byte)
    trace_ = (trace_ ^ ((value >> (8 * byte)) & 0xff)) * 1099511628211ULL;
}

/// Places in CAF's jobs, then in `ready_`, of what may run.
std::vector<std::size_t> simulation::candidates() const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < caf_->jobs.size(); ++i)
    if (!is_suspended(caf_->jobs[i]))
      found.push_back(i);
  for (std::size_t i = 0; i < ready_.size(); ++i)
    if (!is_suspended(*ready_[i]))
      found.push_back(caf_->jobs.size() + i);
  return found;
}

bool simulation::run_one() {
  std::size_t many = caf_->jobs.size() + ready_.size();
  std::size_t at = 0;
  if (suspended_.empty()) {
    if (many == 0)
      return false;
    at = order_.below(many);
  } else {
    const auto able = candidates();
    if (able.empty())
      return false;
    many = able.size();
    at = able[order_.below(many)];
  }
  note(at);
  note(many);
  if (++jobs_at_this_instant_ > most_jobs_at_one_instant)
    throw stalled{"time does not move on: jobs make jobs without end\n" + describe()};
  run_candidate(at);
  return true;
}

void simulation::run_candidate(std::size_t at) {
  auto& jobs = caf_->jobs;
  if (at < jobs.size()) {
    const auto chosen = jobs.begin() + static_cast<std::ptrdiff_t>(at);
    std::rotate(jobs.begin(), chosen, chosen + 1);
    caf_->run_once();
    return;
  }
  const auto place = ready_.begin() + static_cast<std::ptrdiff_t>(at - jobs.size());
  const auto which = std::move(*place);
  ready_.erase(place);
  which->run_listed();
}

void simulation::drain() {
  while (run_one())
    ;
}

std::optional<steady_time> simulation::next_time() const {
  std::optional<steady_time> next;
  if (!timers_.empty())
    next = timers_.begin()->first;
  auto& caf_clock = caf_->clock();
  if (const auto& schedule = caf_clock.schedule(); !schedule.empty()) {
    const auto due = now() + (schedule.begin()->first - caf_clock.current_time);
    if (!next || due < *next)
      next = due;
  }
  return next;
}

void simulation::move_to(steady_time when) {
  const auto by = std::max(when, now()) - now();
  time_->now += by;
  jobs_at_this_instant_ = 0;
  note(static_cast<std::uint64_t>(now().time_since_epoch().count()));
  caf_->clock().advance_time(by);
  while (!timers_.empty() && timers_.begin()->first <= now()) {
    auto due = timers_.extract(timers_.begin());
    if (due.mapped().kind == timer_kind::delivery)
      --deliveries_;
    due.mapped().ring();
  }
}

bool simulation::run_until(const std::function<bool()>& done, steady_time limit) {
  for (;;) {
    while (!done())
      if (!run_one())
        break;
    if (done())
      return true;
    const auto next = next_time();
    if (!next || *next > limit)
      return false;
    move_to(*next);
  }
}

void simulation::run_to(steady_time limit) {
  run_until([] { return false; }, limit);
  move_to(limit);
  drain();
}

bool simulation::settle(steady_time limit) {
  for (;;) {
    drain();
    if (deliveries_ == 0)
      return true;
    const auto next = next_time();
    if (!next || *next > limit)
      return false;
    move_to(*next);
  }
}

void simulation::jump(steady_duration by) { move_to(now() + by); }

void simulation::drop_deliveries() {
  deliveries_ = 0;
  timers dropped; // what they own may make new ones while it goes
  for (auto i = timers_.begin(); i != timers_.end();) {
    const auto next = std::next(i);
    if (i->second.kind != timer_kind::alarm)
      dropped.insert(timers_.extract(i));
    i = next;
  }
}

std::string simulation::describe() const {
  const auto elapsed = [](steady_duration d) {
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(d).count()) + " ms";
  };
  std::string text = "  " + elapsed(now().time_since_epoch() - std::chrono::hours{1}) + " have passed; "
                     + std::to_string(deliveries_) + " deliveries and " + std::to_string(timers_.size() - deliveries_)
                     + " timers wait";
  if (const auto next = next_time())
    text += ", the next for " + elapsed(*next - now());
  for (const auto& which : ready_)
    if (is_suspended(*which))
      text += "\n  " + which->name() + " has jobs but its machine stands still";
  return text;
}

} // namespace zlink::testing
