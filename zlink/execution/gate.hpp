// The right to run one application turn, and the unit that CAF schedules (D-1). Where a record waits is the lane's matter,
// who may run is the gate's.
#pragma once

#include "zlink/caf/compat.hpp"
#include "zlink/execution/domain.hpp"
#include "zlink/execution/operation_table.hpp"
#include "zlink/execution/turn.hpp"

#include <atomic>
#include <cstdint>

namespace zlink::detail {

class execution_object;
struct late_answer;

/// CAF's worker on this thread while it runs a gate, else null.
caf::execution_unit* current_execution_unit() noexcept;

class gate final : public counted, public caf::resumable, public reply_receiver {
public:
  explicit gate(execution_domain& domain) noexcept : domain_(domain) {}

  // -- any thread ------------------------------------------------------------------------------------------------------

  /// An object with a record where there was none.
  void push_ready(execution_object& object, bool at_once) noexcept;
  /// `completion`, `wake` and `sweep` records.
  void push_control(record* r) noexcept { push(*r, true); }
  /// Runs `job` inside the gate, in no turn, also while a suspended handler holds it.
  void post(unique_function<void()> job) noexcept;
  /// The run may go on: what it waited for ended outside this gate's turns.
  void wake_run(handler_run& run) noexcept;
  void receive_reply(record* reply) noexcept override { push(*reply, false); }
  void ref_receiver() noexcept override { ref(); }
  void unref_receiver() noexcept override { unref(); }
  execution_domain& domain() const noexcept { return domain_; }

  // -- inside a turn -----------------------------------------------------------------------------------------------------

  /// Enters an operation of the current turn's object; its end comes as a completion record with this id.
  std::uint64_t add_operation(counted_ptr<operation_base> operation, execution_object& owner, steady_time due);
  /// Fails whatever the object's turns still wait for, and its parked requests (X-40, D-5).
  void fail_operations(execution_object& owner, const error& why) noexcept;
  /// Puts a parked object back into the ready set.
  void make_ready(execution_object& object) noexcept;
  /// A run that is holding or yielded has got what it waited for.
  void queue_resume(handler_run& run) noexcept;
  /// The time at the start of the current record.
  steady_time now() const noexcept { return now_; }
  handler_run* holder() const noexcept { return holder_; }
  /// A stretch of a run is over: it ended, holds the gate or gave it back.
  void settle(handler_run& run) noexcept;

  // -- CAF ---------------------------------------------------------------------------------------------------------------
  resume_result resume(caf::execution_unit* unit, std::size_t max_throughput) override;
  subtype_t subtype() const override { return function_object; }
  void intrusive_ptr_add_ref_impl() override { ref(); }
  void intrusive_ptr_release_impl() override { unref(); }

private:
  class deadline_watch;
  class parked_request;

  ~gate() override;
  void push(inbox_node& node, bool at_once) noexcept;
  void wake(bool at_once) noexcept;
  /// True: nothing left to do and the next push schedules the gate again.
  bool run_batch(std::size_t& budget) noexcept;
  bool become_idle() noexcept;
  void drain_inbox() noexcept;
  void handle_control(record* r) noexcept;
  void complete(record* r) noexcept;
  void sweep() noexcept;
  void run_resumes() noexcept;
  bool run_ready(std::size_t& budget) noexcept;
  void run_record(execution_object& object, record* r) noexcept;
  void run_pulled(execution_object& object, record* asked) noexcept;
  void run_message(execution_object& object, record* r) noexcept;
  static void hand_on_permit(record& r) noexcept;
  void run_step(execution_object& object, record* r) noexcept;
  void run_caf_event(execution_object& object, record* r) noexcept;
  void park(execution_object& object, record* request, late_answer& answer);
  void run_continuation(execution_object& object, record* r) noexcept;
  void resume_yielded(handler_run& run) noexcept;
  void finish_run(handler_run& run) noexcept;
  void finish_record(execution_object& object, record* r) noexcept;
  void finish_refused(execution_object& object, record* r, error what) noexcept;
  template <class F>
  void end_operation(operation_base& operation, execution_object& owner, F end) noexcept;
  /// A handler of `object` has ended: its place in the lane is free.
  void return_reservation(execution_object& object, std::uint32_t bytes) noexcept;
  void return_reservations() noexcept;
  bool more_follows(const execution_object& object) const noexcept;
  void leave_ready(execution_object& object) noexcept;
  void let_go(execution_object& object) noexcept;
  void watch_deadline(steady_time due) noexcept;

  execution_domain& domain_;
  std::atomic<inbox_node*> inbox_{idle()};
  execution_object* ready_first_ = nullptr;
  execution_object* ready_last_ = nullptr;
  handler_run* holder_ = nullptr;
  handler_run* resumes_first_ = nullptr;
  handler_run* resumes_last_ = nullptr;
  operation_table operations_;
  deadline_watch* watch_ = nullptr;
  steady_time now_{};
  steady_time turn_budget_end_{};
  std::uint64_t served_ = 0; ///< of this batch
  execution_object* returned_to_ = nullptr; ///< reservations of this object that are not in its lane's word yet
  std::uint32_t returned_records_ = 0;
  std::uint64_t returned_bytes_ = 0;

  static inbox_node* idle() noexcept;
};

} // namespace zlink::detail
