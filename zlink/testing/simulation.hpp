// One thread on which everything of a test runs: CAF's jobs, the serial units and worker bodies of all hosts, and whatever
// travels between them. A seed decides what runs next, and time moves only while nothing can run (design 7).
#pragma once

#include "zlink/execution/executor.hpp"
#include "zlink/testing/virtual_time.hpp"
#include "zlink/unique_function.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <caf/fwd.hpp>

namespace caf::scheduler {
class test_coordinator;
}

namespace zlink::detail {
struct execution_domain;
}

namespace zlink::testing {

/// Thrown when what a test waits for does not come; the text names what waits, and the seed.
class stalled : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Which machine something belongs to; `nowhere` runs always.
using machine_id = std::size_t;
inline constexpr machine_id nowhere = static_cast<machine_id>(-1);

/// Used by the thread that made it only.
class simulation {
public:
  explicit simulation(std::uint64_t seed);
  ~simulation();
  simulation(const simulation&) = delete;
  simulation& operator=(const simulation&) = delete;

  caf::actor_system& system() noexcept { return *system_; }
  const std::shared_ptr<virtual_time>& time() const noexcept { return time_; }
  steady_time now() const noexcept { return time_->now; }
  std::uint64_t random() { return order_.next(); }

  // -- machines --------------------------------------------------------------------------------------------------------

  /// Serial units and workers that stop and go on with that machine.
  std::shared_ptr<execution_environment> make_environment(machine_id machine);
  /// CAF runs gates of this domain only while the machine runs.
  void add_domain(const detail::execution_domain& domain, machine_id machine);
  /// Nothing of the machine runs until `resume`; its timers still become due.
  void suspend(machine_id machine);
  void resume(machine_id machine);

  // -- work --------------------------------------------------------------------------------------------------------------

  /// A job that runs in any order with others.
  void post(machine_id machine, unique_function<void()> job);
  /// As `post`, `delay` from now; counts as work under way, which `settle` waits for.
  void deliver_after(steady_duration delay, unique_function<void()> job);
  /// As `post`, `delay` from now; a timer like any other.
  void call_after(steady_duration delay, unique_function<void()> job);

  // -- driving -----------------------------------------------------------------------------------------------------------

  /// Runs, moving time when nothing can run, until `done()`; false if that cannot come before `limit`.
  bool run_until(const std::function<bool()>& done, steady_time limit);
  /// Runs until `limit` and moves time there.
  void run_to(steady_time limit);
  /// Runs until nothing is left but timers; false if that does not come before `limit`.
  bool settle(steady_time limit);
  /// Runs whatever can run now; time stands.
  void drain();
  /// Time passes while nothing runs, as when a machine wakes from sleep.
  void jump(steady_duration by);
  /// Forgets every delivery and call for later; alarms of serial units stay.
  void drop_deliveries();

  /// Grows with every decision: equal for equal runs.
  std::uint64_t trace_hash() const noexcept { return trace_; }
  /// What could still happen, for the text of `stalled`.
  std::string describe() const;

private:
  class queue;
  class unit;
  class workers;
  class environment;
  enum class timer_kind : std::uint8_t { alarm, call, delivery };
  struct timer {
    unique_function<void()> ring;
    timer_kind kind = timer_kind::alarm;
  };
  using timers = std::multimap<steady_time, timer>;

  void list(queue& which);
  void ring_at(steady_time when, unique_function<void()> job, timer_kind kind);
  bool run_one();
  void run_candidate(std::size_t at);
  std::vector<std::size_t> candidates() const;
  bool is_suspended(const queue& which) const;
  bool is_suspended(const caf::resumable* job) const;
  std::optional<steady_time> next_time() const;
  void move_to(steady_time when);
  void note(std::uint64_t value) noexcept;

  std::thread::id thread_;
  std::shared_ptr<virtual_time> time_;
  seeded_random order_;
  std::unique_ptr<caf::actor_system_config> config_;
  std::unique_ptr<caf::actor_system> system_;
  caf::scheduler::test_coordinator* caf_;
  timers timers_;
  std::size_t deliveries_ = 0; ///< among the timers
  std::vector<std::shared_ptr<queue>> ready_;
  std::map<machine_id, std::shared_ptr<queue>> loose_; ///< jobs of no unit
  std::map<const detail::execution_domain*, machine_id> domains_;
  std::set<machine_id> suspended_;
  const queue* running_ = nullptr;
  std::uint64_t jobs_at_this_instant_ = 0;
  std::uint64_t trace_ = 14695981039346656037ULL;
};

} // namespace zlink::testing
